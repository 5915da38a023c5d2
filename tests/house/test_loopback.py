"""The tests stay on this machine: the guard of conftest is seen to work."""

import asyncio
import socket

import pytest


@pytest.mark.parametrize("address", ["192.0.2.1", "example.com"])
def test_a_connection_to_another_machine_fails(address: str) -> None:
    with socket.socket() as outward, pytest.raises(pytest.fail.Exception, match="not this machine"):
        outward.connect((address, 9))


async def test_a_connection_of_the_event_loop_fails_too() -> None:
    with pytest.raises(pytest.fail.Exception, match="not this machine"):
        await asyncio.open_connection("192.0.2.1", 9)


async def test_loopback_is_open() -> None:
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    async with server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()


async def test_a_blocked_event_loop_is_seen(no_blocking: object) -> None:
    with socket.socket() as waiting, pytest.raises(Exception, match=r"Blocking call"):
        waiting.connect(("127.0.0.1", 9))
