"""Addresses: which of them a picture may be fetched from. Pure.

Whoever can make a server fetch reaches what the server reaches: the services of its own machine, its network, the metadata
of a cloud. So only addresses of the public network are open, also where one is wrapped in another.
Source: the special-purpose registries of IANA, as `ipaddress` has them; RFC 4291, 3056, 6052, 4380 for what is wrapped.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from typing import Final

Open = Callable[[str], bool]
"""Says whether an address may be connected to."""

_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
_V4_COMPATIBLE: Final = ipaddress.IPv6Network("::/96")


def is_public(address: str) -> bool:
    """Say whether an address, as a resolver gives it, is one of the public network."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address):
        if found.is_site_local or found.teredo:
            return False
        inner = _inside(found)
        if inner is not None:
            found = inner
    shut = found.is_private or found.is_multicast or found.is_reserved or found.is_unspecified or found.is_loopback
    return found.is_global and not shut and not found.is_link_local


def _inside(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """Return the address of version 4 that one of version 6 stands for."""
    if address in _NAT64 or address in _V4_COMPATIBLE:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour
