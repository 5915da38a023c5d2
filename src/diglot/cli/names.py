"""Names of models as a person types them, beside those the server lists."""

from __future__ import annotations

from diglot.core.model import InvalidName, ModelRef


def is_same(one: str, other: str) -> bool:
    """Whether two names mean the same model."""
    try:
        return ModelRef.parse(one) == ModelRef.parse(other)
    except InvalidName:
        return one == other
