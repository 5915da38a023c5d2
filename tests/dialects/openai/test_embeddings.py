"""Embeddings: every form of input into a request, vectors into an answer."""

import base64
import json
import struct
from typing import Any

import pytest
from openai.types import CreateEmbeddingResponse

from diglot.core.request import Embedding, Residence
from diglot.core.result import Embedded
from diglot.dialects.openai.embeddings import EmbeddingView, parse, whole
from diglot.dialects.operation import Parsed
from tests.dialects.openai.material import STAMP, refusal, wire

MADE = Embedded(vectors=((0.5, -0.25), (1.0, 0.0)), input_tokens=7, model="mini:latest")


def test_the_smallest_request_says_nothing_but_what_was_said() -> None:
    request = Embedding(residence=Residence(), inputs=("hi",))
    assert parse(wire({"input": "hi"})) == Parsed(request=request, view=EmbeddingView())


def test_an_empty_text_is_a_text() -> None:
    assert parse(wire({"input": ""})).request == Embedding(residence=Residence(), inputs=("",))


def test_vectors_as_numbers() -> None:
    reply = json.loads(whole(EmbeddingView(model="mini"), STAMP, MADE).body)
    CreateEmbeddingResponse.model_validate(reply, strict=True)
    assert reply == {
        "object": "list",
        "data": [
            {"object": "embedding", "index": 0, "embedding": [0.5, -0.25]},
            {"object": "embedding", "index": 1, "embedding": [1.0, 0.0]},
        ],
        "model": "mini",
        "usage": {"prompt_tokens": 7, "total_tokens": 7},
    }


def test_vectors_as_little_endian_floats_in_base64() -> None:
    data = json.loads(whole(EmbeddingView(base64=True), STAMP, MADE).body)["data"]
    unpacked = [struct.unpack("<2f", base64.b64decode(each["embedding"])) for each in data]
    assert unpacked == [(0.5, -0.25), (1.0, 0.0)]


def test_a_model_that_was_not_named_is_named_in_the_answer() -> None:
    assert json.loads(whole(EmbeddingView(), STAMP, MADE).body)["model"] == "mini:latest"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "input"),
        ({"input": None}, "input"),
        ({"input": []}, "input"),
        ({"input": [[]]}, "input[0]"),
        ({"input": ["a", [1]]}, "input[1]"),
        ({"input": [[1], 2]}, "input[1]"),
        ({"input": [1.5]}, "input[0]"),
        ({"input": [True]}, "input[0]"),
        ({"input": [[-1]]}, "input[0][0]"),
        ({"input": "a", "encoding_format": "hex"}, "encoding_format"),
        ({"input": "a", "dimensions": 0}, "dimensions"),
    ],
)
def test_a_wrong_value_is_refused_with_its_path(body: dict[str, Any], field: str) -> None:
    error = refusal(parse, body)
    assert (error["status"], error["param"]) == (400, field)
