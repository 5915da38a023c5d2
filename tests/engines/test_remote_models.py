"""What remote servers offer, under names of ours, also when some of them are down."""

from __future__ import annotations

import asyncio
import logging

import pytest

from diglot.core.errors import ModelNotFound
from diglot.core.model import ModelRef
from diglot.engines.remote.listing import address_of, place_of, ref_of
from diglot.engines.remote.models import RemoteModels
from tests.engines.loopback import Said, loopback

PLAIN = {"id": "gpt-9", "object": "model", "created": 1750000000, "owned_by": "openai"}


async def test_a_server_that_is_down_hides_only_its_own_models(caplog: pytest.LogCaptureFixture) -> None:
    async with loopback({"/v1/models": lambda _: Said({"data": [PLAIN]})}) as server:
        models = RemoteModels(["http://127.0.0.1:9", server.address])
        with caplog.at_level(logging.WARNING):
            found = await asyncio.to_thread(models.list)
    assert [model.name for model in found] == ["gpt-9:latest"]
    assert "127.0.0.1:9" in caplog.text


async def test_the_list_is_kept_for_a_while() -> None:
    async with loopback({"/v1/models": lambda _: Said({"data": [PLAIN]})}) as server:
        models = RemoteModels([server.address])
        for _ in range(3):
            await asyncio.to_thread(models.resolve, ModelRef.parse("gpt-9"))
        with pytest.raises(ModelNotFound):
            await asyncio.to_thread(models.resolve, ModelRef.parse("gpt-10"))
        assert [path for path, _ in server.asked].count("/v1/models") == 1


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("gpt-9", "gpt-9:latest"),
        ("Qwen/Qwen3-8B", "Qwen/Qwen3-8B:latest"),
        ("llama3:8b", "llama3:8b"),
        ("/models/My Model (1).gguf", "My-Model-1-.gguf:latest"),
        ("a/b/c/d:x y", "d:x-y"),
        ("///", "remote:latest"),
    ],
)
def test_any_id_has_a_name_of_ours(name: str, ours: str) -> None:
    assert str(ref_of(name)) == ours


def test_an_address_is_shown_without_its_password() -> None:
    assert address_of("https://me:secret@host:8000/api/v1/") == "https://me:secret@host:8000/api"
    assert place_of("https://me:secret@host:8000/api") == "https://host:8000/api"
