"""Hosts: which kinds of server there are behind the same protocol, and what each adds to it or lacks.

Data, no behaviour. A setting that a host does not take is refused by name, never dropped. Sources: llama.cpp's
server documentation, vLLM's OpenAI-compatible server documentation, OpenAI's API reference.
Neighbours: `body` writes requests by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

_COMMON: Final = {
    "temperature": "temperature",
    "top_p": "top_p",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
}


class Host(msgspec.Struct, frozen=True):
    """A kind of server.

    `sampling` maps our names to the wire's. `progress`: it reports prefill. `template_arguments`: it hands
    `chat_template_kwargs` to the template. `schema_and_tools`: a schema next to tools needs no word on tool choice.
    `counts`: `/v1/chat/completions/input_tokens` counts a request. `tokenizes`: `/tokenize` does.
    `running_usage`: it can put token counts into every chunk.
    """

    sampling: Mapping[str, str]
    progress: bool = False
    template_arguments: bool = False
    schema_and_tools: bool = False
    counts: bool = False
    tokenizes: bool = False
    running_usage: bool = False


LLAMA_CPP: Final = Host(
    sampling={
        **_COMMON,
        "top_k": "top_k",
        "min_p": "min_p",
        "typical_p": "typical_p",
        "repeat_penalty": "repeat_penalty",
        "repeat_last_n": "repeat_last_n",
    },
    progress=True,
    template_arguments=True,
    schema_and_tools=True,
    counts=True,
    tokenizes=True,
)
VLLM: Final = Host(
    sampling={**_COMMON, "top_k": "top_k", "min_p": "min_p", "repeat_penalty": "repetition_penalty"},
    template_arguments=True,
    tokenizes=True,
    running_usage=True,
)
OPENAI: Final = Host(sampling=_COMMON)
