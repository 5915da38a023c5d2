"""The port of `diglot serve`: taken before anything else is done."""

import socket

import pytest

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


def test_an_address_that_the_machine_lacks_is_left_out_where_there_is_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """So it is with `localhost` where IPv6 is switched off."""
    known = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 0)) for address in ("192.0.2.1", "127.0.0.1")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: known)
    with listening("both.test", 0) as (held,):
        assert held.getsockname()[0] == "127.0.0.1"
    del known[1]
    assert bind_error("lacking.test", 0) == "Cannot assign requested address"
