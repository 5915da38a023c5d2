"""OpenAI's protocol: chat, completions, embeddings, models and responses.

One operation is one file: `chat`, `completions`, `embeddings`, `rerank`, `models`; `responses` has a folder. The others are nouns
that they share; `errors` is the one table of faults, `compat` says what becomes of every field.
"""

from diglot.dialects.openai import chat, completions, embeddings, models, rerank
from diglot.dialects.openai.errors import render_error
from diglot.dialects.openai.responses import OPERATIONS, SOCKETS
from diglot.dialects.operation import Dialect

DIALECT = Dialect(
    name="openai",
    prefix="/v1",
    operations=(
        models.LIST,
        models.ONE,
        chat.OPERATION,
        completions.OPERATION,
        embeddings.OPERATION,
        rerank.OPERATION,
        *OPERATIONS,
    ),
    sockets=SOCKETS,
    error=render_error,
)

__all__ = ["DIALECT"]
