"""Pictures behind links: what is fetched, from where, and how much of it. The hosts are this machine's."""

import asyncio
import datetime as dt
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from diglot.core.errors import InvalidField
from diglot.core.items import Image
from diglot.pictures.addresses import Open, is_public
from diglot.pictures.fetching import Fetcher
from tests.core.test_images import png
from tests.services.world import until

PNG: Final = png(1, 1)


class Host:
    """A web server of one connection after the other. `answer` makes the whole reply of a path."""

    def __init__(self, answer: Callable[[str], bytes]) -> None:
        self.answer = answer
        self.port = 0
        self.heads: list[str] = []
        self.open = 0
        self.connected = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request, and hold the line where the answer has no end."""
        self.open += 1
        self.connected += 1
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.heads.append(head)
            writer.write(self.answer(head.split()[1]))
            await writer.drain()
            if "wait" in head.split()[1]:
                await reader.read()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            self.open -= 1


@asynccontextmanager
async def hosting(answer: Callable[[str], bytes], *, tls: ssl.SSLContext | None = None) -> AsyncIterator[Host]:
    host = Host(answer)
    server = await asyncio.start_server(host.serve, "127.0.0.1", 0, ssl=tls)
    host.port = server.sockets[0].getsockname()[1]
    try:
        yield host
    finally:
        server.close()
        await until(lambda: not host.open)


def reply(body: bytes, *, status: str = "200 OK", **headers: str) -> bytes:
    lines = [
        f"HTTP/1.1 {status}",
        f"Content-Length: {len(body)}",
        *(f"{name}: {text}" for name, text in headers.items()),
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body


def to(place: str) -> bytes:
    return reply(b"elsewhere", status="302 Found", Location=place)


def anywhere(address: str) -> bool:
    return bool(address)


def fetcher(*, limit: int = 10_000, patience: float = 20.0, is_open: Open = anywhere, **how: Any) -> Fetcher:
    return Fetcher(limit=limit, patience=patience, is_open=is_open, **how)


async def refused(work: Fetcher, *links: str) -> str:
    """Return why the last of some links is refused."""
    with pytest.raises(InvalidField) as fault:
        await work.fetch(dict(enumerate(links)))
    assert fault.value.field == f"images[{len(links) - 1}]"
    return fault.value.reason


@pytest.mark.parametrize(
    "whole",
    [
        reply(PNG),
        reply(PNG, **{"Content-Type": "text/html"}),  # What it says it is counts for nothing.
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(PNG), PNG),
        b"HTTP/1.0 200 OK\r\n\r\n" + PNG,
    ],
)
async def test_a_picture_is_fetched_and_its_host_told_no_more_than_it_needs(whole: bytes) -> None:
    async with hosting(lambda _: whole) as host:
        came = await fetcher().fetch({3: f"http://localhost:{host.port}/a b.png?q=1 2#part"})
    assert came == {3: Image(PNG, "image/png")}
    lines = host.heads[0].splitlines()
    assert lines[:2] == ["GET /a%20b.png?q=1%202 HTTP/1.1", f"Host: localhost:{host.port}"]
    assert {line.partition(":")[0] for line in lines[2:-1]} == {"User-Agent", "Accept", "Accept-Encoding", "Connection"}


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "127.1", "2130706433", "0.0.0.0", "[::ffff:127.0.0.1]"])
async def test_nothing_of_this_machine_or_its_network_is_reached(name: str) -> None:
    async with hosting(lambda _: reply(PNG)) as host:
        why = await refused(fetcher(is_open=is_public), f"http://{name}:{host.port}/")
        assert "is not on the public network" in why or "there is no host" in why
        assert not host.connected


@pytest.mark.parametrize("place", ["http://127.0.0.2:{port}/secret", "//127.0.0.2:{port}/secret"])
async def test_a_redirect_is_judged_as_the_link_was(place: str) -> None:
    async with hosting(lambda path: reply(PNG) if path == "/secret" else to(place.format(port=host.port))) as host:
        why = await refused(fetcher(is_open=lambda address: address == "127.0.0.1"), f"http://127.0.0.1:{host.port}/")
        assert why == "it cannot be fetched: 127.0.0.2 is not on the public network"
        assert len(host.heads) == 1


@pytest.mark.parametrize("hops", [1, 3, 4])
async def test_a_few_redirects_are_followed(hops: int) -> None:
    async with hosting(lambda path: to(f"/{int(path[1:]) - 1}") if path != "/0" else reply(PNG)) as host:
        link = f"http://127.0.0.1:{host.port}/{hops}"
        if hops > 3:
            assert await refused(fetcher(), link) == "it cannot be fetched: it is redirected too often"
        else:
            assert await fetcher().fetch({0: link}) == {0: Image(PNG, "image/png")}


class Resolver:
    """Answers with one list of addresses after the other."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def __call__(self, _host: str, port: int, **_: Any) -> list[Any]:
        """Answer."""
        self.asked += 1
        return [(2, 1, 6, "", (address, port)) for address in self.answers.pop(0)]


