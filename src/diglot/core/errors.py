"""Faults: everything that can go wrong with a request, as a closed set.

    Fault
    ├── the request is wrong: the client can mend it
    │   ├── MalformedBody       the bytes are no JSON object, or no text
    │   ├── InvalidField        a field has a wrong type or value
    │   ├── UnsupportedField    a field asks for what this server or this model cannot do
    │   ├── WrongDigest         the content that came has another digest than was said
    │   ├── HeadTooLarge        more of a head than is read
    │   ├── BodyTooLarge        more bytes than are read
    │   ├── TooSlow             the request does not arrive in the time that it has
    │   ├── UnknownCoding       the body is compressed in a way that is not known
    │   ├── TooMany             more of something than one request may hold
    │   ├── UnknownPath         no operation has this path
    │   ├── WrongMethod         the path exists, not with this method
    │   ├── ContextExceeded     the prompt is longer than the context window
    │   ├── BrokenCompaction    a compaction item that is not ours or was changed
    │   ├── NothingGained       a compaction would make the conversation no shorter
    │   ├── UnknownResponse     no stored response has this id
    │   ├── Forbidden           it comes from where nobody may call from
    │   └── KeyMissing          it lacks the key that this server wants
    ├── the model is not what the request needs
    │   ├── ModelUnnamed        no name was given where one is needed
    │   ├── ModelNotFound       the name is not among the downloaded models
    │   ├── ModelIncapable      the model cannot do this
    │   ├── NoModel             no name was given, and there is no model to take instead
    │   ├── ModelBroken         the files of the model are damaged or of an unknown kind
    │   ├── ModelForeign        the model is another program's, and is only read here
    │   └── NotOffered          a registry does not have the model, or not in a form that can be run here
    ├── the server cannot now
    │   ├── Busy                the queue is full; says when to come back
    │   ├── LoadFailed          the engine could not load the model
    │   ├── EngineCrashed       the engine's process ended while it answered
    │   ├── EngineFailed        the engine reported an error, or a bug of ours; carries an id for the log
    │   ├── CompactionFailed    no usable summary in three attempts; the conversation is as it was
    │   ├── NoSpace             the disk is too full for what is to come
    │   ├── ResponsesUnavailable the stored responses cannot be reached or added to
    │   ├── AccessRefused       a remote server lets us not do this
    │   └── UpstreamFailed      a remote server cannot be reached or makes no sense
    └── Cancelled               the client left, or the server is going down

A fault is raised, never returned, and never recognised by its text. It knows no status code and no
protocol: each dialect has one table that gives every kind its form.
"""

from __future__ import annotations


class Fault(Exception):
    """The root. `message` is one sentence for the person who sent the request."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class MalformedBody(Fault):
    """The body is no JSON, no object, or holds text that is no Unicode."""


class InvalidField(Fault):
    """`field` (a dotted path such as `messages[0].role`) has a wrong type or value; `reason` says what is wrong."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


class UnsupportedField(Fault):
    """`field` asks for something that cannot be done here; `reason` says what."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


class WrongDigest(Fault):
    """A content has the digest `found` instead of `expected`, both as `sha256:<hex>`; `where` it came from, if not a client."""

    def __init__(self, *, expected: str, found: str, where: str = "") -> None:
        source = f" from {where}" if where else ""
        super().__init__(f"the content{source} has the digest {found} instead of {expected}")
        self.expected = expected
        self.found = found
        self.where = where


class HeadTooLarge(Fault):
    """The head of the request, its path and headers, has more than `limit` bytes."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"the request head is larger than the limit of {limit} bytes")
        self.limit = limit


class TooSlow(Fault):
    """A part of the request (`head`, `body`) did not arrive within `seconds`."""

    def __init__(self, part: str, *, seconds: float) -> None:
        super().__init__(f"the {part} of the request did not arrive within {seconds} seconds")
        self.part = part
        self.seconds = seconds


class BodyTooLarge(Fault):
    """The body, or what it unpacks to, has more than `limit` bytes."""

    def __init__(self, limit: int, *, unpacked: bool = False) -> None:
        what = "unpacks to more than" if unpacked else "is larger than"
        super().__init__(f"the request body {what} the limit of {limit} bytes")
        self.limit = limit


