"""Reranking: a query and documents into a request, scores into an order."""

import json
from typing import Any

import pytest

from diglot.core.request import Rerank, Residence
from diglot.core.result import Ranked
from diglot.dialects.openai.rerank import RerankView, parse, whole
from tests.dialects.openai.material import STAMP, refusal, wire

RANKED = Ranked(scores=(0.5, -2.0, 0.75), input_tokens=9, model="ranker:latest")


def results(view: RerankView) -> Any:
    return json.loads(whole(view, STAMP, RANKED).body)["results"]


def test_the_smallest_request_says_nothing_but_what_was_said() -> None:
    parsed = parse(wire({"query": "why", "documents": ["a", {"text": "b"}]}))
    assert parsed.request == Rerank(Residence(), "why", ("a", "b"))
    assert parsed.view == RerankView(None, None, None)


def test_no_documents_are_no_error() -> None:
    request = parse(wire({"query": "why", "documents": []})).request
    assert isinstance(request, Rerank)
    assert request.documents == ()


def test_the_best_document_stands_first_and_is_named_by_its_place() -> None:
    reply = json.loads(whole(RerankView("mine", None, None), STAMP, RANKED).body)
    assert reply == {
        "id": f"rerank-{STAMP.id}",
        "object": "list",
        "model": "mine",
        "results": [
            {"index": 2, "relevance_score": 0.75},
            {"index": 0, "relevance_score": 0.5},
            {"index": 1, "relevance_score": -2.0},
        ],
        "usage": {"prompt_tokens": 9, "total_tokens": 9},
    }


def test_as_many_come_back_as_were_asked_for() -> None:
    assert [each["index"] for each in results(RerankView(None, 2, None))] == [2, 0]
    assert len(results(RerankView(None, 9, None))) == 3


def test_documents_come_back_where_that_was_asked_for() -> None:
    assert [each["document"] for each in results(RerankView(None, 1, ("a", "b", "c")))] == [{"text": "c"}]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"documents": ["a"]}, "query"),
        ({"query": "", "documents": ["a"]}, "query"),
        ({"query": "a"}, "documents"),
        ({"query": "a", "documents": "b"}, "documents"),
        ({"query": "a", "documents": [1]}, "documents[0]"),
        ({"query": "a", "documents": [{"image": "x"}]}, "documents[0].text"),
        ({"query": "a", "documents": ["b"], "top_n": 0}, "top_n"),
    ],
)
def test_what_is_wrong_is_refused_with_its_field(body: dict[str, Any], field: str) -> None:
    error = refusal(parse, body)
    assert (error["status"], error["param"]) == (400, field)
