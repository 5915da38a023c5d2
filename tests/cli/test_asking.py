"""The commands that ask a server: list, show, ps, stop and run, without a terminal."""

import json

import pytest

from tests.cli.conftest import Diglot


@pytest.mark.parametrize("command", [("ps",), ("stop", "m"), ("run", "m", "hello")])
def test_without_a_server_it_says_how_to_start_one(diglot: Diglot, command: tuple[str, ...]) -> None:
    outcome = diglot(*command)
    assert outcome.code == 1
    assert outcome.err == "Error: no server answers at http://127.0.0.1:1. Start one with: diglot serve\n"


def test_list_shows_what_the_server_has(diglot: Diglot, served: str) -> None:
    outcome = diglot("list", "--url", served)
    head, first, second, third = outcome.out.splitlines()
    assert head.split() == ["NAME", "ID", "SIZE", "MODIFIED"]
    assert first.startswith("scripted:latest ")
    assert len(first.split()[1]) == 12
    assert second.startswith("scripted-embed:latest ")
    assert third.startswith("scripted-rerank:latest ")


def test_list_takes_a_prefix(diglot: Diglot, served: str) -> None:
    names = [line.split()[0] for line in diglot("list", "Scripted-e", "--url", served).out.splitlines()]
    assert names == ["NAME", "scripted-embed:latest"]


def test_show_tells_of_a_model(diglot: Diglot, served: str) -> None:
    out = diglot("show", "scripted", "--url", served).out
    assert "architecture        scripted" in out
    assert "  Capabilities\n    completion\n" in out


def test_show_gives_json(diglot: Diglot, served: str) -> None:
    assert "model_info" in json.loads(diglot("show", "scripted", "--json", "--url", served).out)


def test_a_model_is_loaded_by_run_and_unloaded_by_stop(diglot: Diglot, served: str) -> None:
    assert diglot("run", "scripted", "hello", "--url", served).out == "Hi there.\n"
    loaded = diglot("ps", "--url", served).out.splitlines()
    assert loaded[0].split() == ["NAME", "ID", "SIZE", "PROCESSOR", "CONTEXT", "UNTIL"]
    assert "scripted:latest" in loaded[1]
    assert "100% CPU" in loaded[1]
    assert diglot("stop", "scripted", "--url", served).code == 0
    assert "scripted:latest" not in diglot("ps", "--url", served).out


def test_what_is_piped_in_is_the_prompt(diglot: Diglot, served: str) -> None:
    assert diglot("run", "scripted", "--url", served, stdin="just this\n").out == "just this\n"


def test_what_is_piped_in_stands_behind_the_prompt(diglot: Diglot, served: str) -> None:
    assert diglot("run", "scripted", "Read:", "--url", served, stdin="a text\n").out == "Read:\n\na text\n"


def test_without_a_terminal_only_the_answer_is_written(diglot: Diglot, served: str) -> None:
    outcome = diglot("run", "scripted", "think", "--url", served)
    assert (outcome.out, outcome.err) == ("It is 42.\n", "")


def test_verbose_tells_counts_beside_the_answer(diglot: Diglot, served: str) -> None:
    outcome = diglot("run", "scripted", "hello", "--verbose", "--url", served)
    assert outcome.out == "Hi there.\n"
    assert "tokens" in outcome.err


def test_an_empty_prompt_is_a_wrong_call(diglot: Diglot, served: str) -> None:
    assert diglot("run", "scripted", "--url", served).code == 2


def test_an_unknown_model_is_named(diglot: Diglot, served: str) -> None:
    outcome = diglot("run", "nobody", "hello", "--url", served)
    assert outcome.code == 1
    assert "nobody" in outcome.err
    assert "diglot list" in outcome.err


def test_a_model_that_only_embeds_is_not_asked(diglot: Diglot, served: str) -> None:
    outcome = diglot("run", "scripted-embed", "hello", "--url", served)
    assert (outcome.code, outcome.err) == (1, "Error: scripted-embed does not chat; it can do: embedding\n")


def test_an_answer_that_breaks_off_is_a_failure(diglot: Diglot, served: str) -> None:
    outcome = diglot("run", "scripted", "break", "--url", served)
    assert (outcome.code, outcome.out, outcome.err) == (1, "Half \n", "Error: the engine failed\n")


def test_a_server_that_is_no_server_of_ours_is_a_failure(diglot: Diglot, served: str) -> None:
    outcome = diglot("list", "--url", f"{served}/elsewhere")
    assert outcome.code == 1
    assert "Traceback" not in outcome.err


def test_a_url_that_is_none_is_a_wrong_call(diglot: Diglot) -> None:
    assert diglot("list", "--url", "http://[").code == 2