class UnknownCoding(Fault):
    """The body is coded with `coding`; `known` names the codings that are undone here."""

    def __init__(self, coding: str, *, known: str) -> None:
        super().__init__(f"the content coding {coding!r} is not known here, only {known}")
        self.coding = coding
        self.known = known


class TooMany(Fault):
    """`field` holds `count` things of a `kind` (as `inputs`, `tools`), more than `limit`."""

    def __init__(self, field: str, *, count: int, limit: int, kind: str = "inputs") -> None:
        super().__init__(f"{field}: {count} {kind} are more than the limit of {limit} in one request")
        self.field = field
        self.count = count
        self.limit = limit
        self.kind = kind


class UnknownPath(Fault):
    """No operation has this path."""

    def __init__(self, path: str) -> None:
        super().__init__(f"there is nothing at {path}")
        self.path = path


class WrongMethod(Fault):
    """The path exists, but not with this method; `allowed` are the ones that do."""

    def __init__(self, method: str, *, path: str, allowed: tuple[str, ...]) -> None:
        super().__init__(f"{method} is not allowed on {path}, use {' or '.join(allowed)}")
        self.method = method
        self.path = path
        self.allowed = allowed


class ContextExceeded(Fault):
    """The prompt has `tokens` tokens (0: more than fits, uncounted) and the window holds `window`."""

    def __init__(self, *, tokens: int, window: int) -> None:
        size = f"has {tokens} tokens" if tokens else "is too long"
        super().__init__(f"the prompt {size}, the context window holds {window} tokens")
        self.tokens = tokens
        self.window = window


class BrokenCompaction(Fault):
    """A compaction item cannot be used; `reason` says why, `field` is where it stands once that is known."""

    def __init__(self, reason: str, *, field: str = "input") -> None:
        super().__init__(f"{field}: this compaction item cannot be used: {reason}")
        self.reason = reason
        self.field = field


class NothingGained(Fault):
    """The conversation has `before` tokens and would have `after` once compacted."""

    def __init__(self, *, before: int, after: int) -> None:
        super().__init__(f"compaction was refused: it would turn {before} tokens into {after}")
        self.before = before
        self.after = after


class UnknownResponse(Fault):
    """No stored response has the id `response`; `field` is where it was named."""

    def __init__(self, response: str, *, field: str | None = None) -> None:
        super().__init__(f"no response {response!r} is stored here")
        self.response = response
        self.field = field


class Forbidden(Fault):
    """The request comes from a web page or by a name that may not call; the message says which setting decides."""


class KeyMissing(Fault):
    """The server was given a key, and the request does not bring it."""

    def __init__(self) -> None:
        super().__init__("this server wants its key, as a bearer token")


class ModelUnnamed(Fault):
    """The request names no model where one is needed."""

    def __init__(self) -> None:
        super().__init__("a model is required")


class ModelNotFound(Fault):
    """`name`, as the client wrote it, is not among the downloaded models."""

    def __init__(self, name: str) -> None:
        super().__init__(f"model {name!r} is not among the downloaded models")
        self.name = name


class ModelIncapable(Fault):
    """The model `name` lacks `ability` (one word, such as `chat`, `embedding`, `vision`, `thinking`)."""

    def __init__(self, name: str, *, ability: str) -> None:
        super().__init__(f"model {name!r} does not support {ability}")
        self.name = name
        self.ability = ability


class NoModel(Fault):
    """No model was named and there is none to take; `ability` is what was needed."""

    def __init__(self, *, ability: str) -> None:
        super().__init__(f"no {ability} model is downloaded")
        self.ability = ability


class ModelBroken(Fault):
    """The files of `name` are damaged or of an unknown kind; `reason` says what and where."""

    def __init__(self, name: str, *, reason: str) -> None:
        super().__init__(f"model {name!r} cannot be used: {reason}")
        self.name = name
        self.reason = reason


class ModelForeign(Fault):
    """The model `name` lies with another program or on another machine, where this server changes nothing."""

    def __init__(self, name: str) -> None:
        super().__init__(f"model {name!r} belongs to another program and is only read here")
        self.name = name


