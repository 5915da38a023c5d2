"""Tokens: how a registry is told who asks.

A registry answers 401 and says where a token is to be had. The request for it is signed with a key of this
machine (ed25519), as Ollama's client does it; the account that the key belongs to is the registry's matter. A
registry that sends us to another host for the token gets none, because the signature would be good there too
(GO-2025-3824).

Invariant: a signature and a token go to the registry that asked for them, and to no other.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
import re
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Final

import httpx2
import msgspec

from diglot.core.errors import AccessRefused, UpstreamFailed
from diglot.core.foreign import UNREADABLE
from diglot.store.fetch.web import Web, origin_of, read, require_success

_PARAMETER: Final = re.compile(r'(\w+)="([^"]*)"')
_LONGEST: Final = 1 << 16
_EMPTY: Final = base64.b64encode(hashlib.sha256(b"").hexdigest().encode()).decode()


class TokenReply(msgspec.Struct):
    """What the host for tokens answers; registries use either name."""

    token: str = ""
    access_token: str = ""


class Challenge(msgspec.Struct, frozen=True):
    """What a 401 asks for: a token from `realm`, for a service and some scopes."""

    realm: httpx2.URL
    service: str
    scopes: tuple[str, ...]

    @classmethod
    def read(cls, response: httpx2.Response) -> Challenge | None:
        """Read the header of a 401; None where it asks for nothing that we know."""
        header = response.headers.get("www-authenticate", "")
        if not header.lower().startswith("bearer "):
            return None
        parameters = dict(_PARAMETER.findall(header))
        try:
            realm = response.url.join(parameters.get("realm", ""))
        except httpx2.InvalidURL:
            return None
        return cls(realm, parameters.get("service", ""), tuple(parameters.get("scope", "").split()))

    def url(self, *, now: int, nonce: str) -> httpx2.URL:
        """Return the URL that is asked, and signed."""
        wanted = [("service", self.service), *(("scope", scope) for scope in self.scopes)]
        return self.realm.copy_with(params=[*wanted, ("ts", str(now)), ("nonce", nonce)])


class Identity:
    """The key of this machine, in the file `path`, made when it is first needed."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def sign(self, method: str, url: httpx2.URL) -> str:
        """Return the header that proves a request without a body to be ours."""
        from cryptography.hazmat.primitives import serialization  # noqa: PLC0415  Rarely needed, slow to import.
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415

        key = serialization.load_ssh_private_key(self._pem(), password=None)
        if not isinstance(key, Ed25519PrivateKey):
            raise AccessRefused(url.host, reason=f"{self._path} holds no ed25519 key")
        public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
        signature = key.sign(f"{method},{url},{_EMPTY}".encode())
        return f"{public.split()[1].decode()}:{base64.b64encode(signature).decode()}"

    def _pem(self) -> bytes:
        try:
            return self._path.read_bytes()
        except FileNotFoundError:
            return self._made()

    def _made(self) -> bytes:
        """Make a key; of two processes that do at once, the first one's counts."""
        from cryptography.hazmat.primitives import serialization  # noqa: PLC0415
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415

        encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH
        pem = Ed25519PrivateKey.generate().private_bytes(encoding, form, serialization.NoEncryption())
        self._path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._path.with_name(f"{self._path.name}.{secrets.token_hex(8)}")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(pem)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(fresh, self._path)
        except FileExistsError:
            pass
        finally:
            fresh.unlink()
        return self._path.read_bytes()


class Tokens:
    """The credentials for one registry. Implements `fetch.web.Credentials`."""

    def __init__(self, registry: httpx2.URL, identity: Identity, *, now: Callable[[], float]) -> None:
        self._origin = origin_of(registry)
        self._identity = identity
        self._now = now
        self._token = ""

    def header(self, url: httpx2.URL) -> str | None:
        """Return the token, for the registry only."""
        return f"Bearer {self._token}" if self._token and origin_of(url) == self._origin else None

    async def challenged(self, web: Web, response: httpx2.Response) -> bool:
        """Get a token, unless it is another host than the registry that asks or that is to give it."""
        challenge = Challenge.read(response)
        if challenge is None or origin_of(response.url) != self._origin:
            return False
        if origin_of(challenge.realm) != self._origin:
            raise AccessRefused(
                response.url.host,
                reason=f"it wants a token from another host, {challenge.realm.host}, which is not told who we are",
            )
        url = challenge.url(now=int(self._now()), nonce=secrets.token_urlsafe(16))
        signature = await asyncio.to_thread(self._identity.sign, "GET", url)
        async with web.open("GET", url, signed=signature) as answer:
            if answer.status_code >= 400:  # noqa: PLR2004  the class of HTTP's refusals
                raise AccessRefused(url.host, reason=f"it gives this machine's key no token ({answer.status_code})")
            await require_success(answer)
            try:
                reply = msgspec.json.decode(await read(answer, limit=_LONGEST), type=TokenReply)
            except UNREADABLE as error:
                raise UpstreamFailed(url.host, reason="its token makes no sense") from error
        self._token = reply.token or reply.access_token
        return bool(self._token)