async def test_the_address_that_was_judged_is_the_one_that_is_connected_to(monkeypatch: pytest.MonkeyPatch) -> None:
    resolver = Resolver(["127.0.0.1"], ["127.0.0.2"])  # A second look would find another.
    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolver)
    async with hosting(lambda _: reply(PNG)) as host:
        await fetcher(is_open=lambda address: address == "127.0.0.1").fetch({0: f"http://rebound.test:{host.port}/"})
        assert host.connected == resolver.asked == 1
        assert f"Host: rebound.test:{host.port}" in host.heads[0]


async def test_a_host_with_one_address_that_is_shut_is_shut(monkeypatch: pytest.MonkeyPatch) -> None:
    resolver = Resolver(["127.0.0.1", "127.0.0.2"])
    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolver)
    async with hosting(lambda _: reply(PNG)) as host:
        work = fetcher(is_open=lambda address: address == "127.0.0.1")
        assert "rebound.test is not on the public network" in await refused(work, f"http://rebound.test:{host.port}/")
        assert not host.connected


@pytest.mark.parametrize(
    "link",
    [
        "file:///etc/passwd",
        "ftp://127.0.0.1/a",
        "http://",
        "http:///a",
        "http://[::1",
        "http://127.0.0.1:99999/",
        "http://user:word@127.0.0.1/",
        "http://127.0.0.1@evil.example/",
        "//127.0.0.1/",
        "http://" + "a" * 9000,
        "http://" + "a" * 70 + ".example/",
        "",
    ],
)
async def test_a_link_that_is_none_is_refused(link: str) -> None:
    assert await refused(fetcher(), link) in {
        "it cannot be fetched: the link is none",
        "it cannot be fetched: a link may not say who asks",
    }


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (reply(b"<html>"), "this is no PNG, JPEG or WebP image"),
        (reply(b""), "the image is empty"),
        (reply(PNG, status="404 Not Found"), "127.0.0.1 answers 404"),
        (reply(PNG[:-5]), "the image is cut off"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "127.0.0.1 does not speak HTTP"),
        (b"", "127.0.0.1 broke off"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000, "127.0.0.1 says too much before it answers"),
        (reply(b"x" * 10_001), "it is larger than the limit of 10000 bytes that are left"),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 10_001, "it is larger than the limit of 10000 bytes that are left"),
        (to("file:///etc/passwd"), "the link is none"),
        (to("http://[::1"), "the link is none"),
    ],
)
async def test_what_comes_and_is_no_picture_is_told_of(answer: bytes, why: str) -> None:
    async with hosting(lambda _: answer) as host:
        assert await refused(fetcher(), f"http://127.0.0.1:{host.port}/") == f"it cannot be fetched: {why}"


async def test_the_limit_is_for_all_pictures_of_a_request() -> None:
    async with hosting(lambda _: reply(PNG)) as host:
        link = f"http://127.0.0.1:{host.port}/"
        assert "bytes that are left" in await refused(fetcher(limit=2 * len(PNG) - 1), link, link)
        assert len(await fetcher(limit=2 * len(PNG)).fetch({0: link, 1: link})) == 2


async def test_who_takes_too_long_is_left() -> None:
    async with hosting(lambda _: b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n") as host:
        link = f"http://127.0.0.1:{host.port}/wait"
        assert await refused(fetcher(patience=0.2), link) == "it takes too long to fetch"
        await until(lambda: not host.open)


async def test_a_request_that_is_called_off_leaves_no_connection() -> None:
    async with hosting(lambda _: b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n") as host:
        task = asyncio.create_task(fetcher().fetch({0: f"http://127.0.0.1:{host.port}/wait"}))
        await until(lambda: host.heads)
        task.cancel()
        await asyncio.wait({task})
        await until(lambda: not host.open)


async def test_nobody_who_listens_is_told_of() -> None:
    async with hosting(lambda _: b"") as host:
        pass
    assert "127.0.0.1 cannot be reached" in await refused(fetcher(), f"http://127.0.0.1:{host.port}/")


def certified(name: str, folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return the contexts of a server of that name and of a client that trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    who = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    begin = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    made = (
        x509.CertificateBuilder(who, who, key.public_key(), x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(begin + dt.timedelta(days=36500))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    held = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    (folder / "pem").write_bytes(held + made.public_bytes(serialization.Encoding.PEM))
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "pem")
    return server, ssl.create_default_context(cafile=str(folder / "pem"))


async def test_a_safe_link_asks_for_the_certificate_of_its_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there, here = certified("pictures.test", tmp_path)
    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", Resolver(*[["127.0.0.1"]] * 3))
    async with hosting(lambda path: to("http://pictures.test/") if path == "/down" else reply(PNG), tls=there) as host:
        work = fetcher(tls=here)
        assert await work.fetch({0: f"https://pictures.test:{host.port}/"}) == {0: Image(PNG, "image/png")}
        assert "other.test cannot be reached" in await refused(work, f"https://other.test:{host.port}/")
        why = await refused(work, f"https://pictures.test:{host.port}/down")
        assert why == "it cannot be fetched: it leads from a safe connection to one that is not"
