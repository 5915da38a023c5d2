"""`/api/embed` and `/api/embeddings`: requests in, vectors out."""

from typing import Any

import pytest

from diglot.core.request import Embedding, Overflow, Residence
from diglot.core.result import Embedded
from tests.dialects.ollama.asking import answer, parse, refusal

EMBED = "/api/embed"
EMBEDDINGS = "/api/embeddings"
VECTORS = Embedded(((0.6, 0.8), (1.0, 0.0)), input_tokens=5, model="m:latest", total_ns=90, load_ns=10)
NONE = Embedded((), input_tokens=0, model="m:latest", total_ns=7, load_ns=7)


def asked(path: str = EMBED, **body: Any) -> Any:
    return parse(path, {"model": "m", **body}).request


@pytest.mark.shows("POST /api/embed", "input")
@pytest.mark.parametrize(
    ("value", "inputs"),
    [("a", ("a",)), (["a", "b"], ("a", "b")), ([""], ("",)), ("", ()), ([], ()), (None, ())],
)
def test_an_input_is_a_text_or_a_list_of_them(value: Any, inputs: tuple[str, ...]) -> None:
    assert asked(input=value) == Embedding(
        residence=Residence(model="m"), inputs=inputs, normalise=True, overflow=Overflow.TRUNCATE
    )


def test_no_input_field_is_no_input() -> None:
    assert asked().inputs == ()


@pytest.mark.parametrize("value", [1, {"a": 1}, ["a", 1], [["a"]], [[1, 2]]])
def test_another_input_is_an_error(value: Any) -> None:
    assert refusal(EMBED, {"model": "m", "input": value}) == (400, "invalid input type")


@pytest.mark.shows("POST /api/embed", "truncate")
@pytest.mark.parametrize(
    ("value", "expected"), [(None, Overflow.TRUNCATE), (True, Overflow.TRUNCATE), (False, Overflow.ERROR)]
)
def test_a_long_text_is_cut_unless_the_client_says_no(value: Any, expected: Overflow) -> None:
    assert asked(input="a", truncate=value).overflow is expected


@pytest.mark.shows("POST /api/embed", "dimensions")
@pytest.mark.parametrize(
    ("dimensions", "vectors"),
    [
        (None, [[0.48, 0.6, 0.64], [0.0, 0.0, 1.0]]),
        (0, [[0.48, 0.6, 0.64], [0.0, 0.0, 1.0]]),
        (1, [[1.0], [0.0]]),
        (3, [[0.48, 0.6, 0.64], [0.0, 0.0, 1.0]]),
        (1024, [[0.48, 0.6, 0.64], [0.0, 0.0, 1.0]]),
    ],
)
def test_dimensions_cut_a_vector_to_length_1_and_more_than_there_are_change_nothing(
    dimensions: int | None, vectors: list[list[float]]
) -> None:
    embedded = Embedded(((0.48, 0.6, 0.64), (0.0, 0.0, 1.0)), input_tokens=2, model="m:latest")
    body = {"model": "m", "input": ["a", "b"], "dimensions": dimensions}
    assert answer(EMBED, embedded, body)["embeddings"] == vectors


def test_negative_dimensions_are_an_error() -> None:
    body = {"model": "m", "input": "a", "dimensions": -1}
    assert refusal(EMBED, body) == (400, "dimensions must not be negative")


def test_vectors_come_with_what_they_cost() -> None:
    assert answer(EMBED, VECTORS, {"model": "m", "input": ["a", "b"]}) == {
        "model": "m",
        "embeddings": [[0.6, 0.8], [1.0, 0.0]],
        "total_duration": 90,
        "load_duration": 10,
        "prompt_eval_count": 5,
    }


def test_no_input_has_an_empty_list_of_vectors() -> None:
    assert answer(EMBED, NONE, {"model": "m", "input": ""})["embeddings"] == []


def test_without_a_name_the_model_is_called_by_its_own() -> None:
    assert answer(EMBED, VECTORS, {"input": "a"})["model"] == "m:latest"


@pytest.mark.shows("POST /api/embeddings", "prompt")
@pytest.mark.parametrize(("value", "inputs"), [("a", ("a",)), ("", ()), (None, ())])
def test_the_older_form_takes_one_text_and_leaves_the_vector_as_it_is(value: Any, inputs: tuple[str, ...]) -> None:
    assert asked(EMBEDDINGS, prompt=value) == Embedding(
        residence=Residence(model="m"), inputs=inputs, normalise=False, overflow=Overflow.ERROR
    )


def test_the_older_form_gives_one_vector_or_an_empty_one() -> None:
    assert answer(EMBEDDINGS, VECTORS, {"model": "m", "prompt": "a"}) == {"embedding": [0.6, 0.8]}
    assert answer(EMBEDDINGS, NONE, {"model": "m", "prompt": ""}) == {"embedding": []}
