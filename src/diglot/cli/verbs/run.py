"""`diglot run`: chat with a model in the terminal, or ask it one thing.

Neighbours: `chat` holds the conversation. It starts no server: it says how to.
"""

from __future__ import annotations

import sys
from typing import Final

import click

from diglot.cli.chat.conversation import Conversation
from diglot.cli.chat.session import Session
from diglot.cli.failure import Failure, Refused
from diglot.cli.flags import REACH, takes_settings
from diglot.cli.server import Server, url_option
from diglot.cli.wire import ShowReply
from diglot.settings import Settings

THINK: Final = ("on", "off", "low", "medium", "high", "max")


@click.command()
@click.argument("model")
@click.argument("prompt", required=False)
@click.option("--system", default="", metavar="TEXT", help="How the model is to behave.")
@click.option("--think", type=click.Choice(THINK), help="Whether, or how hard, a model that can reason does so.")
@click.option("--verbose", is_flag=True, help="Show counts and tokens a second after each answer.")
@url_option
@takes_settings(*REACH)
def command(
    settings: Settings,
    *,
    model: str,
    prompt: str | None,
    system: str,
    think: str | None,
    verbose: bool,
    url: str | None,
) -> None:
    """Chat with MODEL, or ask it PROMPT.

    What is piped in is the prompt, or stands behind it. In a chat, Ctrl-C stops an answer, /help tells
    more, and Ctrl-D leaves. Where the output is no terminal, only the answer is written.
    """
    with Server.at(settings, url) as server:
        card = _card(server, model)
        conversation = Conversation(server, model, system=system, think=_thought(think))
        session = Session(server, conversation, card=card, verbose=verbose)
        question = question_of(prompt)
        if question is None:
            session.chat()
        elif question:
            session.answer(question)
        else:
            raise click.UsageError("the prompt is empty")


def _card(server: Server, model: str) -> ShowReply:
    """Return what the server knows of the model, if one can talk to it."""
    try:
        card = server.post("/api/show", {"model": model}, ShowReply)
    except Refused as refused:
        if refused.status != 404:  # noqa: PLR2004  not found
            raise
        raise Failure(f"{refused.message}; diglot list shows the models there are") from None
    if card.capabilities is not None and "completion" not in card.capabilities:
        raise Failure(f"{model} does not chat; it can do: {', '.join(card.capabilities) or 'nothing'}")
    return card


def _thought(think: str | None) -> bool | str | None:
    return think == "on" if think in ("on", "off") else think


def question_of(prompt: str | None) -> str | None:
    """Return the one thing to ask: the prompt, and what is piped in behind it. None for a chat.

    A chat needs a terminal on both ends. Where only the output leads elsewhere, the prompt is typed until Ctrl-D.
    """
    typed = sys.stdin is not None and sys.stdin.isatty()
    if prompt is None and typed and sys.stdout.isatty():
        return None
    if sys.stdin is None or (typed and prompt is not None):
        return prompt or ""
    piped = sys.stdin.read()
    return "\n\n".join(part for part in (prompt, piped.strip()) if part)
