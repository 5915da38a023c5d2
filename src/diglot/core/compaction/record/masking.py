"""Masking: how telling a line is, and which lines of an output stay.

What a coding agent cannot guess again are exact tokens: paths, numbers, versions, hashes, codes, names. A line
tells the more, the more of them it holds that stand nowhere else yet, the shorter it is, and the fewer
lines of its shape there are (the two hundred lines of a package manager are all alike). No line is judged by
what it asks for: instructions in an output are lines like any other.

Invariant: the work is linear in the number of lines (but for one sort), and a line is never changed.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

import msgspec

from diglot.core.compaction.record.values import Mark

HIGHEST = 9
_RUN = re.compile(r"[A-Za-z0-9_$@~./%+-][A-Za-z0-9_./:@%+=~#$&?*-]+")
_WORTH = (
    # (what a token looks like, what it is worth, its letter in a line's shape)
    (r"\d{4}-\d\d-\d\d", 1.5, "d"),
    (r"\d{4}-\d\d-\d\dT[\d:.,+Z-]*|\d\d:\d\d:\d\d(?:[.,]\d+)?Z?", 0.2, "t"),
    (r"[bcdlps-][rwxsStT-]{9}", 0.0, "w"),
    (r"[a-z]+://.{4,}", 4.0, "u"),
    (r"(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?|[a-z][\w.-]*:\d{2,5}", 4.0, "a"),
    (r"E[A-Z]{4,}|SIG[A-Z]{3,}", 3.5, "c"),
    (r"[A-Z][A-Za-z]{0,9}[-_]?\d{2,}(?:[-_]\d+)*", 4.0, "c"),
    (r"v?\d+\.\d+\.\d+[\w.+-]*", 3.0, "v"),
    (r"(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}|0x[0-9a-fA-F]+|[0-9a-f]{8}-[0-9a-f-]{20,}", 3.5, "h"),
    (r"[+-]?\d", 0.2, "n"),
    (r"[+-]?\d{2}", 1.0, "n"),
    (r"[+-]?\d{3}", 2.0, "n"),
    (r"[+-]?[\d_]{4,}", 2.8, "n"),
    (r"[+-]?\d[\d.,_]*(?:%|[A-Za-z]{1,3})?", 2.2, "n"),
    (r"--?[a-zA-Z][\w-]*", 0.8, "f"),
    (r"--?[a-zA-Z][\w-]*=.+", 2.5, "f"),
    (r"[A-Za-z_][\w.-]*[=:]\S*\d\S*", 3.2, "k"),
    (r"[A-Za-z_][\w.-]*=\S+", 1.4, "k"),
    (r"\S*/\S*\d\S*", 2.6, "p"),
    (r"\S+/\S+|/\S+", 2.0, "p"),
    (r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+", 2.2, "i"),
    (r"[\w-]+(?:\.[\w-]+)*\.[a-z]\w{0,5}(?::\d+)*", 1.8, "p"),
    (r"\w*[A-Za-z]\w*\d\w*", 1.6, "i"),
    (r"[a-z]+(?:-[a-z0-9]+)+", 0.9, "i"),
    (r"\w+(?:(?:_|::|\.|->)\w+)+|[a-z]+[A-Z]\w*|[A-Z][a-z]+[A-Z]\w*", 0.7, "i"),
)
_KINDS = tuple((re.compile(pattern), worth, letter) for pattern, worth, letter in _WORTH)
_TELLING = (
    # (what a line looks like, how many levels it rises)
    (re.compile(r"(?i)\b(?:error|fatal|panic|exception|traceback|failed|failures?|denied|refused)\b"), 1.5),
    (re.compile(r"(?i)\b(?:warn(?:ing)?|deprecated|timeout|timed out|conflict|missing|mismatch|expected)\b"), 1.0),
    (re.compile(r"^[\s\"'+]*[\w. -]{2,40}[\"']?\s*(?:=|:=|:|=>)\s*(?:[\"'/\d]|true\b|false\b)\S.{0,80}$"), 1.0),
    (
        re.compile(r"^\s*(?:export |pub |async |static |public |private )*(?:def|class|fn|func|struct|enum|const)\b"),
        0.5,
    ),
    (re.compile(r"(?i)\b(?:total|found|using|listening|default|limit|max|min|version|port)\b"), 0.5),
    (re.compile(r"([\"'`])[^\"'`]{3,60}\1"), 0.4),
)
_DULL = (
    # (what a line of code or of a diff looks like, behind a line number, and how many levels it falls)
    (re.compile(r"(?:\d+\s*[|:\u2192]?\s+)?(?:from|import|use|using|#include|package|require)\b"), 1.2),
    (re.compile(r"(?:@@ -|index [0-9a-f]+\.\.|diff --git |\+\+\+ |--- )"), 2.0),
    (re.compile(r"(?:\d+\s*[|:\u2192]?\s+)?[\W_]*$"), 3.0),
)
_LIFT: Final[dict[Mark, float]] = {"@": 0.0, ">": 2.4, "~": 0.4, "$": 0.4, "&": 0.2, "|": 0.0}
_PROSE: Final[dict[Mark, float]] = {">": 0.035, "~": 0.015}
_WORD = re.compile(r"\w{4,}")
_RARE_BY: Final[dict[Mark, float]] = {"$": 0.5, "&": 0.7, ">": 0.5}
_SEEN = 0.12
_EDGE = 0.6
_REMOVED = -3.0
_TOP = 12.4
_SLOPE = 1.6
_OVERHEAD = 14
_PER_OUTPUT = 48
_LOOKED_AT = 200
_RARE = 0.5
_RARE_FORM = 0.2


class Draft(msgspec.Struct):
    """A line before it is judged. `edge`: it is the first or the last of an output."""

    mark: Mark
    text: str
    edge: bool = False
    level: int = 0


@lru_cache(maxsize=1 << 16)
def _kind(token: str) -> tuple[float, str]:
    """Return what a token is worth, and its letter."""
    if token.isalpha() and (token.islower() or token.istitle()):
        return 0.0, "w"
    for pattern, worth, letter in _KINDS:
        if pattern.fullmatch(token):
            return worth, letter
    return 0.0, "w"


def tokens(text: str) -> list[str]:
    """Return the stretches of a text that may be exact tokens, without the punctuation behind them."""
    return [token for found in _RUN.findall(text) if (token := found.rstrip(".:?&*#"))]


def exact(text: str) -> list[str]:
    """Return the exact tokens of a text."""
    return [token for token in tokens(text) if _kind(token)[0] >= 1.0]


class _Judged(msgspec.Struct):
    """A draft with what it was judged by."""

    draft: Draft
    worths: list[tuple[str, float]]
    shape: tuple[str, str, str]
    lift: float
    prose: float = 0.0


def judge(drafts: Sequence[Draft], *, known: Iterable[str]) -> None:
    """Give every draft its level. `known` are exact tokens that stand somewhere else already."""
    judged = [_look(draft) for draft in drafts]
    shapes = Counter(each.shape for each in judged)
    forms = Counter(each.shape[1] for each in judged)
    rarity = {shape: count**-_RARE * forms[shape[1]] ** -_RARE_FORM for shape, count in shapes.items()}
    _hear(judged)
    order = sorted(
        range(len(judged)),
        key=lambda index: (-_score(judged[index], rarity, frozenset()), -index),
    )
    seen = set(known)
    for index in order:
        each = judged[index]
        each.draft.level = max(0, min(HIGHEST, round(_score(each, rarity, seen))))
        if each.draft.level:
            seen.update(token for token, _ in each.worths)


def _end(words: list[str], place: int, letters: list[str]) -> str:
    """Return the first or last word of a line if it is a plain one, else the letter of the token there."""
    word = words[place].strip(":,;()[]") if words else ""
    return word if word.isalpha() else "".join(letters[place : place + 1 or None])


def _hear(judged: Sequence[_Judged]) -> None:
    """Give statements the worth of their words: one that is said all the time says little."""
    spoken = [(each, _WORD.findall(each.draft.text.lower())) for each in judged if each.draft.mark in _PROSE]
    counts = Counter(word for _, words in spoken for word in set(words))
    for each, words in spoken:
        each.prose = _PROSE[each.draft.mark] * sum(len(word) / counts[word] for word in set(words))


def _look(draft: Draft) -> _Judged:
    kinds = [(token, *_kind(token)) for token in tokens(draft.text)]
    letters: list[str] = []
    for _, _, letter in kinds:
        if not letters or letters[-1] != letter:
            letters.append(letter)
    words = draft.text.split(None)
    shape = (_end(words, 0, letters), "".join(letters), _end(words, -1, letters))
    start = draft.text[:_LOOKED_AT]
    lift = _LIFT[draft.mark] + (_EDGE if draft.edge else 0)
    lift += max((rise for pattern, rise in _TELLING if pattern.search(start)), default=0.0)
    lift -= max((fall for pattern, fall in _DULL if pattern.match(start)), default=0.0)
    if draft.mark == "&" and draft.text.startswith("-"):
        lift += _REMOVED
    return _Judged(draft, list({token: (token, worth) for token, worth, _ in kinds if worth}.values()), shape, lift)


def _score(each: _Judged, rarity: dict[tuple[str, str, str], float], seen: set[str] | frozenset[str]) -> float:
    """Return the level before rounding: the logarithm of what a character of the line is worth."""
    draft = each.draft
    worth = sum(worth * _SEEN if token in seen else worth for token, worth in each.worths) * rarity[each.shape]
    density = (0.1 + worth + each.prose) / (_OVERHEAD + len(draft.text))
    return _TOP + _SLOPE * math.log2(density) + each.lift


def masked(lines: Sequence[Draft]) -> list[Draft]:
    """Return the lines of one output that stay: the edges and the most telling, in order."""
    order = sorted(range(len(lines)), key=lambda index: (not lines[index].edge, -lines[index].level, index))
    return [lines[index] for index in sorted(order[:_PER_OUTPUT])]
