"""The log: one line a record, no secrets, and the level that was asked for."""

import io
import json
import logging
from collections.abc import Callable
from typing import Any

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


def written(record: Callable[[logging.Logger], None]) -> dict[str, Any]:
    stream = io.StringIO()
    set_up_log("info", secrets=("s3cret",), as_json=True, stream=stream)
    record(logging.getLogger("diglot.services.x"))
    (line,) = stream.getvalue().splitlines()
    found: dict[str, Any] = json.loads(line)
    return found


def test_a_record_can_be_an_object_on_one_line() -> None:
    found = written(lambda log: log.info("two\nlines, a %s and \udcff", "s3cret"))
    assert found.pop("time").endswith("Z")
    assert found == {"level": "info", "logger": "services.x", "message": "two\nlines, a *** and \\udcff"}


def test_a_record_that_brings_fields_has_them_as_members() -> None:
    found = written(lambda log: log.info("as words", extra={"fields": {"outcome": "ok", "seconds": 0.5}}))
    assert (found["outcome"], found["seconds"]) == ("ok", 0.5)
    assert "message" not in found


def test_a_secret_is_taken_out_of_a_field_too() -> None:
    found = written(lambda log: log.info("as words", extra={"fields": {"id": "my-s3cret-request", "status": 200}}))
    assert (found["id"], found["status"]) == ("my-***-request", 200)


def test_a_traceback_is_a_member_of_its_object() -> None:
    def broken(log: logging.Logger) -> None:
        try:
            raise ValueError("s3cret")
        except ValueError:
            log.exception("it broke")

    found = written(broken)
    assert found["message"] == "it broke"
    assert found["trace"].endswith("ValueError: ***")
