"""Bodies that are handed on as they come, and steps that go out as they are taken."""

# ruff: noqa: ARG002, ARG005  an operation's functions are given more than these need

from __future__ import annotations

import hashlib

import pytest
from msgspec.structs import replace

from diglot.core.digest import Digest
from diglot.core.errors import AnyFault, UpstreamFailed
from diglot.core.events import Step
from diglot.core.request import Pull, StoreBlob
from diglot.dialects.operation import TEXT, Dialect, Operation, Parsed, Rendered
from diglot.http.application import Access, build_application
from tests.http.world import Exchange, World
from tests.services.world import settle, until

DATA = [b"one ", b"two " * 100_000, b"three"]
DIGEST = Digest(hashlib.sha256(b"".join(DATA)).hexdigest())


class Told:
    """Renders steps as words."""

    def feed(self, step: Step, now: float) -> bytes:
        """Render one."""
        return f"{step.stage} ".encode()

    def beat(self) -> bytes:
        """Render nothing."""
        return b""

    def close(self) -> bytes:
        """Render the end."""
        return b"end"

    def fail(self, fault: AnyFault) -> bytes:
        """Render a bad end."""
        return type(fault).__name__.encode()


MOVES = Dialect(
    name="moves",
    prefix="/",
    error=lambda fault: Rendered(type(fault).__name__.encode(), 400, TEXT),
    operations=(
        Operation(
            method="POST",
            path="/blob",
            summary="Keep.",
            parse=lambda _: Parsed(StoreBlob(DIGEST)),
            whole=lambda view, stamp, new: Rendered(b"", 201 if new else 200),
            upload=True,
        ),
        Operation(
            method="POST",
            path="/pull",
            summary="Pull.",
            parse=lambda wire: Parsed(Pull("x"), stream=not wire.body),
            whole=lambda view, stamp, _: Rendered(b"whole", media_type=TEXT),
            steps=lambda view, stamp: Told(),
            stream_type=TEXT,
        ),
    ),
)


def ask(world: World, path: str, *parts: bytes, **how: bool | dict[str, str]) -> Exchange:
    application = build_application((MOVES,), world.http, access=Access())
    return Exchange(application, "POST", path, parts or (b"",), **how)  # type: ignore[arg-type]


async def test_a_body_larger_than_the_limit_of_others_is_taken_in() -> None:
    world = World()
    reply = ask(world, "/blob", *DATA)
    await reply.task
    assert reply.status == 201
    assert world.store.blobs == {DIGEST: b"".join(DATA)}
    again = ask(world, "/blob", b"not read", unfinished=True)
    await again.task
    assert again.status == 200


async def test_a_wrong_body_is_refused_and_not_kept() -> None:
    world = World()
    reply = ask(world, "/blob", *DATA[1:])
    await reply.task
    assert (reply.status, reply.text) == (400, "WrongDigest")
    assert (world.store.blobs, world.store.closed) == ({}, 1)


async def test_a_client_that_leaves_in_the_middle_leaves_nothing() -> None:
    world = World()
    reply = ask(world, "/blob", *DATA, unfinished=True)
    await settle()
    reply.leave()
    await reply.task
    assert (world.store.blobs, world.store.closed) == ({}, 1)


async def test_a_body_that_stops_coming_is_given_up() -> None:
    world = World()
    world.http = type(world.http)(
        desk=world.http.desk,
        clock=world.http.clock,
        ids=world.http.ids,
        limits=replace(world.http.limits, max_body=10, body_timeout=0.05),
    )
    reply = ask(world, "/blob", *DATA, unfinished=True)
    await reply.task
    assert (reply.status, reply.text) == (400, "TooSlow")
    assert world.store.closed == 1


async def test_a_body_that_would_have_to_be_unpacked_is_refused() -> None:
    world = World()
    reply = ask(world, "/blob", *DATA, headers={"content-encoding": "gzip"})
    await reply.task
    assert reply.status == 400
    assert world.store.blobs == {}


async def test_steps_go_out_as_they_are_taken() -> None:
    world = World()
    world.supply.steps = [Step("find"), Step("write"), Step("done")]
    reply = ask(world, "/pull")
    await reply.task
    assert (reply.status, reply.text) == (200, "find write done end")


async def test_steps_that_are_not_wanted_one_by_one_are_waited_for() -> None:
    world = World()
    reply = ask(world, "/pull", b"whole")
    await reply.task
    assert (reply.status, reply.text) == (200, "whole")


@pytest.mark.parametrize(
    ("body", "status", "text"), [(b"", 200, "find UpstreamFailed"), (b"whole", 400, "UpstreamFailed")]
)
async def test_steps_that_fail_end_in_the_form_of_the_dialect(body: bytes, status: int, text: str) -> None:
    world = World()
    world.supply.steps = [Step("find"), UpstreamFailed("there", reason="no")]
    reply = ask(world, "/pull", body)
    await reply.task
    assert (reply.status, reply.text) == (status, text)


async def test_a_client_that_leaves_gives_the_work_up() -> None:
    world = World()
    world.supply.gate.clear()
    reply = ask(world, "/pull")
    await until(lambda: world.supply.begun)
    reply.leave()
    await reply.task
    assert world.supply.given_up == 1
