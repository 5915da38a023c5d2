"""What comes beside the weights: adapters and projectors reach the engine, and rerankers rank."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import gguf
import numpy as np
import pytest
from msgspec.structs import replace

from diglot.core.errors import ContextExceeded, ModelIncapable
from diglot.core.items import Image, Message, Text
from diglot.core.model import Capabilities, Model, ModelRef
from diglot.core.ports import Engine
from diglot.core.request import Conversation, Embedding, LoadOptions, Rerank, Residence, Sampling
from diglot.engines.llamacpp.child import parameters
from diglot.engines.llamacpp.launch import Launch
from diglot.engines.llamacpp.loader import LlamaLoader
from diglot.engines.llamacpp.program import arguments
from diglot.engines.peer.body import Target, generation_body, prompt_body
from diglot.engines.peer.hosts import LLAMA_CPP
from diglot.engines.scripted.loader import ScriptedLoader
from diglot.engines.scripted.models import ScriptedModels
from diglot.engines.scripted.script import Script
from diglot.store.convert.writer import convert
from diglot.store.local import LocalStore
from tests.engines.asking import asked, result_of
from tests.engines.conftest import WINDOW, nothing
from tests.store.encoders import GOLDEN, RERANKER, ROBERTA, lay_encoder, tensors_of

pytestmark = pytest.mark.timeout(180)

RESIDENCE: Final = Residence("any")
QUERY: Final = (7, 221, 9)  # "the cat"
DOCUMENTS: Final = {
    "the bear": (7, 127, 147),
    "a wolf runs fast": (24, 138, 14, 22, 4, 17, 57, 13, 5, 4, 22, 15, 117),
    "Hello": (219, 120, 39),
}
"""Texts, and their token numbers."""


@asynccontextmanager
async def loaded(llama: LlamaLoader, model: Model, options: LoadOptions = WINDOW) -> AsyncIterator[Engine]:
    engine = await llama.load(model, options, nothing)
    try:
        yield engine
    finally:
        await engine.close()


def converted(folder: Path, name: str, *, ranks: bool) -> Model:
    """Return a small encoder with random weights, with or without a head that ranks."""
    config = RERANKER if ranks else ROBERTA
    source = lay_encoder(folder / name, config, tokenizer=GOLDEN / "unigram.json", pooling="cls_token")
    convert(source, folder / f"{name}.gguf", element="f32")
    return LocalStore(folder / "models").add_file(folder / f"{name}.gguf", ModelRef(name))


def adapter(path: Path, model: Model, *, strength: float) -> Path:
    """Write an adapter for the first layer of a model."""
    width = model.anatomy.embedding_length
    numbers = np.random.default_rng(5)
    writer = gguf.GGUFWriter(path, arch=model.anatomy.architecture)
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", 4.0)
    writer.add_tensor("blk.0.attn_q.weight.lora_a", numbers.normal(size=(4, width)).astype(np.float32))
    writer.add_tensor("blk.0.attn_q.weight.lora_b", (strength * np.ones((width, 4))).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


async def test_an_adapter_changes_what_the_model_says(tmp_path: Path, llama: LlamaLoader, chat_model: Model) -> None:
    said: list[str] = []
    sampling = Sampling(max_tokens=12, temperature=0.0, seed=1)
    idle = adapter(tmp_path / "idle.gguf", chat_model, strength=0.0)
    strong = adapter(tmp_path / "strong.gguf", chat_model, strength=3.0)
    for adapters in ((), (idle,), (strong,)):
        async with loaded(llama, replace(chat_model, adapters=adapters)) as engine:
            result = await result_of(engine.generate(asked("Tell me of the sea.", sampling=sampling)))
            said.append(result.choices[0].text)
    assert said[0] == said[1] != said[2]


def test_a_projector_and_adapters_are_handed_to_either_host() -> None:
    launch = Launch(
        model="/m.gguf",
        key="k",
        window=8,
        pool=8,
        slots=1,
        threads=1,
        batch_threads=1,
        batch=8,
        projector="/p.gguf",
        adapters=("/a.gguf", "/b.gguf"),
        program="llama-server",
    )
    params = parameters(launch)
    assert params.mmproj.path == "/p.gguf"
    assert [each.path for each in params.lora_adapters] == ["/a.gguf", "/b.gguf"]
    line = " ".join(arguments(launch, port=1, key_file=Path("key")))
    assert "--mmproj /p.gguf --lora /a.gguf --lora /b.gguf" in line


@pytest.mark.parametrize(("words", "told"), [(9, "timings_per_token"), (300, "return_progress")])
def test_only_of_a_prompt_that_takes_time_the_engine_is_asked_how_far_it_is(words: int, told: str) -> None:
    _, body = generation_body(asked("word " * words), Target("any", LLAMA_CPP))
    assert {"timings_per_token", "return_progress"} & json.loads(body).keys() == {told}


@pytest.mark.parametrize("kind", ["image/png", "image/jpeg", "image/webp"])
def test_an_image_goes_to_the_engine_as_it_came(kind: str) -> None:
    message = Message("user", (Text("What is this?"), Image(b"\x00\xff", kind)))
    request = replace(asked("Hi"), prompt=Conversation((message,)))
    [turn] = prompt_body(request, Target("any", LLAMA_CPP))["messages"]
    assert turn["content"][1] == {"type": "image_url", "image_url": {"url": f"data:{kind};base64,AP8="}}


async def test_a_reranker_of_safetensors_ranks_as_its_own_framework_does(tmp_path: Path, llama: LlamaLoader) -> None:
    reranker, plain = (converted(tmp_path, f"e{ranks}", ranks=ranks) for ranks in (True, False))
    assert reranker.capabilities == Capabilities(rerank=True)
    async with loaded(llama, reranker) as engine:
        ranked = await engine.rerank(Rerank(RESIDENCE, "the cat", tuple(DOCUMENTS)))
    pairs = tuple((0, *QUERY, 2, 2, *tokens, 2) for tokens in DOCUMENTS.values())
    async with loaded(llama, plain) as engine:
        firsts = (await engine.embed(Embedding(RESIDENCE, pairs, normalise=False))).vectors
    weights = tensors_of({"vocab_size": reranker.anatomy.vocabulary, **RERANKER})
    hidden = np.tanh(np.array(firsts) @ weights["classifier.dense.weight"].T + weights["classifier.dense.bias"])
    expected = hidden @ weights["classifier.out_proj.weight"].T + weights["classifier.out_proj.bias"]
    assert ranked.scores == pytest.approx(expected[:, 0], abs=1e-4)
    assert ranked.input_tokens == sum(map(len, pairs))


@pytest.fixture(params=["scripted", "llamacpp"])
async def ranker(request: pytest.FixtureRequest, tmp_path: Path, llama: LlamaLoader) -> AsyncIterator[Engine]:
    if request.param == "scripted":
        script = Script(window=512)
        yield await ScriptedLoader(script).load(ScriptedModels(script).list()[2], LoadOptions(), nothing)
    else:
        async with loaded(llama, await asyncio.to_thread(converted, tmp_path, "ranker", ranks=True)) as engine:
            yield engine


async def test_there_is_a_score_for_each_document(ranker: Engine) -> None:
    one = await ranker.rerank(Rerank(RESIDENCE, "the cat", ("a cat",)))
    many = await ranker.rerank(Rerank(RESIDENCE, "the cat", ("a dog", "a cat", "a dog")))
    assert len(many.scores) == 3
    assert many.scores[0] == pytest.approx(many.scores[2], abs=1e-4)
    assert many.scores[1] == pytest.approx(one.scores[0], abs=1e-4)
    assert many.input_tokens > one.input_tokens > 0


async def test_a_document_that_does_not_fit_is_refused(ranker: Engine) -> None:
    with pytest.raises(ContextExceeded) as caught:
        await ranker.rerank(Rerank(RESIDENCE, "the cat", ("a cat", "cat " * 600)))
    assert caught.value.window == ranker.window
    assert caught.value.tokens > ranker.window


async def test_a_reranker_does_nothing_else(ranker: Engine) -> None:
    with pytest.raises(ModelIncapable):
        await ranker.embed(Embedding(RESIDENCE, ("a",)))
    with pytest.raises(ModelIncapable):
        await result_of(ranker.generate(asked("Hi")))
