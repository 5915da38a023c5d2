"""Which addresses are on the public network, also those that are wrapped in others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diglot.pictures.addresses import is_public

SHUT = [
    "127.0.0.1",
    "127.255.255.254",
    "0.0.0.0",
    "10.0.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.0.1",
    "169.254.169.254",
    "100.64.0.1",
    "192.0.0.1",
    "192.0.2.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:7f00:1",
    "::ffff:10.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:0.0.0.0",
    "fe80::1",
    "fe80::1%eth0",
    "fc00::1",
    "fd12:3456::1",
    "fec0::1",
    "ff02::1",
    "2001:db8::1",
    "2001::1",
    "2002:7f00:1::",
    "2002:a00:1::1",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "100::1",
    "",
    "localhost",
    "127.1",
    "2130706433",
    "0x7f000001",
    "127.0.0.1:80",
    "[::1]",
]
OPEN = ["1.1.1.1", "8.8.8.8", "93.184.215.14", "172.32.0.1", "2606:4700::1111", "2a00:1450:4001::1", "::ffff:8.8.8.8"]


@pytest.mark.parametrize("address", SHUT)
def test_what_is_not_on_the_public_network_is_shut(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", OPEN)
def test_what_is_on_the_public_network_is_open(address: str) -> None:
    assert is_public(address)


@given(st.ip_addresses(v=4))
def test_an_address_is_not_opened_by_being_wrapped(address: object) -> None:
    for wrapped in (f"::ffff:{address}", f"64:ff9b::{address}", f"::{address}"):
        assert not is_public(wrapped) or is_public(str(address))


@given(st.text(max_size=20) | st.ip_addresses().map(str))
def test_whatever_is_asked_there_is_an_answer(text: str) -> None:
    assert is_public(text) in (True, False)
