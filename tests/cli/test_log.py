"""The log: one line a record, no secrets, and the level that was asked for."""

import io
import logging

import pytest

from diglot.obs.log import set_up_log


def logged(
    level: str, name: str = "diglot.services.x", *, at: int = logging.INFO, text: str = "a %s", secret: str = ""
) -> str:
    stream = io.StringIO()
    set_up_log(level, secrets=(secret,), stream=stream)
    logging.getLogger(name).log(at, text, "word")
    return stream.getvalue()


def test_a_record_is_one_line_that_says_when_how_grave_and_where() -> None:
    date, time, level, rest = logged("info").split(maxsplit=3)
    assert (len(date), len(time), level, rest) == (10, 8, "info", "services.x: a word\n")


def test_a_text_with_line_ends_and_controls_is_one_line_still() -> None:
    assert logged("info", text="%s\nforged\r\x1b[2J").endswith("word\\nforged\\x0d\\x1b[2J\n")


def test_what_is_below_the_level_is_left_out() -> None:
    assert not logged("warning")
    assert logged("debug", at=logging.DEBUG)


@pytest.mark.parametrize("name", ["httpx2", "uvicorn.error"])
def test_others_are_quiet_unless_at_debug(name: str) -> None:
    assert not logged("info", name)
    assert logged("debug", name)
    assert logged("error", name, at=logging.ERROR)
    assert not logged("error", name, at=logging.WARNING)


def test_a_secret_is_taken_out_also_of_a_traceback() -> None:
    assert "s3cret" not in logged("info", text="the key is s3cret, %s", secret="s3cret")
    stream = io.StringIO()
    set_up_log("info", secrets=("s3cret",), stream=stream)
    try:
        raise ValueError("s3cret")
    except ValueError:
        logging.getLogger("diglot").exception("it broke")
    assert "\n  ValueError: ***\n" in stream.getvalue()
