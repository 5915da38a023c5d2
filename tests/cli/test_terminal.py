"""`diglot run` in a terminal: Ctrl-C, Ctrl-D, reasoning, several lines, and the bar while a model loads."""

import sys
import threading
from collections.abc import Iterator

import pytest

if sys.platform == "win32":
    pytest.skip("there is no pseudo-terminal", allow_module_level=True)

from tests.cli.stub import stub
from tests.cli.terminal import CTRL_C, CTRL_D, PROMPT, Terminal
from tests.serving import Served, until


@pytest.fixture
def chat(served: str, home: object) -> Iterator[Terminal]:
    """A chat that waits for its first message."""
    with Terminal("run", "scripted", "--url", served) as terminal:
        terminal.expect(PROMPT)
        yield terminal


def test_ctrl_c_stops_the_answer_and_keeps_the_chat(chat: Terminal) -> None:
    chat.type("forever\r")
    chat.expect("One two ")
    chat.interrupt("(stopped)")
    chat.expect(PROMPT)
    chat.type("hello\r")
    chat.expect("Hi there.")
    chat.expect(PROMPT)
    chat.type(CTRL_D)
    assert chat.ended() == 0


def test_ctrl_c_before_the_first_word_keeps_the_chat_too(chat: Terminal, server: Served) -> None:
    chat.type("wait\r")
    until(lambda: server.log_has("<user>wait"))
    chat.interrupt("(stopped)")
    chat.type("hello\r")
    chat.expect("Hi there.")


def test_ctrl_c_at_the_prompt_says_how_to_leave(chat: Terminal) -> None:
    chat.interrupt("/bye leaves")
    chat.expect(PROMPT)
    chat.type("/bye\r")
    assert chat.ended() == 0


def test_ctrl_c_ends_a_single_question(served: str, home: object) -> None:
    with Terminal("run", "scripted", "forever", "--url", served) as terminal:
        terminal.expect("One two ")
        terminal.type(CTRL_C)
        assert terminal.ended() == 130
        assert "Traceback" not in terminal.seen


def test_ctrl_c_stops_the_server_without_a_word(home: object) -> None:
    with Terminal("serve", "--engine", "scripted", "--port", "0", "--log", "debug") as terminal:
        terminal.expect("listening on")
        terminal.type(CTRL_C)
        assert terminal.ended() == 0
        assert "Traceback" not in terminal.seen


def test_reasoning_is_dim_and_the_answer_is_not(chat: Terminal) -> None:
    chat.type("think\r")
    chat.expect("\x1b[2mLet me see.\x1b[0m")
    chat.expect("It is 42.")


def test_a_message_may_have_several_lines(chat: Terminal) -> None:
    chat.type('"""first\rsecond"""\r')
    chat.expect('second"""')
    chat.expect("first\r\nsecond")


def test_a_model_cannot_speak_to_the_terminal(chat: Terminal) -> None:
    chat.type("escape\r")
    chat.expect("escape")
    assert "\x1b" not in chat.expect("title[31mred")


def test_a_failed_answer_is_told_and_the_chat_goes_on(chat: Terminal) -> None:
    chat.type("break\r")
    chat.expect("Error: the engine failed")
    chat.type("hello\r")
    chat.expect("Hi there.")


def test_words_with_a_slash_are_obeyed(chat: Terminal) -> None:
    chat.type("/show\r")
    chat.expect("architecture")
    chat.type("/set system Be brief.\r")
    chat.expect("is set")
    chat.type("/clear\r")
    chat.expect("forgotten")
    chat.type("/nothing\r")
    chat.expect("/nothing is not known")
    chat.type("/help\r")
    chat.expect("Ctrl-C")


def test_a_bar_shows_how_far_the_loading_is(home: object) -> None:
    seen = threading.Event()

    def answer(path: str) -> tuple[int, object]:
        match path:
            case "/api/ps":
                return 200, {"models": [{"name": "m:latest", "loaded": 0.4}]}
            case "/api/chat":
                seen.wait(30)
                return 200, {"message": {"content": "here"}, "done": True}
            case _:
                return 200, {"capabilities": ["completion"]}

    with stub(answer) as url, Terminal("run", "m", "question", "--url", url) as terminal:
        terminal.expect("loading m:latest")
        terminal.expect("40%")
        seen.set()
        terminal.expect("\r\x1b[Khere")
        assert terminal.ended() == 0
