"""The walls of the house: what a room may know of the others, and who may know a package from outside.

import-linter keeps the order of the layers (pyproject.toml); this adds the stricter word of
`docs/architecture.md` for the single rooms. A room that is not in KNOWS is bound by the layers alone.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from tests.house.source import Source, within

KNOWS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "diglot.core": (),
        "diglot.framing": ("diglot.core",),
        "diglot.services": ("diglot.core",),
        "diglot.dialects": ("diglot.core", "diglot.framing"),
        "diglot.engines": ("diglot.core", "diglot.framing"),
        "diglot.store": ("diglot.core",),
        "diglot.state": ("diglot.core",),
        "diglot.pictures": ("diglot.core",),
    }
)

OUTSIDE: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "backports": ("diglot.http",),
        "brotli": ("diglot.http",),
        "click": ("diglot.cli",),
        "PIL": ("diglot.pictures.__main__",),
        "gguf": ("diglot.store",),
        "httpx2": ("diglot.engines", "diglot.store.fetch", "diglot.store.registry", "diglot.store.hub", "diglot.cli"),
        "huggingface_hub": ("diglot.store",),
        "numpy": ("diglot.store",),
        "platformdirs": ("diglot.settings",),
        "pydantic": (),
        "safetensors": ("diglot.store",),
        "sqlite3": ("diglot.state",),
        "starlette": ("diglot.http",),
        "uvicorn": ("diglot.app", "diglot.cli", "diglot.http"),
        "websockets": (),
        "xllamacpp": ("diglot.engines.llamacpp",),
    }
)

# What core may use: nothing that reads a clock, a file, the environment, the network or chance. (A path
# is a value there; reading it is the store's part.)
PURE: Final = (
    *("__future__", "abc", "base64", "binascii", "bisect", "collections", "contextlib", "copy", "dataclasses"),
    *(
        "difflib",
        "enum",
        "functools",
        "hashlib",
        "heapq",
        "hmac",
        "html",
        "itertools",
        "json",
        "math",
        "operator",
        "pathlib",
    ),
    *("re", "shlex", "string", "struct", "textwrap", "types", "typing", "unicodedata", "urllib.parse", "zlib"),
    *("diglot.core", "msgspec"),
)

# Parsing and rendering give the same bytes at any time, for any request.
CHANCE: Final = ("random", "secrets", "time", "uuid", "os.urandom")


def stays_in_its_room(source: Source) -> Iterator[str]:
    """Yield each import that goes through a wall."""
    here = source.module
    for line, name in source.imports():
        for room, known in KNOWS.items():
            if within(here, room) and within(name, "diglot") and not within(name, room, *known):
                yield f"{line}: {room} may not know {name}"
        for package, rooms in OUTSIDE.items():
            if within(name, package) and not within(here, *rooms):
                yield f"{line}: {name} is known only in {', '.join(rooms) or 'no room'}"
        if within(here, "diglot.core") and not within(name, *PURE):
            yield f"{line}: core is pure and may not use {name}"
        if within(here, "diglot.dialects", "diglot.framing") and within(name, *CHANCE):
            yield f"{line}: a dialect gets time and ids handed in, not from {name}"
