"""The port of `diglot serve`: taken before anything else is done."""

import socket

from diglot.cli.port import bind_error, listening


def test_a_port_that_was_taken_is_nobody_elses_from_then_on() -> None:
    with listening("127.0.0.1", 0) as (held,):
        port = held.getsockname()[1]
        assert bind_error("127.0.0.1", port) == "Address already in use"
    assert bind_error("127.0.0.1", port) is None


def test_who_comes_before_the_server_answers_waits() -> None:
    with listening("127.0.0.1", 0) as (held,), socket.create_connection(held.getsockname()) as client:
        assert client.getpeername() == held.getsockname()


def test_all_addresses_of_a_name_have_the_same_port() -> None:
    with listening("localhost", 0) as sockets:
        assert len({each.getsockname()[1] for each in sockets}) == 1
