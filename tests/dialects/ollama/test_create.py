"""`POST /api/create`: what is asked for, and a line for each step."""

import json
from typing import Any, Final

import pytest

from diglot.core.digest import Digest
from diglot.core.errors import InvalidField, NotOffered
from diglot.core.events import Step
from diglot.core.recipe import Example, Recipe
from diglot.core.request import CreateModel
from tests.dialects.ollama.asking import NOW, STAMP, operation, parse, refusal, reply_to

CREATE: Final = "/api/create"
OPERATION: Final = "POST /api/create"
CONTENT: Final = Digest("ab" * 32)


def recipe(**body: Any) -> Recipe:
    request = parse(CREATE, {"model": "mine", "from": "base", **body}).request
    assert isinstance(request, CreateModel)
    assert request.name == "mine"
    return request.recipe


@pytest.mark.shows(OPERATION, "model", "name", "from")
def test_a_model_is_made_of_another_and_named_by_either_field() -> None:
    assert recipe() == Recipe(base="base")
    assert parse(CREATE, {"name": "mine", "from": "hf.co/a/b:Q4_0"}).request == CreateModel(
        "mine", Recipe(base="hf.co/a/b:Q4_0")
    )


@pytest.mark.shows(OPERATION, "files", "adapters", "quantize", "quantization")
def test_a_model_is_made_of_contents_that_were_sent_before() -> None:
    body = {"from": None, "files": {"model.gguf": f"sha256:{CONTENT.hex}"}, "adapters": {"lora.gguf": str(CONTENT)}}
    assert recipe(**body, quantize="q8_0") == Recipe(
        files={"model.gguf": CONTENT}, adapters={"lora.gguf": CONTENT}, quantization="q8_0"
    )
    assert recipe(**body, quantization="f16").quantization == "f16"


@pytest.mark.shows(
    OPERATION, "template", "system", "license", "messages", "messages.role", "messages.content", "parameters"
)
def test_what_is_set_goes_into_the_recipe() -> None:
    assert recipe(
        template="{{ .Prompt }}",
        system="Be brief.",
        license=["MIT", ""],
        messages=[{"role": "User", "content": "hi"}, {"role": "assistant", "content": "Hi.", "thinking": "Hm."}],
        parameters={"temperature": 1, "stop": "x", "num_ctx": 2048.0, "seed": None},
    ) == Recipe(
        base="base",
        template="{{ .Prompt }}",
        system="Be brief.",
        licences=("MIT",),
        messages=(Example("user", "hi"), Example("assistant", "Hi.")),
        parameters={"temperature": 1, "stop": ["x"], "num_ctx": 2048.0},
    )
    assert recipe(license="MIT").licences == ("MIT",)


def test_words_for_other_servers_are_kept_with_the_model() -> None:
    assert recipe(renderer="harmony", parser="harmony", requires="0.14").marks == {
        "renderer": "harmony",
        "parser": "harmony",
        "requires": "0.14",
    }


def test_that_a_template_has_no_effect_is_noted() -> None:
    assert parse(CREATE, {"model": "mine", "from": "base"}).notes == ()
    [note] = parse(CREATE, {"model": "mine", "from": "base", "template": "{{ .Prompt }}"}).notes
    assert "a template in Go's notation is kept" in note


def test_what_the_command_line_sends_of_a_session_is_read() -> None:
    body = {
        "model": "mine",
        "from": "base:latest",
        "system": "Be brief.",
        "parameters": {"num_ctx": 4096, "temperature": 0.5},
        "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "Hi."}],
        "name": "",
    }
    parsed = parse(CREATE, body)
    assert parsed.stream
    assert isinstance(parsed.request, CreateModel)
    assert parsed.request.name == "mine"


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({}, "neither 'from' or 'files' was specified"),
        ({"model": "", "from": "b"}, "invalid model name"),
        ({"model": "a b", "from": "b"}, "invalid model name"),
        ({"from": "a b"}, "from: invalid model name: not a valid model"),
        ({"from": "b", "files": {"m": str(CONTENT)}}, "a model is made from another one or of files, not of both"),
        ({"files": {"m.gguf": "sha256:12"}}, "files.m.gguf: invalid digest format"),
        ({"from": "b", "adapters": {"m.gguf": "12"}}, "adapters.m.gguf: invalid digest format"),
        ({"from": "b", "parameters": {"temprature": 1}}, "parameters.temprature: there is no parameter of this name"),
        ({"from": "b", "parameters": {"top_k": "x"}}, 'option "top_k" must be of type integer'),
        ({"from": "b", "parameters": {"stop": [1]}}, 'option "stop" must be of type array'),
        ({"from": "b", "messages": [{"role": "wizard"}]}, "messages[0].role: it is system, user, assistant"),
    ],
)
def test_what_cannot_be_made_is_refused_with_the_field(body: dict[str, Any], error: str) -> None:
    status, text = refusal(CREATE, {"model": "mine", **body})
    assert status == 400
    assert error in text


@pytest.mark.shows(OPERATION, "messages.images", "messages.tool_calls", "modelfile", "path", "remote_host", "info")
@pytest.mark.parametrize(
    "body",
    [
        {"messages": [{"role": "user", "images": ["aGk="]}]},
        {"messages": [{"role": "user", "tool_calls": [{}]}]},
        {"modelfile": "FROM x"},
        {"path": "/x"},
        {"remote_host": "https://x.example"},
        {"info": {"a": 1}},
    ],
)
def test_what_is_not_done_here_is_refused_by_name(body: dict[str, Any]) -> None:
    status, text = refusal(CREATE, {"model": "mine", "from": "base", **body})
    assert status == 400
    assert next(iter(body)) in text


@pytest.mark.shows(OPERATION, "stream")
def test_steps_are_streamed_unless_it_says_otherwise() -> None:
    assert parse(CREATE, {"model": "m", "from": "b"}).stream
    parsed = parse(CREATE, {"model": "m", "from": "b", "stream": False})
    assert not parsed.stream
    assert json.loads(operation(CREATE).whole(parsed.view, STAMP, None).body) == {"status": "success"}


def test_each_step_is_a_line() -> None:
    make = operation(CREATE).steps
    assert make is not None
    renderer = make(None, STAMP)
    steps = [Step("convert"), Step("reuse", CONTENT), Step("make", CONTENT), Step("write"), Step("done")]
    lines = [json.loads(renderer.feed(step, NOW)) for step in steps]
    assert lines == [
        {"status": "converting model"},
        {"status": f"using existing layer sha256:{CONTENT.hex}"},
        {"status": f"creating new layer sha256:{CONTENT.hex}"},
        {"status": "writing manifest"},
        {"status": "success"},
    ]
    copied = json.loads(renderer.feed(Step("receive", CONTENT, 10, 5), NOW))
    assert copied == {"status": "pulling abababababab", "digest": str(CONTENT), "total": 10, "completed": 5}


def test_a_stream_that_broke_ends_in_an_error() -> None:
    make = operation(CREATE).steps
    assert make is not None
    assert json.loads(make(None, STAMP).fail(InvalidField("files.a", "it holds no tensors"))) == {
        "error": "files.a: it holds no tensors"
    }
    assert reply_to(CREATE, NotOffered("base", where="there"))[0] == 500
