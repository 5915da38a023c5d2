"""Connections that are read in threads: kept, given up, broken off, and safe."""

from __future__ import annotations

import asyncio
import datetime as dt
import ipaddress
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Final
from urllib.request import getproxies

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from diglot.store.fetch.lines import Lines
from diglot.store.fetch.web import Anonymous, Broken, Web, pieces, read

LARGE = bytes(range(256)) * (1 << 14)
"""Four megabytes."""
ANSWERS: Final[Mapping[str, tuple[bytes, bool]]] = {
    "/large": (b" 200 OK\r\nContent-Length: %d\r\n\r\n" % len(LARGE) + LARGE, False),
    "/chunks": (b" 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nfour\r\n2\r\nto\r\n0\r\n\r\n", False),
    "/short": (b" 200 OK\r\nContent-Length: 10\r\n\r\nhalf", True),
    "/endless": (b" 200 OK\r\n\r\nall of it", True),
    "/once": (b" 200 OK\r\nContent-Length: 2\r\n\r\nok", True),
    "/last": (b" 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", True),
    "/surplus": (b" 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok, and more", True),
    "/stuck": (b" 200 OK\r\nContent-Length: 100\r\n\r\nsome", False),
    "/silent": (b"", False),
    "/nonsense": (b"SSH-2.0-what\r\n\r\n", True),
}
"""What is said at each path, and whether the connection ends with it."""


class Host:
    """A server that counts its connections and answers each path in its own way."""

    def __init__(self) -> None:
        self.connections = 0
        self.met = asyncio.Event()
        self.left = asyncio.Event()
        self.url = ""

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer what comes over one connection."""
        self.connections += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                self.met.set()
                self._say(head.split()[1].decode().removeprefix("http://through.example"), writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            self.left.set()
        finally:
            writer.close()

    def _say(self, path: str, writer: asyncio.StreamWriter) -> None:
        answer, closes = ANSWERS.get(path, (b" 404 Not Found\r\nContent-Length: 0\r\n\r\n", False))
        writer.write(b"HTTP/1.1" + answer if answer.startswith(b" ") else answer)
        if closes:
            writer.close()


@pytest.fixture
async def host() -> AsyncIterator[Host]:
    host = Host()
    async with await asyncio.start_server(host.answer, "127.0.0.1", 0) as server:
        host.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield host


@pytest.fixture(autouse=True)
def _nobody_between(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the proxy of this machine: the way over one is not read in threads."""
    for name in getproxies():
        monkeypatch.delenv(f"{name}_proxy", raising=False)
        monkeypatch.delenv(f"{name}_proxy".upper(), raising=False)


@pytest.fixture
async def web() -> AsyncIterator[Web]:
    before = threading.enumerate()
    web = Web(Anonymous(), stall=30)
    yield web
    await web.close()
    assert not [each for each in threading.enumerate() if each not in before and each.name.startswith("line")]


async def fetched(web: Web, url: str) -> bytes:
    async with web.open("GET", httpx2.URL(url)) as response:
        return await read(response, limit=1 << 24)


async def test_a_connection_is_kept_once_its_answer_is_read(web: Web, host: Host) -> None:
    assert await fetched(web, f"{host.url}/large") == LARGE
    assert await fetched(web, f"{host.url}/chunks") == b"fourto"
    assert await fetched(web, f"{host.url}/nothing") == b""
    assert await fetched(web, f"{host.url}/large") == LARGE
    assert host.connections == 1


async def test_a_connection_whose_answer_was_not_read_is_not_used_again(web: Web, host: Host) -> None:
    async with web.open("GET", httpx2.URL(f"{host.url}/large")):
        pass
    assert await fetched(web, f"{host.url}/chunks") == b"fourto"
    assert host.connections == 2


async def test_a_connection_that_the_host_has_closed_is_not_used_again(web: Web, host: Host) -> None:
    assert await fetched(web, f"{host.url}/once") == b"ok"
    await host.left.wait()
    assert await fetched(web, f"{host.url}/chunks") == b"fourto"
    assert host.connections == 2


async def test_what_has_no_length_ends_with_the_connection(web: Web, host: Host) -> None:
    assert await fetched(web, f"{host.url}/endless") == b"all of it"


