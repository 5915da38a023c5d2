"""Ollama's protocol: newline-delimited JSON under `/api`, and the text at `/`.

One file an operation, and beside them the pieces they share. The facts are those of Ollama's own server and
of its CLI, Python and JS clients. It knows `core` and `framing`, and no other dialect.
"""

from __future__ import annotations

from typing import Final

from diglot.dialects.ollama.chat import CHAT
from diglot.dialects.ollama.create import CREATE
from diglot.dialects.ollama.embed import EMBED, EMBEDDINGS
from diglot.dialects.ollama.errors import Wording
from diglot.dialects.ollama.generate import GENERATE
from diglot.dialects.ollama.health import RUNNING, STATUS, VERSION
from diglot.dialects.ollama.holdings import CHECK_BLOB, COPY, DELETE, STORE_BLOB
from diglot.dialects.ollama.models import PROCESSES, TAGS
from diglot.dialects.ollama.moving import PULL, PUSH
from diglot.dialects.ollama.show import SHOW
from diglot.dialects.operation import Dialect

DIALECT: Final = Dialect(
    name="ollama",
    prefix="/api",
    operations=(
        *(RUNNING, VERSION, STATUS, TAGS, PROCESSES, SHOW, CHAT, GENERATE, EMBED, EMBEDDINGS),
        *(PULL, PUSH, CREATE, COPY, DELETE, CHECK_BLOB, STORE_BLOB),
    ),
    error=Wording().render,
)

__all__ = ["DIALECT"]
