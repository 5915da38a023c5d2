"""Listing: what a remote server offers, and what each of its models can do. Blocking; callers use a thread.

A server names its models at `/v1/models`; the rest is probed there once for each model, because the protocol
has no place for it: llama.cpp says much, vLLM its window, others nothing. What is not said is assumed to work
and left to the server to refuse. Neighbours: `models` keeps the result, `engine` works by it.

Invariant: a server's errors end here, as UpstreamFailed.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import httpx2
import msgspec

from diglot.core.errors import UpstreamFailed
from diglot.core.foreign import UNREADABLE
from diglot.core.model import Anatomy, Capabilities, InvalidName, Model, ModelDetails, ModelRef
from diglot.engines.peer.hosts import LLAMA_CPP, OPENAI, VLLM, Host

FORMAT: Final = "remote"
_SECONDS: Final = httpx2.Timeout(20.0, connect=3.0)
SLOTS: Final = 64  # vLLM and its like queue by themselves; this only bounds what is sent.
_PROBED: Final = 32  # Servers with more models than this are gateways: they are not asked about each.
_HOSTS: Final = {"llamacpp": LLAMA_CPP, "vllm": VLLM}
_OUTSIDE: Final = re.compile(r"[^A-Za-z0-9_.:-]+")


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """One model of a server: as it is known here, as it is called there, and what the server is."""

    model: Model
    address: str
    id: str
    host: Host
    slots: int = SLOTS


class _Meta(msgspec.Struct):
    n_ctx: int = 0
    n_embd: int = 0
    n_params: int = 0
    size: int = 0
    ftype: str = ""


class _Entry(msgspec.Struct):
    id: str
    owned_by: str = ""
    created: int = 0
    max_model_len: int | None = None
    meta: _Meta | None = None


class _Entries(msgspec.Struct):
    data: list[_Entry]


class _Caps(msgspec.Struct):
    supports_tools: bool = True
    supports_reasoning_effort: bool = False
    supports_preserve_reasoning: bool = False


class _Modalities(msgspec.Struct):
    vision: bool = False


class _Props(msgspec.Struct):
    total_slots: int = 1
    modalities: _Modalities = msgspec.field(default_factory=_Modalities)
    chat_template_caps: _Caps = msgspec.field(default_factory=_Caps)


def address_of(url: str) -> str:
    """Return a base URL without a trailing slash and without `/v1`."""
    return url.rstrip("/").removesuffix("/v1").rstrip("/")


def place_of(address: str) -> str:
    """Return an address as it may be shown: without a password."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}{parts.path}"


def list_offers(address: str, *, key: str, known: dict[str, Offer]) -> dict[str, Offer]:
    """Return the models of a server by their id there. Those in `known` are not probed again."""
    headers = {"authorization": f"Bearer {key}"} if key else {}
    with httpx2.Client(base_url=address, headers=headers, timeout=_SECONDS) as client:
        try:
            response = client.get("/v1/models")
            response.raise_for_status()
            entries = msgspec.json.decode(response.content, type=_Entries).data
            probing = len(entries) <= _PROBED
            return {
                entry.id: known.get(entry.id) or _offer(entry, client, address=address, probing=probing)
                for entry in entries
            }
        except httpx2.HTTPStatusError as error:
            reason = f"its list of models has status {error.response.status_code}"
            raise UpstreamFailed(place_of(address), reason=reason) from error
        except (httpx2.TransportError, httpx2.InvalidURL) as error:
            raise UpstreamFailed(place_of(address), reason="it cannot be reached", detail=str(error)) from error
        except UNREADABLE as error:
            raise UpstreamFailed(place_of(address), reason="it gives no list of models", detail=str(error)) from error


def _offer(entry: _Entry, client: httpx2.Client, *, address: str, probing: bool) -> Offer:
    host = _HOSTS.get(entry.owned_by, VLLM if entry.max_model_len else OPENAI)
    props = _props(client) if host is LLAMA_CPP else None
    embeds = probing and _embeds(client, entry.id)
    return Offer(
        model=_model(entry, _abilities(props, embeds=embeds), address),
        address=address,
        id=entry.id,
        host=host,
        slots=props.total_slots if props else SLOTS,
    )


def _props(client: httpx2.Client) -> _Props | None:
    response = client.get("/props")
    return msgspec.json.decode(response.content, type=_Props) if response.is_success else None


def _embeds(client: httpx2.Client, name: str) -> bool:
    """Whether a model embeds. No list says it, but a model that does not refuses at once."""
    return client.post("/v1/embeddings", json={"model": name, "input": "a"}).is_success


def _abilities(props: _Props | None, *, embeds: bool) -> Capabilities:
    if embeds:
        return Capabilities(embedding=True)
    if props is None:
        return Capabilities(
            completion=True, tools=True, vision=True, thinking=True, template_tools=True, template_thinks=True
        )
    caps = props.chat_template_caps
    thinks = caps.supports_reasoning_effort or caps.supports_preserve_reasoning
    return Capabilities(
        completion=True,
        tools=True,
        vision=props.modalities.vision,
        thinking=thinks,
        template_tools=caps.supports_tools,
        template_thinks=thinks,
    )


def _model(entry: _Entry, capabilities: Capabilities, address: str) -> Model:
    meta = entry.meta or _Meta()
    window = entry.max_model_len or meta.n_ctx
    return Model(
        ref=ref_of(entry.id),
        digest=hashlib.sha256(f"{address}\n{entry.id}".encode()).hexdigest(),
        size=meta.size,
        modified_at=entry.created * 10**9,
        weights=Path(FORMAT),
        details=ModelDetails(
            format=FORMAT, quantization_level=meta.ftype, context_length=window, embedding_length=meta.n_embd
        ),
        capabilities=capabilities,
        anatomy=Anatomy(
            architecture=FORMAT,
            parameter_count=meta.n_params,
            context_length=window,
            embedding_length=meta.n_embd,
        ),
    )


def ref_of(name: str) -> ModelRef:
    """Return a name of ours for any id: the id itself where the grammar allows it, else what is left of its end."""
    try:
        return ModelRef.parse(name)
    except InvalidName:
        last = _OUTSIDE.sub("-", name.rstrip("/").rpartition("/")[2])
        model, _, tag = last.partition(":")
        return ModelRef(
            model.strip("-.")[:80] or FORMAT, tag=_OUTSIDE.sub("-", tag.replace(":", "-")).strip("-.")[:80] or "latest"
        )
