"""The stream of a response: its events, in their order, each with its number.

An item is opened when its first piece comes and closed before the next one begins, or at the end. When a stream
breaks, what was open is not closed, for a client that tries again takes up what it was given as done; the failed response
holds it as incomplete, after all that was closed. Neighbours: `output` for the items, `reply` for the response.

Invariants: `response.created` comes first; one of `completed`, `incomplete` and `failed` comes last, and nothing
after it; the items, when they are done, are those of the whole response.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, assert_never

import msgspec

from diglot.core.errors import AnyFault
from diglot.core.events import (
    Compacted,
    Event,
    Finished,
    Progress,
    ReasoningDelta,
    Started,
    TextDelta,
    TokenLogprob,
    ToolCallDone,
    Usage,
)
from diglot.core.items import ToolCall
from diglot.core.result import Status
from diglot.dialects.openai.logprobs import token_logprobs
from diglot.dialects.openai.responses import calls
from diglot.dialects.openai.responses.failure import failure
from diglot.dialects.openai.responses.ids import item_id
from diglot.dialects.openai.responses.output import (
    CompactionReply,
    MessageReply,
    OutputTextReply,
    ReasoningReply,
    ReasoningTextReply,
    SummaryTextReply,
    compaction_reply,
    message_reply,
    reasoning_reply,
)
from diglot.dialects.openai.responses.reply import ErrorReply, View, encode, response_reply
from diglot.dialects.operation import Stamp

Framing = Callable[[bytes, bytes], bytes]
"""Puts the data of one event, and its name, into the form of a transport."""


_DELTA: Final = b'{"type":"response.output_text.delta","sequence_number":'
_NO_LOGPROBS: Final = b',"logprobs":[]}'


class _Run(msgspec.Struct):
    """A run of text or of reasoning while it is open. `head` is what every piece of text has before its words."""

    kind: Literal["text", "thought"]
    id: str
    index: int
    head: bytes = b""
    pieces: list[str] = []
    logprobs: list[TokenLogprob] = []


class ResponseStream:
    """Renders the events of a response."""

    def __init__(self, view: View, stamp: Stamp, framing: Framing) -> None:
        self._view = view
        self._stamp = stamp
        self._framing = framing
        self._number = 0
        self._output: list[Any] = []
        self._open: _Run | None = None
        self._early: tuple[TokenLogprob, ...] = ()
        self._usage = Usage()
        self._model = ""
        self._cut = False
        self._finished = stamp.now
        self._begun = self._ended = False

    def feed(self, event: Event, now: float) -> bytes:  # noqa: ARG002  When it ended, the event itself says.
        """Render one event."""
        if isinstance(event, Progress):
            return b""  # The headers wait for the answer, or for a sign of life.
        if isinstance(event, Started):
            self._usage = Usage(input=event.input_tokens)
            self._model = event.model
            return self._head()
        head = self._head()
        match event:
            case TextDelta():
                piece = self._text(event)
            case ReasoningDelta():
                piece = self._thought(event.text)
            case ToolCallDone():
                piece = self._close() + self._call(event.call)
            case Finished():
                self._usage = self._usage.plus(event.usage)
                self._cut = event.reason == "length"
                self._finished = self._stamp.now + event.timings.total / 1e9
                piece = self._close(cut=self._cut)
            case Compacted():
                piece = self._compacted(event)
            case _:
                assert_never(event)
        return head + piece

    def beat(self) -> bytes:
        """Render a sign of life: clients count events, not comments, when they wait."""
        if self._ended:
            return b""
        return self._head() or self._status("response.in_progress", "in_progress")

    def close(self) -> bytes:
        """Render the last event."""
        status: Status = "incomplete" if self._cut else "completed"
        return self._end(f"response.{status}", status)

    def fail(self, fault: AnyFault) -> bytes:
        """Render the last event of a stream that broke."""
        run, self._open = self._open, None
        if run is not None:
            self._output.append(self._item(run, "incomplete"))
        return self._end("response.failed", "failed", failure(fault))

    def _head(self) -> bytes:
        if self._begun:
            return b""
        self._begun = True
        return self._status("response.created", "in_progress") + self._status("response.in_progress", "in_progress")

    def _end(self, kind: str, status: Status, error: ErrorReply | None = None) -> bytes:
        if self._ended:
            return b""
        self._ended = True
        head = self._head()
        return head + self._status(kind, status, output=self._output, usage=self._usage, error=error)

    def _status(
        self,
        kind: str,
        status: Status,
        *,
        output: Sequence[Any] = (),
        usage: Usage | None = None,
        error: ErrorReply | None = None,
    ) -> bytes:
        reply = response_reply(
            self._view,
            self._stamp,
            status=status,
            model=self._model,
            output=output,
            usage=usage,
            finished=self._finished,
            error=error,
        )
        return self._event(kind, response=reply)

    def _event(self, kind: str, **fields: Any) -> bytes:
        data = encode({"type": kind, "sequence_number": self._number, **fields})
        self._number += 1
        return self._framing(kind.encode(), data)

    def _part(self, kind: str, run: _Run, **fields: Any) -> bytes:
        return self._event(kind, item_id=run.id, output_index=run.index, **fields)

    def _added(self, item: Any) -> bytes:
        return self._event("response.output_item.added", output_index=len(self._output), item=item)

    def _done(self, item: Any) -> bytes:
        piece = self._event("response.output_item.done", output_index=len(self._output), item=item)
        self._output.append(item)
        return piece

    def _text(self, event: TextDelta) -> bytes:
        if not event.text and not (event.logprobs and self._open and self._open.kind == "text"):
            self._early += event.logprobs
            return b""
        piece = b""
        run = self._open
        if run is None or run.kind != "text":
            piece = self._close()
            run = self._open = self._run_of_text()
            begun = MessageReply(id=run.id, status="in_progress", role="assistant", content=[])
            piece += self._added(begun)
            piece += self._part("response.content_part.added", run, content_index=0, part=OutputTextReply(""))
        logprobs, self._early = self._early + event.logprobs, ()
        run.pieces.append(event.text)
        run.logprobs.extend(logprobs)
        if not logprobs:  # By far the commonest of all events: its words are put between ready bytes.
            self._number += 1
            data = b"%b%d%b%b%b" % (_DELTA, self._number - 1, run.head, encode(event.text), _NO_LOGPROBS)
            return piece + self._framing(b"response.output_text.delta", data)
        delta = {"content_index": 0, "delta": event.text, "logprobs": token_logprobs(logprobs)}
        return piece + self._part("response.output_text.delta", run, **delta)

    def _run_of_text(self) -> _Run:
        name, index = self._id("msg"), len(self._output)
        fields = {"item_id": name, "output_index": index, "content_index": 0}
        return _Run(kind="text", id=name, index=index, head=b"," + encode(fields)[1:-1] + b',"delta":')

    def _thought(self, text: str) -> bytes:
        if not text:
            return b""
        piece = b""
        run = self._open
        if run is None or run.kind != "thought":
            piece = self._close()
            run = self._open = _Run(kind="thought", id=self._id("rs"), index=len(self._output))
            piece += self._thought_begun(run)
        run.pieces.append(text)
        if self._view.open_text:
            return piece + self._part("response.reasoning_text.delta", run, content_index=0, delta=text)
        return piece + self._part("response.reasoning_summary_text.delta", run, summary_index=0, delta=text)

    def _thought_begun(self, run: _Run) -> bytes:
        if self._view.open_text:
            empty: list[ReasoningTextReply] = []
            added = self._added(ReasoningReply(id=run.id, summary=[], content=empty, status="in_progress"))
            return added + self._part("response.content_part.added", run, content_index=0, part=ReasoningTextReply(""))
        added = self._added(ReasoningReply(id=run.id, summary=[], status="in_progress"))
        part = SummaryTextReply("")
        return added + self._part("response.reasoning_summary_part.added", run, summary_index=0, part=part)

    def _close(self, *, cut: bool = False) -> bytes:
        """Close the item that is open, if there is one."""
        run, self._open = self._open, None
        if run is None:
            return b""
        item = self._item(run, "incomplete" if cut else "completed")
        if isinstance(item, ReasoningReply):
            return self._thought_done(run, item)
        part = item.content[0]
        text, logprobs = "".join(run.pieces), token_logprobs(run.logprobs)
        return (
            self._part("response.output_text.done", run, content_index=0, text=text, logprobs=logprobs)
            + self._part("response.content_part.done", run, content_index=0, part=part)
            + self._done(item)
        )

    def _item(self, run: _Run, status: calls.Status) -> MessageReply | ReasoningReply:
        """Return what a run has become."""
        text = "".join(run.pieces)
        if run.kind == "thought":
            return reasoning_reply(text, id=run.id, open_text=self._view.open_text, status=status)
        return message_reply(text, id=run.id, status=status, logprobs=run.logprobs)

    def _thought_done(self, run: _Run, item: ReasoningReply) -> bytes:
        text = "".join(run.pieces)
        if self._view.open_text:
            return (
                self._part("response.reasoning_text.done", run, content_index=0, text=text)
                + self._part("response.content_part.done", run, content_index=0, part=ReasoningTextReply(text))
                + self._done(item)
            )
        part = SummaryTextReply(text)
        return (
            self._part("response.reasoning_summary_text.done", run, summary_index=0, text=text)
            + self._part("response.reasoning_summary_part.done", run, summary_index=0, part=part)
            + self._done(item)
        )

    def _call(self, call: ToolCall) -> bytes:
        name = self._id(calls.prefix_of(call))
        run = _Run(kind="text", id=name, index=len(self._output))
        item = calls.call_reply(call, id=name)
        piece = self._added(calls.begun_reply(call, id=name))
        match item:
            case calls.FunctionCallReply():
                piece += self._part("response.function_call_arguments.delta", run, delta=item.arguments)
                piece += self._part(
                    "response.function_call_arguments.done", run, name=item.name, arguments=item.arguments
                )
            case calls.CustomCallReply():
                piece += self._part("response.custom_tool_call_input.delta", run, delta=item.input)
                piece += self._part("response.custom_tool_call_input.done", run, input=item.input)
            case calls.ShellCallReply():
                piece += self._commands(item.action.commands, run.index)
            case calls.SearchCallReply() | calls.LocalShellCallReply() | calls.PatchCallReply():
                pass
            case _:
                assert_never(item)
        return piece + self._done(item)

    def _commands(self, commands: Sequence[str], output: int) -> bytes:
        kind = "response.shell_call_command"
        piece = b""
        for index, command in enumerate(commands):
            place = {"output_index": output, "command_index": index}
            piece += self._event(f"{kind}.added", **place, command="")
            piece += self._event(f"{kind}.delta", **place, delta=command)
            piece += self._event(f"{kind}.done", **place, command=command)
        return piece

    def _compacted(self, event: Compacted) -> bytes:
        """Render a compaction. That it is under way is not told: OpenAI's package for JS breaks off at that event."""
        item = compaction_reply(event.item, id=self._id("cmp"))
        return self._added(CompactionReply(id=item.id, encrypted_content="")) + self._done(item)

    def _id(self, prefix: str) -> str:
        return item_id(prefix, self._stamp.id, len(self._output))
