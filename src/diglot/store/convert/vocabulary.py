"""Vocabularies of encoders: WordPiece and Unigram, as the engine's tokenizers want them.

The engine's WordPiece tokenizer puts a phantom space before every word, so a token that begins a word is
stored with that space and one that goes on with a word without its `##`. Its Unigram tokenizer takes the
pieces with their scores as they are. Pure but for reading the files. Neighbours: `encoder`, `writer`.

Invariant: a token keeps its number.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from enum import IntEnum
from pathlib import Path
from typing import Any, Final

import msgspec

from diglot.store.convert import CannotConvert
from diglot.store.convert.encoder import read_json

PHANTOM_SPACE: Final = "\u2581"
_CONTINUES: Final = "##"
_MOST_TOKENS: Final = 1 << 22


class Kind(IntEnum):
    """Kinds of token, by GGUF's numbers."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5


class Token(msgspec.Struct, frozen=True):
    """One token."""

    text: str
    kind: Kind = Kind.NORMAL
    score: float = 0.0


class Vocabulary(msgspec.Struct, frozen=True, kw_only=True):
    """A tokenizer for the engine: `model` is its name for the algorithm, `special` maps a role to a token's number.

    `lowercase` and `strip_accents` are WordPiece's, `charsmap` (a compiled table of replacements) and
    `collapse_spaces` are Unigram's.
    """

    model: str
    tokens: tuple[Token, ...]
    special: Mapping[str, int]
    lowercase: bool = False
    strip_accents: bool = False
    charsmap: bytes = b""
    collapse_spaces: bool = False

    def padded(self, count: int) -> Vocabulary:
        """Return it with as many tokens as the embedding has rows. Raises CannotConvert."""
        missing = count - len(self.tokens)
        if missing < 0:
            raise CannotConvert(f"the tokenizer has {len(self.tokens)} tokens and the embedding {count} rows")
        fill = tuple(Token(f"[PAD{number}]", Kind.UNUSED) for number in range(len(self.tokens), count))
        return msgspec.structs.replace(self, tokens=self.tokens + fill)


class _Added(msgspec.Struct, frozen=True):
    id: int
    content: str
    special: bool = False


class _Model(msgspec.Struct, frozen=True):
    type: str = ""
    vocab: dict[str, int] | list[tuple[str, float]] = msgspec.field(default_factory=dict)
    unk_id: int | None = None
    unk_token: str = ""
    continuing_subword_prefix: str = _CONTINUES
    byte_fallback: bool = False


class _Tokenizer(msgspec.Struct, frozen=True):
    model: _Model
    added_tokens: tuple[_Added, ...] = ()
    normalizer: dict[str, Any] | None = None
    pre_tokenizer: dict[str, Any] | None = None


def read_vocabulary(folder: Path) -> Vocabulary:
    """Read the tokenizer of the model in `folder`. Raises CannotConvert."""
    tokenizer = read_json(folder / "tokenizer.json", _Tokenizer)
    match tokenizer.model.type, tokenizer.model.vocab:
        case "WordPiece", dict() as vocab:
            return _word_piece(tokenizer, vocab)
        case "Unigram", list() as pieces:
            return _unigram(tokenizer, pieces)
        case kind, _:
            raise CannotConvert(f"a tokenizer of type {kind!r} cannot be converted, only WordPiece and Unigram")


def _word_piece(tokenizer: _Tokenizer, vocab: Mapping[str, int]) -> Vocabulary:
    normalizer = tokenizer.normalizer or {}
    if normalizer.get("type") != "BertNormalizer":
        raise CannotConvert(f"a WordPiece tokenizer with the normalizer {normalizer.get('type')!r} cannot be converted")
    if tokenizer.model.continuing_subword_prefix != _CONTINUES:
        raise CannotConvert("a WordPiece tokenizer whose parts do not begin with ## cannot be converted")
    added = {token.content: token for token in tokenizer.added_tokens}
    numbers = {**vocab, **{token.content: token.id for token in added.values()}}
    texts = _ordered(numbers)
    tokens = tuple(_word_piece_token(text, added.get(text or "")) for text in texts)
    lowercase = bool(normalizer.get("lowercase", True))
    accents = normalizer.get("strip_accents")
    return Vocabulary(
        model="bert",
        tokens=tokens,
        special=_roles(numbers, bos="[CLS]", cls="[CLS]", sep="[SEP]", unk="[UNK]", pad="[PAD]", mask="[MASK]"),
        lowercase=lowercase,
        strip_accents=lowercase if accents is None else bool(accents),  # As its maker's code reads a null.
    )


