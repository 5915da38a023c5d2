"""Flags made from settings: every setting is one, with the setting's own type and words.

Neighbours: `diglot.settings` declares, commands say which of them they take, `settings_page` writes them down.

Invariant: a flag that is not given leaves the setting to the environment and the configuration file.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import click
import msgspec
from msgspec import inspect

from diglot.cli.failure import debug_option
from diglot.settings import Settings, SettingsError, load_settings

STORE: Final = ("home", "models")
REACH: Final = ("home", "host", "port", "key")

F = TypeVar("F", bound=Callable[..., Any])


class Flag(msgspec.Struct, frozen=True, kw_only=True):
    """One setting as a flag. `many`: it may be given more than once."""

    name: str
    kind: click.ParamType[Any] | type
    many: bool
    default: Any
    told: str

    @property
    def option(self) -> str:
        """How it is written on a command line."""
        name = self.name.replace("_", "-")
        return f"--{name}/--no-{name}" if self.kind is bool else f"--{name}"


def flags() -> tuple[Flag, ...]:
    """Return a flag for each setting, in order."""
    described = cast("inspect.StructType", inspect.type_info(Settings))
    return tuple(_flag(field) for field in described.fields)


def _flag(field: inspect.Field) -> Flag:
    kind, told = field.type, ""
    if isinstance(kind, inspect.Metadata):
        told = (kind.extra_json_schema or {}).get("description", "")
        kind = kind.type
    if isinstance(kind, inspect.UnionType):
        kind = next(each for each in kind.types if not isinstance(each, inspect.NoneType))
    many = isinstance(kind, inspect.VarTupleType)
    return Flag(name=field.name, kind=_kind(kind), many=many, default=field.default, told=told)


def _kind(kind: inspect.Type) -> click.ParamType[Any] | type:
    match kind:
        case inspect.BoolType():
            return bool
        case inspect.IntType():
            return int
        case inspect.FloatType():
            return float
        case inspect.StrType() | inspect.VarTupleType(item_type=inspect.StrType()):
            return str
        case inspect.LiteralType(values=values):
            return click.Choice([str(value) for value in values])
        case inspect.CustomType(cls=cls) | inspect.VarTupleType(item_type=inspect.CustomType(cls=cls)) if cls is Path:
            return click.Path(path_type=Path)
        case _:
            raise TypeError(f"a setting of type {kind} has no form on the command line")


def takes_settings(*names: str) -> Callable[[F], F]:
    """Give a command the flags of these settings, of all if none is named, and `--debug`.

    It is called with `settings`, those in force, beside its own arguments.
    """
    chosen = [flag for flag in flags() if flag.name in names or not names]

    def decorate(function: F) -> F:
        @wraps(function)
        def call(**given: Any) -> Any:
            asked = {flag.name: given.pop(flag.name) for flag in chosen}
            return function(settings=_in_force(asked), **given)

        for flag in reversed(chosen):
            call = _option(flag)(call)
        return debug_option(call)  # type: ignore[return-value]  # click gives back what it is given

    return decorate


def _option(flag: Flag) -> Callable[[F], F]:
    return click.option(flag.option, flag.name, type=flag.kind, multiple=flag.many, default=None, help=_help(flag))


def _help(flag: Flag) -> str:
    told = flag.told.replace("`", "")
    return f"{told} May be given more than once." if flag.many else told + shown_default(flag, "  [{}]")


def shown_default(flag: Flag, form: str = "{}") -> str:
    """Return the default in words, or nothing where there is none to speak of."""
    match flag.default:
        case msgspec.NODEFAULT | None | "" | ():
            return ""
        case bool(value):
            return form.format("yes" if value else "no")
        case float(value):
            return form.format(int(value) if value.is_integer() else value)
        case value:
            return form.format(value)


def _in_force(asked: dict[str, Any]) -> Settings:
    try:
        return load_settings({name: value for name, value in asked.items() if value not in (None, ())})
    except SettingsError as error:
        raise click.UsageError(str(error)) from error