class NotOffered(Fault):
    """`where` (a registry) has no model `name`; with a `reason` it has one, which is of no use here."""

    def __init__(self, name: str, *, where: str, reason: str = "") -> None:
        what = f"the model {name!r} of {where} cannot be used: {reason}" if reason else f"{where} has no model {name!r}"
        super().__init__(what)
        self.name = name
        self.where = where
        self.reason = reason


class Busy(Fault):
    """Everything is taken and the queue is full; `retry_after` is in seconds."""

    def __init__(self, *, retry_after: float, message: str = "the server is busy, please try again") -> None:
        super().__init__(message)
        self.retry_after = retry_after


class LoadFailed(Fault):
    """The engine could not load `name`; `reason` is fit for the client, `detail` for the log."""

    def __init__(self, name: str, *, reason: str, detail: str = "") -> None:
        super().__init__(f"model {name!r} could not be loaded: {reason}")
        self.name = name
        self.reason = reason
        self.detail = detail


class EngineCrashed(Fault):
    """The process that ran the model ended in the middle of the answer; the next request starts it anew.

    `how` says it where it was us who ended it.
    """

    def __init__(self, name: str, *, how: str = "", detail: str = "") -> None:
        super().__init__(f"the engine of model {name!r} {how or 'ended unexpectedly'}")
        self.name = name
        self.detail = detail


class EngineFailed(Fault):
    """The engine reported an error, or we have a bug. `id` finds the log line that holds `detail`."""

    def __init__(self, message: str = "the engine failed", *, id: str = "", detail: str = "") -> None:  # noqa: A002
        super().__init__(message)
        self.id = id
        self.detail = detail


class CompactionFailed(Fault):
    """The model gave no usable summary; nothing was changed. `reason` is fit for the client."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"compaction failed, the conversation is unchanged: {reason}")
        self.reason = reason


class NoSpace(Fault):
    """There are `free` bytes on the disk and `needed` more are to come (0: unknown)."""

    def __init__(self, *, needed: int, free: int) -> None:
        sizes = f": {needed} bytes are to be written and {free} are free" if needed else ""
        super().__init__(f"the disk is too full{sizes}")
        self.needed = needed
        self.free = free


class ResponsesUnavailable(Fault):
    """The stored responses cannot be reached or added to; `reason` is fit for the client, `detail` for the log."""

    def __init__(self, reason: str, *, detail: str = "") -> None:
        super().__init__(f"the stored responses are not available: {reason}")
        self.reason = reason
        self.detail = detail


class AccessRefused(Fault):
    """The remote server `where` knows us not, or not well enough; `reason` is what it says, or what helps."""

    def __init__(self, where: str, *, reason: str) -> None:
        super().__init__(f"{where} refuses access: {reason}")
        self.where = where
        self.reason = reason


class UpstreamFailed(Fault):
    """The remote server `where` cannot be reached or answers with nonsense."""

    def __init__(self, where: str, *, reason: str, detail: str = "") -> None:
        super().__init__(f"the remote server {where} failed: {reason}")
        self.where = where
        self.reason = reason
        self.detail = detail


class Cancelled(Fault):
    """The request was given up: the client has `left`, or the server is going down."""

    def __init__(self, reason: str = "the request was cancelled", *, left: bool = False) -> None:
        super().__init__(reason)
        self.left = left


AnyFault = (
    MalformedBody
    | InvalidField
    | UnsupportedField
    | HeadTooLarge
    | BodyTooLarge
    | TooSlow
    | WrongDigest
    | UnknownCoding
    | TooMany
    | UnknownPath
    | WrongMethod
    | ContextExceeded
    | BrokenCompaction
    | NothingGained
    | UnknownResponse
    | Forbidden
    | KeyMissing
    | ModelUnnamed
    | ModelNotFound
    | ModelIncapable
    | NoModel
    | ModelBroken
    | ModelForeign
    | NotOffered
    | Busy
    | LoadFailed
    | EngineCrashed
    | EngineFailed
    | CompactionFailed
    | NoSpace
    | ResponsesUnavailable
    | AccessRefused
    | UpstreamFailed
    | Cancelled
)
"""The closed set: a dialect's table matches over this and ends in `assert_never`."""
