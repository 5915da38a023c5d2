"""What is sent to the server in the course of a chat, and what a person may type."""

from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any, cast

import pytest

from diglot.cli.chat.conversation import Conversation
from diglot.cli.chat.lines import read_message
from diglot.cli.failure import Refused
from diglot.cli.names import is_same
from diglot.cli.server import Server
from diglot.cli.wire import ChatReply, MessageReply


class Parrot:
    """A server that says what it was told to say, and keeps what it was asked."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.lines = [ChatReply(message=MessageReply(content=word)) for word in ("one ", "two")]

    def stream(self, _path: str, body: Mapping[str, Any], _kind: object) -> Iterator[ChatReply]:
        """Answer."""
        self.bodies.append({**body, "messages": list(body["messages"])})
        yield from self.lines


@pytest.fixture
def parrot() -> Parrot:
    return Parrot()


@pytest.fixture
def conversation(parrot: Parrot) -> Conversation:
    return Conversation(cast("Server", parrot), "m")


def said(parrot: Parrot) -> list[tuple[str, str]]:
    return [(each["role"], each["content"]) for each in parrot.bodies[-1]["messages"]]


def test_what_was_said_goes_along(parrot: Parrot, conversation: Conversation) -> None:
    list(conversation.ask("first"))
    list(conversation.ask("second"))
    assert said(parrot) == [("user", "first"), ("assistant", "one two"), ("user", "second")]


def test_an_answer_that_is_given_up_stands_as_far_as_it_went(parrot: Parrot, conversation: Conversation) -> None:
    with closing(conversation.ask("first")) as lines:
        next(lines)
    list(conversation.ask("second"))
    assert said(parrot) == [("user", "first"), ("assistant", "one "), ("user", "second")]


def test_a_question_without_an_answer_is_forgotten(parrot: Parrot, conversation: Conversation) -> None:
    parrot.lines.insert(0, ChatReply(error="it broke"))
    with pytest.raises(Refused, match="it broke"):
        list(conversation.ask("first"))
    parrot.lines.clear()
    list(conversation.ask("second"))
    list(conversation.ask("third"))
    assert said(parrot) == [("user", "third")]


def test_to_clear_forgets_all_but_the_system_prompt(parrot: Parrot, conversation: Conversation) -> None:
    conversation.system = "Be brief."
    list(conversation.ask("first"))
    conversation.clear()
    list(conversation.ask("second"))
    assert said(parrot) == [("system", "Be brief."), ("user", "second")]


@pytest.mark.parametrize(("think", "sent"), [(None, {}), (True, {"think": True}), ("low", {"think": "low"})])
def test_think_is_sent_only_when_asked_for(parrot: Parrot, think: bool | str | None, sent: object) -> None:  # noqa: FBT001
    list(Conversation(cast("Server", parrot), "m", think=think).ask("first"))
    assert {name: value for name, value in parrot.bodies[0].items() if name == "think"} == sent


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (["  hello "], "hello"),
        (['"""one"""'], "one"),
        (['"""one', "two", 'three"""'], "one\ntwo\nthree"),
        (['/set system """one', 'two"""'], "/set system one\ntwo"),
        (['say """ twice'], 'say """ twice'),
    ],
)
def test_a_message_is_a_line_or_stands_between_three_quotes(typed: list[str], message: str) -> None:
    lines = iter(typed)
    assert read_message(lambda _: next(lines)) == message
    assert not list(lines)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [("m", "M:latest", True), ("m:a", "m:b", False), ("not a name", "not a name", True)],
)
def test_a_model_is_known_by_any_of_its_names(one: str, other: str, *, same: bool) -> None:
    assert is_same(one, other) is same
