"""Faults are a closed set, drawn whole, each with one sentence for the client."""

import inspect
import typing
from typing import Any

import pytest

from diglot.core import errors
from diglot.core.errors import AnyFault, ContextExceeded, Fault, InvalidField, TooMany, WrongMethod

KINDS = [
    each for _, each in inspect.getmembers(errors, inspect.isclass) if issubclass(each, Fault) and each is not Fault
]


def test_the_union_holds_every_fault() -> None:
    assert set(typing.get_args(AnyFault)) == set(KINDS)


def test_the_drawing_shows_every_fault_once() -> None:
    drawn = [line.split("── ")[1].split()[0] for line in str(errors.__doc__).splitlines() if "── " in line]
    assert sorted(name for name in drawn if name[0].isupper()) == sorted(kind.__name__ for kind in KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_fault_is_described_and_has_a_message(kind: type[Fault]) -> None:
    needed: dict[str, Any] = {
        name: {
            "allowed": ("GET",),
            "count": 2,
            "limit": 1,
            "tokens": 2,
            "window": 1,
            "before": 2,
            "after": 1,
            "needed": 2,
            "free": 1,
        }.get(name, "x")
        for name, parameter in inspect.signature(kind).parameters.items()
        if parameter.default is parameter.empty
    }
    fault = kind(**needed)
    assert kind.__doc__
    assert fault.message == str(fault) != ""
    assert all(getattr(fault, name) == value for name, value in needed.items() if hasattr(fault, name))


def test_messages_carry_the_facts() -> None:
    assert InvalidField("messages[0].role", "must be one of user").message == "messages[0].role: must be one of user"
    assert ContextExceeded(tokens=9, window=4).message == "the prompt has 9 tokens, the context window holds 4 tokens"
    assert "too long" in ContextExceeded(tokens=0, window=4).message
    assert TooMany("input", count=3, limit=2).message.startswith("input: 3 inputs are more than the limit of 2")
    assert WrongMethod("PUT", path="/x", allowed=("GET", "HEAD")).message == "PUT is not allowed on /x, use GET or HEAD"
