"""Bodies that came compressed, over ASGI; and replies that have not changed."""

import gzip

import pytest
from msgspec.structs import replace

from diglot.core.request import Ping
from diglot.dialects.operation import Operation, Parsed, Rendered
from diglot.http.application import Access, build_application
from tests.http.world import TINY, Exchange, World


async def test_a_body_that_came_compressed_is_read_as_it_was() -> None:
    reply = await World().get("POST", "/say", gzip.compress(b'{"stream":true}'), headers={"content-encoding": "gzip"})
    assert (reply.status, reply.text) == (200, "ab end\n")


@pytest.mark.parametrize(
    ("coding", "body", "fault"),
    [
        ("gzip", gzip.compress(bytes(2000), mtime=0), "BodyTooLarge"),
        ("gzip", b"{}", "MalformedBody"),
        ("snappy", b"{}", "UnknownCoding"),
    ],
)
async def test_a_body_that_cannot_be_unpacked_is_refused(coding: str, body: bytes, fault: str) -> None:
    reply = await World().get("POST", "/say", body, headers={"content-encoding": coding})
    assert reply.text.partition(":")[0] == fault


async def test_a_large_body_is_unpacked_beside_the_loop() -> None:
    body = b'{"text":"' + bytes(range(97, 123)) * 40_000 + b'"}'
    packed = gzip.compress(body, compresslevel=0)
    reply = await World(max_body=2 << 20).get("POST", "/say", packed, headers={"content-encoding": "gzip"})
    assert (reply.status, reply.text) == (200, "ab")


TAGGED = Operation(
    method="GET",
    path="/tagged",
    summary="A reply with a tag.",
    parse=lambda _: Parsed(Ping()),
    whole=lambda *_: Rendered(b"long", headers={"ETag": '"one"'}),
)


@pytest.mark.parametrize(
    ("known", "status", "text"),
    [(None, 200, "long"), ('"one"', 304, ""), ('W/"one"', 304, ""), ('"zero", "one"', 304, ""), ('"two"', 200, "long")],
)
async def test_what_a_client_has_already_is_not_sent_again(known: str | None, status: int, text: str) -> None:
    application = build_application((replace(TINY, operations=(TAGGED,)),), World().http, access=Access())
    headers = {"if-none-match": known} if known else {}
    reply = Exchange(application, "GET", "/tagged", [b""], headers=headers)
    await reply.task
    assert (reply.status, reply.text, reply.headers["etag"]) == (status, text, '"one"')