def _word_piece_token(text: str | None, added: _Added | None) -> Token:
    match text:
        case None:
            return Token("", Kind.UNUSED)
        case _ if added is not None:
            return Token(text, Kind.CONTROL if added.special else Kind.USER_DEFINED)
        case _ if text.startswith(_CONTINUES):
            return Token(text.removeprefix(_CONTINUES))
        case _:
            return Token(PHANTOM_SPACE + text)


def _unigram(tokenizer: _Tokenizer, pieces: Sequence[tuple[str, float]]) -> Vocabulary:
    if tokenizer.model.byte_fallback:
        raise CannotConvert("a Unigram tokenizer that falls back to bytes cannot be converted")
    added = {token.content: token for token in tokenizer.added_tokens}
    scores = dict(pieces)
    numbers = {**{text: number for number, (text, _) in enumerate(pieces)}, **{t.content: t.id for t in added.values()}}
    unknown = tokenizer.model.unk_id
    tokens = tuple(
        Token(
            text or "", _unigram_kind(number, unknown=unknown, added=added.get(text or "")), scores.get(text or "", 0.0)
        )
        for number, text in enumerate(_ordered(numbers))
    )
    steps = _steps(tokenizer.normalizer, "normalizers") + _steps(tokenizer.pre_tokenizer, "pretokenizers")
    special = _roles(numbers, bos="<s>", eos="</s>", sep="</s>", cls="<s>", pad="<pad>", mask="<mask>")
    return Vocabulary(
        model="t5",
        tokens=tokens,
        special=special if unknown is None else {**special, "unk": unknown},
        charsmap=_charsmap(steps),
        collapse_spaces=any(step.get("type") == "WhitespaceSplit" or _collapses(step) for step in steps),
    )


def _unigram_kind(number: int, *, unknown: int | None, added: _Added | None) -> Kind:
    if number == unknown:
        return Kind.UNKNOWN
    if added is not None:
        return Kind.CONTROL if added.special else Kind.USER_DEFINED
    return Kind.NORMAL


def _steps(part: Mapping[str, Any] | None, inner: str) -> tuple[Mapping[str, Any], ...]:
    """Return the steps of a sequence in order, and check that the engine takes each of them."""
    if part is None:
        return ()
    steps = tuple(part.get(inner, ())) if part.get("type") == "Sequence" else (part,)
    for step in steps:
        match step:
            case {"type": "Precompiled" | "WhitespaceSplit" | "Strip"}:
                pass
            case {"type": "Replace"} if _collapses(step):
                pass
            case {"type": "Metaspace"} if step.get("prepend_scheme", "always") != "never":
                pass
            case {"type": kind}:
                raise CannotConvert(f"a Unigram tokenizer with a step {kind!r} of this form cannot be converted")
            case _:
                raise CannotConvert("a Unigram tokenizer with a nameless step cannot be converted")
    return steps


def _collapses(step: Mapping[str, Any]) -> bool:
    """Whether a step makes one space of several."""
    return step.get("type") == "Replace" and step.get("pattern") == {"Regex": " {2,}"}


def _charsmap(steps: Sequence[Mapping[str, Any]]) -> bytes:
    encoded = next((step.get("precompiled_charsmap") for step in steps if step.get("type") == "Precompiled"), None)
    try:
        return base64.b64decode(encoded or "", validate=True)
    except (ValueError, TypeError) as error:
        raise CannotConvert(f"tokenizer.json: the precompiled charsmap is damaged: {error}") from None


def _ordered(numbers: Mapping[str, int]) -> tuple[str | None, ...]:
    """Return the texts by their numbers, None where there is a gap."""
    count = max(numbers.values(), default=-1) + 1
    if not 0 < count <= _MOST_TOKENS or min(numbers.values()) < 0:
        raise CannotConvert(f"tokenizer.json: a vocabulary up to number {count - 1} makes no sense")
    ordered: list[str | None] = [None] * count
    for text, number in numbers.items():
        ordered[number] = text
    return tuple(ordered)


def _roles(numbers: Mapping[str, int], **texts: str) -> Mapping[str, int]:
    """Return the numbers of the tokens that have a role. The first and the last token of an input must be there."""
    for text in (texts.get("cls"), texts.get("sep")):
        if text not in numbers:
            raise CannotConvert(f"tokenizer.json: the token {text} is missing")
    return {role: numbers[text] for role, text in texts.items() if text in numbers}
