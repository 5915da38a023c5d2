"""The manifest and the bodies say the same, and every promise has its test."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, get_args

import msgspec
import pytest

from diglot.dialects.ollama import DIALECT
from diglot.dialects.ollama.compat import TRAITS


def fields_of(kind: Any, path: str = "") -> Iterator[str]:
    """Yield the path of every field of a body struct and of the structs inside it."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        for field in msgspec.structs.fields(kind):
            name = f"{path}.{field.encode_name}" if path else field.encode_name
            yield name
            yield from fields_of(field.type, name)
    else:
        for inner in get_args(kind):
            yield from fields_of(inner, path)


def test_every_field_of_every_body_stands_in_the_manifest_once_and_nothing_else_does() -> None:
    declared = Counter(
        (f"{operation.method} {operation.path}", field)
        for operation in DIALECT.operations
        for field in fields_of(operation.body)
    )
    assert Counter((trait.operation, trait.field) for trait in TRAITS) == declared
    assert set(declared.values()) == {1}


def test_what_is_ignored_or_refused_says_why() -> None:
    assert [trait for trait in TRAITS if trait.support != "honoured" and not trait.note] == []


@pytest.mark.parametrize("support", ["honoured", "refused"])
def test_a_test_stands_behind_every_field_that_is_not_ignored(support: str, shown: set[tuple[str, str]]) -> None:
    promised = {(trait.operation, trait.field) for trait in TRAITS if trait.support == support}
    assert promised - shown == set()


def test_tests_show_only_fields_that_the_manifest_knows(shown: set[tuple[str, str]]) -> None:
    assert shown - {(trait.operation, trait.field) for trait in TRAITS} == set()
