"""Patterns: which regular expressions a grammar can take."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diglot.core.patterns import InvalidPattern, UnsupportedPattern, check_pattern


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "^$",
        "^[a-z]+$",
        r"^\d{3}-\d{2,}$",
        "^(?:a|b)*?c??$",
        "(?<year>[0-9]{4})",
        "(?P<year>[0-9]{4})",
        r"\p{L}\P{Lu}\pN",
        r"\u00e9\x41\u{1F600}",
        r"[^\]\\a]",
        "[]a]",
        r"\{\}",
        "a{0}",
        "^a{1,1000}$",
        "()*",
        "|a",
    ],
)
def test_a_sound_pattern_is_taken(pattern: str) -> None:
    check_pattern(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        "^+a",
        "^{2}x",
        "*",
        "a**",
        "a++",
        "a{2}{3}",
        "(*a)",
        "|+",
        "(",
        ")",
        "(a",
        "a)",
        "[a",
        "[]",
        "a\\",
        "{",
        "a{x}",
        "a{5,2}",
        "(?i)a",
        "(?>a)",
        "(?<1>a)",
        "a{99999999}",
        "a{20001}",
        "((a{300}){300}){300}",
        "(" * 65,
        "(" * 60_000,
        "a" * 5_000,
    ],
    ids=lambda pattern: pattern[:12],
)
def test_a_pattern_that_makes_no_sense_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidPattern):
        check_pattern(pattern)


@pytest.mark.parametrize("pattern", ["(?=a)", "(?!a)b", "(?<=x)*", "(?<!x)", r"(a)\1", r"\k<a>", r"\ba\B"])
def test_a_pattern_that_no_grammar_enforces_is_told_apart(pattern: str) -> None:
    with pytest.raises(UnsupportedPattern):
        check_pattern(pattern)


@given(st.text("ab\\()[]{}^$|?*+0123456789,:<>=!", max_size=30))
def test_what_is_taken_compiles(pattern: str) -> None:
    try:
        check_pattern(pattern)
    except (InvalidPattern, UnsupportedPattern):
        return
    if not re.search(r"\\[\da-z]|\[\]|\[\^\]|\(\?<|\[.*\[", pattern):  # Where the dialects of patterns differ.
        re.compile(pattern)
