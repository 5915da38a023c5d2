"""`/api/generate`: requests in, whole answers and lines out."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diglot.core.events import Finished, Started, TextDelta
from diglot.core.items import Image, Message, Text, said
from diglot.core.request import Conversation, Generation, Load, RawPrompt, Residence, Unload
from diglot.dialects.ollama.context import pack, unpack
from tests.dialects.ollama.asking import GENERATE, generation, items, parse, refusal, streamed, whole
from tests.dialects.ollama.test_chat import AT, END, METRICS
from tests.dialects.ollama.test_messages import PNG, png

EVENTS = [Started(11, "m:latest"), TextDelta("Hel"), TextDelta("lo"), END]


def asked(**body: Any) -> Any:
    return parse(GENERATE, {"model": "m", "prompt": "hi", **body})


@pytest.mark.shows("POST /api/generate", "prompt")
def test_a_prompt_is_what_a_user_says() -> None:
    parsed = asked()
    assert parsed.request == Generation(residence=Residence(model="m"), prompt=Conversation((said("user", "hi"),)))
    assert parsed.stream


def test_what_the_go_client_sends_is_the_least_request() -> None:
    assert asked(suffix="", system="", template="", options=None, context=None).request == asked().request


@pytest.mark.parametrize("prompt", [{}, {"prompt": ""}, {"prompt": None, "system": "x", "raw": False}])
@pytest.mark.parametrize(
    ("keep_alive", "kind", "reason"), [(None, Load, "load"), (-1, Load, "load"), ("0s", Unload, "unload")]
)
def test_no_prompt_loads_or_unloads_the_model_in_one_object(
    prompt: Any, keep_alive: Any, kind: type, reason: Any
) -> None:
    parsed = parse(GENERATE, {"model": "m", **prompt, "keep_alive": keep_alive})
    assert isinstance(parsed.request, kind)
    assert not parsed.stream
    assert whole(GENERATE, parsed, [Started(0, "m:latest"), Finished(reason)]) == {
        "model": "m",
        "created_at": AT,
        "response": "",
        "done": True,
        "done_reason": reason,
    }


def test_an_answer_comes_line_by_line_and_whole() -> None:
    start = {"model": "m", "created_at": AT}
    lines = streamed(GENERATE, asked(), EVENTS)
    context = lines[-1].pop("context")
    assert lines == [
        {**start, "response": "Hel", "done": False},
        {**start, "response": "lo", "done": False},
        {**start, "response": "", "done": True, "done_reason": "stop", **METRICS},
    ]
    assert whole(GENERATE, asked(), EVENTS) == {**lines[-1], "response": "Hello", "context": context}


@pytest.mark.shows("POST /api/generate", "system")
def test_system_comes_first() -> None:
    assert items(GENERATE, system="be brief") == (said("system", "be brief"), said("user", "hi"))


@pytest.mark.shows("POST /api/generate", "images")
def test_images_stand_before_the_prompt() -> None:
    assert items(GENERATE, images=[PNG]) == (Message(role="user", content=(Image(png(), "image/png"), Text("hi"))),)
    assert refusal(GENERATE, {"prompt": "hi", "images": [PNG, "x"]})[1].startswith("images[1]: ")


@pytest.mark.shows("POST /api/generate", "raw")
def test_a_raw_prompt_goes_to_the_model_as_it_is_and_has_no_context() -> None:
    parsed = asked(raw=True)
    assert parsed.request.prompt == RawPrompt("hi")
    assert "context" not in whole(GENERATE, parsed, EVENTS)
    assert "context" not in streamed(GENERATE, parsed, EVENTS)[-1]


@pytest.mark.parametrize("field", [{"template": "x"}, {"system": "x"}, {"context": [1]}])
def test_raw_bears_no_template_system_or_context(field: Any) -> None:
    body = {"prompt": "hi", "raw": True, **field}
    assert refusal(GENERATE, body) == (400, "raw mode does not support template, system, or context")


@pytest.mark.shows("POST /api/generate", "suffix")
@pytest.mark.parametrize("raw", [{}, {"raw": True}])
def test_a_suffix_asks_to_fill_the_middle(raw: Any) -> None:
    assert generation(GENERATE, suffix="end", **raw).prompt == RawPrompt("hi", suffix="end")


@pytest.mark.parametrize("field", [{"system": "x"}, {"context": [1]}, {"images": [PNG]}])
def test_filling_the_middle_is_no_conversation(field: Any) -> None:
    status, text = refusal(GENERATE, {"prompt": "a", "suffix": "b", **field})
    assert status == 400
    assert next(iter(field)) in text


@pytest.mark.shows("POST /api/generate", "template")
def test_a_template_is_refused_by_its_name_unless_it_is_empty() -> None:
    status, text = refusal(GENERATE, {"prompt": "hi", "template": "{{ .Prompt }}"})
    assert (status, text.partition(":")[0]) == (400, "template")
    assert asked(template="").request == asked().request


@pytest.mark.parametrize(
    ("field", "value"),
    [
        pytest.param(field, value, marks=pytest.mark.shows("POST /api/generate", field))
        for field, value in (("width", 512), ("height", 512), ("steps", 4), ("_debug_render_only", True))
    ],
)
def test_what_this_server_cannot_do_is_refused_by_its_name(field: str, value: Any) -> None:
    status, text = refusal(GENERATE, {"prompt": "hi", field: value})
    assert status == 400
    assert field in text


# context


@pytest.mark.shows("POST /api/generate", "context")
def test_the_context_of_an_answer_carries_the_conversation_on() -> None:
    first = whole(GENERATE, asked(system="be brief"), EVENTS)
    assert items(GENERATE, prompt="and now?", context=first["context"]) == (
        said("system", "be brief"),
        said("user", "hi"),
        said("assistant", "Hello"),
        said("user", "and now?"),
    )
    assert streamed(GENERATE, asked(system="be brief"), EVENTS)[-1]["context"] == first["context"]


def test_a_new_system_text_replaces_the_one_that_is_carried_on() -> None:
    first = whole(GENERATE, asked(system="be brief"), EVENTS)
    assert items(GENERATE, system="be long", context=first["context"])[0] == said("system", "be long")
    assert said("system", "be brief") not in items(GENERATE, system="be long", context=first["context"])


def test_images_are_not_carried_on() -> None:
    first = whole(GENERATE, asked(images=[PNG]), EVENTS)
    assert items(GENERATE, context=first["context"])[0] == said("user", "hi")


@given(texts=st.lists(st.tuples(st.sampled_from(["system", "user", "assistant"]), st.text())))
def test_a_context_holds_any_conversation_in_numbers_that_every_client_keeps(texts: list[tuple[Any, str]]) -> None:
    conversation = tuple(said(role, text) for role, text in texts)
    numbers = pack(conversation)
    assert all(0 <= number < 1 << 53 for number in numbers)
    assert unpack([int(float(number)) for number in numbers]) == conversation


FOREIGN = "this context is from another server: send the one of an answer of this server"
MARK, LENGTH, *REST = pack((said("user", "hi"),))


@pytest.mark.parametrize(
    ("context", "text"),
    [
        ([151644, 872, 198], FOREIGN),
        ([0], FOREIGN),
        ([MARK], "this context is damaged"),
        ([MARK, LENGTH], "this context is damaged"),
        ([MARK, LENGTH + 9, *REST], "this context is damaged"),
        ([MARK, -1, *REST], "this context is damaged"),
        ([MARK, LENGTH, *REST[::-1]], "this context is damaged"),
        ([MARK, LENGTH, -5, *REST[1:]], "this context is damaged"),
        ([MARK, LENGTH, 1 << 60, *REST[1:]], "this context is damaged"),
    ],
)
def test_a_context_from_elsewhere_is_an_error_that_says_so(context: list[int], text: str) -> None:
    assert refusal(GENERATE, {"prompt": "hi", "context": context}) == (400, text)


@given(rest=st.lists(st.integers(-1, 1 << 49), max_size=8), length=st.integers(-2, 60))
def test_any_context_is_read_or_refused(rest: list[int], length: int) -> None:
    body = {"prompt": "hi", "context": [MARK, length, *rest]}
    assert refusal(GENERATE, body) == (400, "this context is damaged")
