"""Sources: what a person may write where a model is to be got.

    starter                                 the models to begin with
    [host/][namespace/]model[:tag]          a model of a registry
    hf.co/owner/repository[:quantisation]   GGUF files of a repository at Hugging Face
    https://host/path/file.gguf             one file

Only the form is looked at here; whether there is such a thing is found out by whoever fetches it.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote, urlsplit

import msgspec

from diglot.core.model import InvalidName, ModelRef

STARTER: Final = "starter"
HUBS: Final = ("hf.co", "huggingface.co", "www.huggingface.co")
_UNFIT: Final = re.compile(r"[^A-Za-z0-9_.-]+")
_LONGEST: Final = 80


class FromStarter(msgspec.Struct, frozen=True, tag="starter"):
    """The models that a fresh server begins with."""


class FromRegistry(msgspec.Struct, frozen=True, tag="registry"):
    """A model of the registry `ref.host`; `plain` when it was written with `http://`."""

    ref: ModelRef
    plain: bool = False


class FromHub(msgspec.Struct, frozen=True, tag="hub"):
    """GGUF files of the repository `repository` (owner and name); the tag of `ref` says which quantisation."""

    ref: ModelRef

    @property
    def repository(self) -> str:
        """Owner and name."""
        return f"{self.ref.namespace}/{self.ref.model}"


class FromUrl(msgspec.Struct, frozen=True, tag="url"):
    """One GGUF file, which gets the name `ref`."""

    url: str
    ref: ModelRef

    @property
    def plain(self) -> bool:
        """Whether it is written with `http://`."""
        return self.url.lower().startswith("http://")


Source = FromStarter | FromRegistry | FromHub | FromUrl


def read_source(text: str) -> Source:
    """Read what a person wrote. Raises InvalidName."""
    if text == STARTER:
        return FromStarter()
    scheme, _, rest = text.partition("://")
    if rest and urlsplit(text).path.lower().endswith(".gguf"):
        if scheme.lower() not in {"http", "https"}:
            raise InvalidName(text, "files are fetched by http and https")
        return FromUrl(text, name_of_file(unquote(urlsplit(text).path)))
    ref = ModelRef.parse(text)
    if ref.host.lower() in HUBS:
        return FromHub(ref)
    return FromRegistry(ref, plain=scheme == "http")


def name_of_file(path: str) -> ModelRef:
    """Return the name that a file gets where none was given. Raises InvalidName."""
    stem = re.sub(r"\.gguf$", "", path.rsplit("/", 1)[-1], flags=re.IGNORECASE)
    return ModelRef.parse(_UNFIT.sub("-", stem).strip("-.")[:_LONGEST])
