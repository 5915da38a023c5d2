"""A chat in the terminal: questions, answers, and the words that begin with a slash.

Neighbours: `conversation` (what was said), `screen` (how it is shown), `lines` (what is typed).

Invariant: Ctrl-C ends an answer and never the chat; a failed answer is told and the chat goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Final

import click

from diglot.cli.chat.conversation import Conversation
from diglot.cli.chat.lines import edit_lines, read_message
from diglot.cli.chat.loading import loading_bar
from diglot.cli.chat.screen import Screen, counts
from diglot.cli.failure import Failure
from diglot.cli.server import Server
from diglot.cli.verbs.show import in_words
from diglot.cli.wire import ShowReply

HELP: Final = '''\
  /set system TEXT   say how the model is to behave; without TEXT, nothing is said
  /show              show what is known of the model
  /clear             forget what was said so far
  /bye               leave, as Ctrl-D does
  """                begin a message of several lines, and end it
  Ctrl-C             stop the answer'''


class Session:
    """One chat. `card` is what the server says of the model; `verbose` shows counts after each answer."""

    def __init__(self, server: Server, conversation: Conversation, *, card: ShowReply, verbose: bool) -> None:
        self._server = server
        self._conversation = conversation
        self._card = card
        self._verbose = verbose

    def chat(self, read: Callable[[], str] = read_message) -> None:
        """Chat until the person leaves."""
        with loading_bar(self._server, self._conversation.model):
            self._conversation.load()
        edit_lines()
        while True:
            try:
                text = read()
            except EOFError:
                click.echo()
                return
            except KeyboardInterrupt:
                click.echo("\nCtrl-D or /bye leaves.")
                continue
            if text == "/bye":
                return
            if text.startswith("/"):
                click.echo(self._obey(text))
            elif text:
                self._converse(text)

    def answer(self, question: str) -> None:
        """Ask one thing and show the answer. Raises Failure, KeyboardInterrupt."""
        screen, last = Screen(), None
        try:
            with (
                loading_bar(self._server, self._conversation.model) as bar,
                closing(self._conversation.ask(question)) as lines,
            ):
                for line in lines:
                    bar.clear()
                    screen.show(line)
                    last = line
        finally:
            screen.end()
        if self._verbose and last is not None:
            click.echo(counts(last), err=True)

    def _converse(self, question: str) -> None:
        try:
            self.answer(question)
        except KeyboardInterrupt:
            click.echo("(stopped)", err=True)
        except Failure as failure:
            failure.show()

    def _obey(self, text: str) -> str:
        """Do what a word with a slash says, and return what to tell of it."""
        match text.split(maxsplit=2):
            case ["/help" | "/?"]:
                return HELP
            case ["/clear"]:
                self._conversation.clear()
                return "What was said is forgotten."
            case ["/show"]:
                return in_words(self._card)
            case ["/set", "system"]:
                self._conversation.system = ""
                return "There is no system prompt any more."
            case ["/set", "system", system]:
                self._conversation.system = system
                return "The system prompt is set."
            case words:
                return f"{' '.join(words[:1])} is not known here; /help tells what is."
