"""Inputs: the four forms in which OpenAI takes text: a string, strings, token ids, lists of token ids."""

from __future__ import annotations

from typing import Annotated

import msgspec

from diglot.core.errors import InvalidField

Token = Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
InputBody = str | list[str | Token | list[Token]]


def inputs_of(body: InputBody, *, field: str) -> tuple[str | tuple[int, ...], ...]:
    """Return the inputs in order. Raises InvalidField for none, for an empty list of tokens, and for mixed forms."""
    if isinstance(body, str):
        return (body,)
    if not body:
        raise InvalidField(field, "must not be empty")
    if all(isinstance(each, int) for each in body):
        return (tuple(each for each in body if isinstance(each, int)),)
    inputs: list[str | tuple[int, ...]] = []
    for index, each in enumerate(body):
        if isinstance(each, int) or isinstance(each, str) is not isinstance(body[0], str):
            raise InvalidField(f"{field}[{index}]", "texts and tokens cannot be mixed")
        if not isinstance(each, str) and not each:
            raise InvalidField(f"{field}[{index}]", "must not be empty")
        inputs.append(each if isinstance(each, str) else tuple(each))
    return tuple(inputs)