@pytest.mark.parametrize("path", ["/last", "/surplus"])
async def test_no_more_is_taken_than_was_announced(web: Web, host: Host, path: str) -> None:
    assert await fetched(web, host.url + path) == b"ok"


async def test_of_several_addresses_the_first_that_answers_is_taken(
    web: Web, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = httpx2.URL(host.url).port

    async def several(*_: object, **__: object) -> list[object]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", each)) for each in (1, port)]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", several)
    assert await fetched(web, f"http://several.example:{port}/chunks") == b"fourto"


async def test_what_comes_slowly_is_told_of_when_it_comes(web: Web, host: Host) -> None:
    """Four bytes of a hundred, and no more for as long as anybody waits."""
    async with web.open("GET", httpx2.URL(f"{host.url}/stuck")) as response:
        assert await anext(pieces(response)) == b"some"


async def test_an_answer_that_ends_early_is_broken(web: Web, host: Host) -> None:
    async with web.open("GET", httpx2.URL(f"{host.url}/short")) as response:
        stream = pieces(response)
        assert await anext(stream) == b"half"
        with pytest.raises(Broken, match="ended early"):
            await anext(stream)


@pytest.mark.parametrize("path", ["/nonsense", "/silent"])
async def test_what_is_no_answer_is_broken(host: Host, path: str) -> None:
    web = Web(Anonymous(), stall=0.2)
    try:
        with pytest.raises(Broken):
            await fetched(web, host.url + path)
    finally:
        await web.close()


async def test_who_is_not_there_is_told_of(web: Web) -> None:
    with pytest.raises(Broken):
        await fetched(web, "http://127.0.0.1:1/x")


@pytest.mark.parametrize("path", ["/stuck", "/silent"])
async def test_whoever_waits_for_an_answer_can_leave_at_once(web: Web, host: Host, path: str) -> None:
    asking = asyncio.create_task(fetched(web, host.url + path))
    await host.met.wait()
    asking.cancel()
    await asyncio.wait({asking})
    assert asking.cancelled()
    await host.left.wait()  # The connection is closed long before thirty seconds without a byte are over.


async def test_the_way_leads_over_the_proxy_of_the_machine(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", host.url)
    web = Web(Anonymous())
    try:
        async with web.open("GET", httpx2.URL("http://elsewhere.example/large")) as response:
            assert response.status_code == 404  # The whole URL is the path that the proxy is asked for.
    finally:
        await web.close()
    assert host.connections == 1


async def test_what_came_through_a_proxy_before_it_broke_off_is_not_lost(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", host.url)
    web = Web(Anonymous())
    try:
        assert await fetched(web, "http://through.example/large") == LARGE
        async with web.open("GET", httpx2.URL("http://through.example/short")) as response:
            stream = pieces(response)
            assert await anext(stream) == b"half"
            with pytest.raises(Broken):
                await anext(stream)
    finally:
        await web.close()


@pytest.fixture
def contexts(tmp_path: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return what a server shows of itself, and what a client needs to trust it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = tmp_path / "pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = certificate.public_bytes(serialization.Encoding.PEM)
    pem.write_bytes(private + public)
    shown = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    shown.load_cert_chain(pem)
    return shown, ssl.create_default_context(cadata=public.decode())


async def test_a_safe_connection_is_read_and_kept_like_any(contexts: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    host, (shown, trusted) = Host(), contexts
    async with await asyncio.start_server(host.answer, "127.0.0.1", 0, ssl=shown) as server:
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with httpx2.AsyncClient(transport=Lines(most=2, secure=trusted)) as client:
            assert (await client.get(f"{url}/large")).content == LARGE
            assert (await client.get(f"{url}/large")).content == LARGE
            assert (await client.get(f"{url}/last")).content == b"ok"
            assert (await client.get(f"{url}/chunks")).content == b"fourto"


async def test_a_host_that_nobody_vouches_for_is_not_talked_to(
    contexts: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    host, (shown, _) = Host(), contexts
    async with await asyncio.start_server(host.answer, "127.0.0.1", 0, ssl=shown) as server:
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/large"
        async with httpx2.AsyncClient(transport=Lines(most=2)) as client:
            with pytest.raises(httpx2.TransportError, match="certificate"):
                await client.get(url)
