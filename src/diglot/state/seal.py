"""The seal: compaction items that nobody else can read or change. Implements `core.ports.Seal`.

AES-256-GCM with a random nonce, under a key in a file that only its owner can read, made when it is first
needed. Deliberately no key rotation: an item lives in a client's session file and must open for as long as that.

Invariant: a text with a single bit changed does not open.
"""

from __future__ import annotations

import base64
import os
import secrets
from pathlib import Path

from diglot.core.errors import BrokenCompaction

_MARK = "diglot1."
_PURPOSE = b"diglot compaction 1"
_NONCE = 12
_KEY = 32


class FileSeal:
    """Seals with the key in `path`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._key: bytes | None = None

    def knows(self, text: str) -> bool:
        """Whether the text has the mark of something sealed here."""
        return text.startswith(_MARK)

    def close(self, text: str) -> str:
        """Return the text, sealed."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415  Rarely needed, slow to import.

        nonce = secrets.token_bytes(_NONCE)
        sealed = AESGCM(self._secret()).encrypt(nonce, text.encode(), _PURPOSE)
        return _MARK + base64.urlsafe_b64encode(nonce + sealed).decode()

    def open(self, sealed: str) -> str:
        """Return what was sealed. `BrokenCompaction` if it was changed, or sealed with another key."""
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415

        try:
            data = base64.b64decode(sealed.removeprefix(_MARK), altchars=b"-_", validate=True)
            # The last character of base64 has spare bits: what does not encode back was changed.
            if base64.urlsafe_b64encode(data).decode() != sealed.removeprefix(_MARK) or len(data) < _NONCE:
                raise ValueError
            plain: bytes = AESGCM(self._secret()).decrypt(data[:_NONCE], data[_NONCE:], _PURPOSE)
        except (ValueError, InvalidTag):  # No base64, not even ASCII; or not what was sealed.
            raise BrokenCompaction("it was changed, or sealed by another server") from None
        return plain.decode()

    def _secret(self) -> bytes:
        if self._key is None:
            self._key = _read_or_make(self._path)
        return self._key


def _read_or_make(path: Path) -> bytes:
    """Return the key, making it if there is none. Two processes that start at once agree on one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(secrets.token_bytes(_KEY))
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(fresh, path)  # Fails where a key exists: then that one counts.
    except FileExistsError:
        pass
    finally:
        fresh.unlink()
    return path.read_bytes()
