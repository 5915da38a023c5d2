"""Bodies that came compressed: unpacked exactly, within bounds, or refused."""

import gzip
import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import brotli
import pytest
from backports import zstd
from hypothesis import given
from hypothesis import strategies as st

from diglot.core.errors import BodyTooLarge, MalformedBody, UnknownCoding
from diglot.http.decoding import codings_of, decoded


def _raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


PACKERS: Final[dict[str, tuple[str, Callable[[bytes], bytes]]]] = {
    "zstd": ("zstd", zstd.compress),
    "gzip": ("gzip", gzip.compress),
    "x-gzip": ("x-gzip", gzip.compress),
    "br": ("br", brotli.compress),
    "deflate": ("deflate", zlib.compress),
    "bare deflate": ("deflate", _raw_deflate),
}
packed = pytest.mark.parametrize(("coding", "pack"), PACKERS.values(), ids=PACKERS)
BODY: Final = b'{"model": "m", "input": "' + b"".join(b"line %d\\n" % number for number in range(5000)) + b'"}'


@packed
@pytest.mark.parametrize("body", [b"", b"{}", BODY, bytes(3 << 20)], ids=["empty", "small", "large", "over a piece"])
def test_a_body_comes_out_as_it_went_in(coding: str, pack: Callable[[bytes], bytes], body: bytes) -> None:
    assert decoded(pack(body), codings_of(coding), limit=len(body)) == body


@packed
def test_a_bomb_is_refused_at_the_limit(coding: str, pack: Callable[[bytes], bytes]) -> None:
    bomb = pack(bytes(64 << 20))
    assert len(bomb) < 1 << 20
    with pytest.raises(BodyTooLarge) as raised:
        decoded(bomb, codings_of(coding), limit=1 << 20)
    assert raised.value.limit == 1 << 20


@packed
def test_one_byte_over_the_limit_is_too_much(coding: str, pack: Callable[[bytes], bytes]) -> None:
    with pytest.raises(BodyTooLarge):
        decoded(pack(BODY), codings_of(coding), limit=len(BODY) - 1)


@packed
@pytest.mark.parametrize("cut", [1, 5, 20])
def test_a_body_that_was_cut_off_is_malformed(coding: str, pack: Callable[[bytes], bytes], cut: int) -> None:
    with pytest.raises(MalformedBody):
        decoded(pack(BODY)[:-cut], codings_of(coding), limit=1 << 20)


@packed
def test_what_is_not_of_its_coding_is_malformed(coding: str, pack: Callable[[bytes], bytes]) -> None:
    with pytest.raises(MalformedBody):
        decoded(b"\xff\xfe{}" * 9, codings_of(coding), limit=1 << 20)


def test_several_frames_of_zstd_are_one_body() -> None:
    assert decoded(zstd.compress(b"ab") + zstd.compress(b"c"), ("zstd",), limit=3) == b"abc"


def test_a_window_that_takes_too_much_memory_is_refused() -> None:
    options: dict[int, int] = {
        zstd.CompressionParameter.window_log: 27,
        zstd.CompressionParameter.enable_long_distance_matching: 1,
    }
    packer = zstd.ZstdCompressor(options=options)
    body = packer.compress(bytes(1 << 20)) + packer.flush()
    with pytest.raises(MalformedBody):
        decoded(body, ("zstd",), limit=1 << 30)


def test_codings_are_undone_from_the_last() -> None:
    assert codings_of("gzip, br") == ("br", "gzip")
    assert decoded(brotli.compress(gzip.compress(BODY)), codings_of("GZIP , br"), limit=1 << 20) == BODY


@pytest.mark.parametrize("header", ["", "identity", " identity, "])
def test_no_coding_is_no_coding(header: str) -> None:
    assert codings_of(header) == ()


@pytest.mark.parametrize("header", ["snappy", "gzip, snappy", "gzip, gzip, gzip"])
def test_what_is_not_known_or_too_much_is_refused(header: str) -> None:
    with pytest.raises(UnknownCoding):
        codings_of(header)


@given(coding=st.sampled_from(["zstd", "gzip", "br", "deflate"]), body=st.binary(max_size=200))
def test_any_bytes_are_unpacked_or_refused(coding: str, body: bytes) -> None:
    with suppress(BodyTooLarge, MalformedBody):
        assert len(decoded(body, (coding,), limit=1000)) <= 1000
