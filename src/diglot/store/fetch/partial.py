"""A content that has come in part: its bytes, and which of them are there.

The bytes lie in `blobs/sha256-<hex>-partial`, which no reader takes for a content, and what is there of
them in `-partial-parts` beside it. The second is written after the first, so that after a crash it says
less than there is and never more. Neighbours: `blob` decides what is fetched.

Invariant: one process at a time, and one task in it, has a partial content open.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

import msgspec

from diglot.core.digest import Digest
from diglot.core.foreign import UNREADABLE
from diglot.store.files import TooLarge, read_bounded, sync_folder
from diglot.store.intake import space_told

PARTIAL: Final = "-partial"
_STATE: Final = "-partial-parts"
_LARGEST: Final = 1 << 20
_HASHED: Final = 1 << 22  # Smaller, it waits for its turn to run Python more than it hashes.


class Plan(msgspec.Struct, frozen=True):
    """How a content of `size` bytes is cut, `part` bytes each, and which version of it, where its host says so."""

    size: int
    part: int
    version: str = ""

    @property
    def starts(self) -> range:
        """Where the parts begin."""
        return range(0, self.size, self.part)

    def length(self, place: int) -> int:
        """Return how many bytes a part has."""
        return min(self.part, self.size - place * self.part)


class _State(msgspec.Struct, frozen=True):
    file: int  # The number that the file system knows the bytes by: of another file this says nothing.
    plan: Plan
    done: tuple[int, ...]


class Partial:
    """The partial content that is to become `target`. `done` counts the bytes of each part that are there.

    Methods block; `write`, `hash_all` and `flush` may run in three threads at once.
    """

    def __init__(self, target: Path, number: int, plan: Plan, done: list[int]) -> None:
        self.plan = plan
        self.done = done
        self._target = target
        self._number = number
        self._hash = hashlib.sha256()
        self._hashed = 0
        self._read = memoryview(bytearray(min(_HASHED, plan.size)))
        self._ended = False

    @classmethod
    def open(cls, target: Path, plan: Plan, *, fresh: bool = False) -> Self | None:
        """Open what there is, or begin anew: if `fresh`, or where that was cut in another way. None while somebody else has it."""
        path = _beside(target, PARTIAL)
        path.parent.mkdir(parents=True, exist_ok=True)
        number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(number).st_ino != path.stat().st_ino:
                raise FileNotFoundError
        except (BlockingIOError, FileNotFoundError):  # The second: it was settled or dropped meanwhile.
            os.close(number)
            return None
        done = None if fresh else _read(target, plan, file=os.fstat(number).st_ino)
        if done is None:
            os.ftruncate(number, 0)
            done = [0] * len(plan.starts)
        return cls(target, number, plan, done)

    def is_whole(self, place: int) -> bool:
        """Whether a part is there."""
        return self.done[place] == self.plan.length(place)

    def missing(self, place: int) -> tuple[int, int]:
        """Return where the missing rest of a part begins and ends."""
        start = self.plan.starts[place]
        return start + self.done[place], start + self.plan.length(place)

    @property
    def completed(self) -> int:
        """Bytes that are there."""
        return sum(self.done)

    @property
    def frontier(self) -> int:
        """Bytes that are there without a gap, from the beginning."""
        reached = 0
        for place, done in enumerate(self.done):
            reached += done
            if not self.is_whole(place):
                break
        return reached

    @property
    def is_behind(self) -> bool:
        """Whether there is a bite to hash."""
        return self.frontier - self._hashed >= _HASHED

    def write(self, place: int, data: memoryview | bytes) -> None:
        """Take more of a part. Raises NoSpace."""
        offset, left = self.plan.starts[place] + self.done[place], memoryview(data)
        with space_told(len(data)):
            while left:  # The disk may take less at once.
                written = os.pwrite(self._number, left, offset)
                left, offset = left[written:], offset + written
        self.done[place] += len(data)

    def write_through(self, offset: int, data: memoryview | bytes) -> None:
        """Take more of the whole, which begins at `offset`; what is there is passed over. Raises NoSpace."""
        while data:
            place = offset // self.plan.part
            start, end = self.missing(place)
            here = min(len(data), self.plan.starts[place] + self.plan.length(place) - offset)
            if fresh := data[max(start - offset, 0) : min(here, end - offset)]:
                self.write(place, fresh)
            data, offset = data[here:], offset + here

    def hash_all(self) -> None:
        """Hash on, as far as there is no gap."""
        while count := os.preadv(self._number, [self._read[: self.frontier - self._hashed]], self._hashed):
            self._hash.update(self._read[:count])
            self._hashed += count

    def save(self) -> None:
        """Remember which bytes are there."""
        path, fresh = _beside(self._target, _STATE), _beside(self._target, f"{_STATE}-new")
        with space_told():  # Not brought to the disk: after a power cut the digest of the whole decides.
            fresh.write_bytes(msgspec.json.encode(_State(os.fstat(self._number).st_ino, self.plan, tuple(self.done))))
            fresh.replace(path)

    def flush(self) -> None:
        """Remember which bytes are there, and bring them to the disk, so that little of that is left for the end."""
        self.save()
        with space_told():
            os.fdatasync(self._number)

    def digest(self) -> Digest:
        """Return the digest of the whole, hashing what is not hashed yet."""
        self.hash_all()
        return Digest(self._hash.hexdigest())

    def settle(self, path: Path) -> None:
        """Move the whole, which is all there, to its place."""
        with space_told():
            os.fsync(self._number)
        self._ended = True
        _beside(self._target, PARTIAL).replace(path)
        sync_folder(path.parent)
        _beside(self._target, _STATE).unlink(missing_ok=True)

    def drop(self) -> None:
        """Forget what has come."""
        self._ended = True
        for suffix in (_STATE, PARTIAL):
            _beside(self._target, suffix).unlink(missing_ok=True)

    def close(self) -> None:
        """Remember what is there, and let somebody else have it."""
        try:
            if not self._ended:
                self.save()
        finally:
            os.close(self._number)


def bytes_there(target: Path) -> int:
    """Return how many bytes of a content are on the disk already."""
    with suppress(OSError):
        return _beside(target, PARTIAL).stat().st_blocks * 512
    return 0


def _read(target: Path, plan: Plan, *, file: int) -> list[int] | None:
    try:
        state = msgspec.json.decode(read_bounded(_beside(target, _STATE), limit=_LARGEST), type=_State)
    except (OSError, TooLarge, *UNREADABLE):
        return None
    fits = state.file == file and state.plan == plan and len(state.done) == len(plan.starts)
    if not fits or any(not 0 <= done <= plan.length(place) for place, done in enumerate(state.done)):
        return None
    return list(state.done)


def _beside(target: Path, suffix: str) -> Path:
    return target.with_name(target.name + suffix)
