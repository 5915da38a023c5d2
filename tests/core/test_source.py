"""Sources: what may be written where a model is to be got."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diglot.core.digest import Digest, digests_in
from diglot.core.model import InvalidName, ModelRef
from diglot.core.source import FromHub, FromRegistry, FromStarter, FromUrl, name_of_file, read_source


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("starter", FromStarter()),
        ("llama3.2:1b", FromRegistry(ModelRef("llama3.2", "1b"))),
        ("starter:1", FromRegistry(ModelRef("starter", "1"))),
        ("127.0.0.1:5000/me/x", FromRegistry(ModelRef.parse("127.0.0.1:5000/me/x"))),
        ("http://h/me/x:1", FromRegistry(ModelRef.parse("h/me/x:1"), plain=True)),
        ("https://h/me/x:1", FromRegistry(ModelRef.parse("h/me/x:1"))),
        ("hf.co/me/It-GGUF:Q4_K_M", FromHub(ModelRef.parse("hf.co/me/It-GGUF:Q4_K_M"))),
        ("https://huggingface.co/me/it", FromHub(ModelRef.parse("huggingface.co/me/it"))),
        ("https://h/a/b/it.Q4_0.GGUF?x=1", FromUrl("https://h/a/b/it.Q4_0.GGUF?x=1", ModelRef("it.Q4_0"))),
    ],
)
def test_a_source_is_told_by_its_form(text: str, source: object) -> None:
    assert read_source(text) == source


@pytest.mark.parametrize("text", ["", "a/b/c/d", "ftp://h/x.gguf", "https://h/.gguf", "hf.co/me/", ":x"])
def test_what_is_no_source_is_refused(text: str) -> None:
    with pytest.raises(InvalidName):
        read_source(text)


def test_a_url_without_encryption_is_told() -> None:
    told = {text: read_source(text) for text in ("http://h/x.gguf", "HTTP://h/x.gguf", "https://h/x.gguf")}
    assert [each.plain for each in told.values() if isinstance(each, FromUrl)] == [True, True, False]


def test_a_repository_is_owner_and_name() -> None:
    source = read_source("hf.co/me/it:Q8_0")
    assert isinstance(source, FromHub)
    assert source.repository == "me/it"


@given(st.text())
def test_any_text_is_a_source_or_is_refused(text: str) -> None:
    with suppress(InvalidName):
        read_source(text)


@given(st.text(min_size=1))
def test_any_file_has_a_name_or_none(path: str) -> None:
    try:
        ref = name_of_file(f"/models/{path}.gguf")
    except InvalidName:
        return
    assert ModelRef.parse(str(ref)) == ref


@given(st.binary(max_size=400))
def test_digests_are_found_in_anything(data: bytes) -> None:
    there = Digest("ab" * 32)
    assert there in digests_in(data + b" sha256:" + b"AB" * 32 + b" " + data)


@pytest.mark.parametrize("text", ["", "sha256:", "sha256:" + "g" * 64, "sha512:" + "a" * 64, "sha256:../../etc/passwd"])
def test_no_other_text_is_a_digest(text: str) -> None:
    with pytest.raises(ValueError, match="is no digest"):
        Digest.parse(text)
    with pytest.raises(ValueError, match="is no sha256"):
        Digest(text)
