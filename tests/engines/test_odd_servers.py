"""Servers that keep the protocol in their own way, or not quite: what is borne, and what is blamed on them."""

from __future__ import annotations

from typing import Any

import pytest

from diglot.core.errors import UpstreamFailed
from diglot.core.request import Embedding, Residence
from tests.engines.asking import WEATHER, asked, result_of
from tests.engines.loopback import Said
from tests.engines.test_remote import VLLM, called, chunk, served


@pytest.mark.parametrize("index", [0, None])
async def test_calls_of_a_server_that_does_not_count_them_are_told_apart_by_their_ids(index: Any) -> None:
    stream = [
        called(index, "get_weather", '{"city":', "call_a"),
        called(index, None, '"Brno"}', "call_a"),
        called(index, "get_weather", '{"city":"Oslo"}', "call_b"),
        chunk(finish="tool_calls"),
    ]
    async with served(VLLM, chat=lambda _: Said(stream=stream)) as (engine, _):
        result = await result_of(engine.generate(asked("Weather?", tools=(WEATHER,))))
    assert [(call.call_id, call.arguments) for call in result.choices[0].calls] == [
        ("call_a", '{"city":"Brno"}'),
        ("call_b", '{"city":"Oslo"}'),
    ]


@pytest.mark.parametrize("broken", ["AAA", "AAAA", "é"])
async def test_vectors_that_are_none_are_the_servers_failure(broken: str) -> None:
    vectors: list[Any] = [[3.0, 4.0]]

    def embed(_: dict[str, Any]) -> Said:
        return Said({"data": [{"index": 0, "embedding": vectors[-1]}]})

    async with served(VLLM, embed=embed) as (engine, _):
        vectors.append(broken)
        with pytest.raises(UpstreamFailed):
            await engine.embed(Embedding(residence=Residence(), inputs=("a",)))


@pytest.mark.parametrize(
    "deltas",
    [
        [{"reasoning_content": "Hm"}, {"content": "Hi"}, {"content": " you"}],
        [{"content": each} for each in ("<think>", "Hm", "</think>", "\n\n", "Hi", " you")],
    ],
    ids=["split there", "split here"],
)
async def test_log_probabilities_are_those_of_the_text_and_not_of_the_thoughts(deltas: list[dict[str, str]]) -> None:
    stream = [
        {"choices": [{"delta": delta, "logprobs": {"content": [{"token": token, "logprob": -0.5}]}}]}
        for delta in deltas
        for token in delta.values()
    ]
    async with served(VLLM, chat=lambda _: Said(stream=[*stream, chunk(finish="stop")])) as (engine, _):
        (choice,) = (await result_of(engine.generate(asked("Hi", logprobs=0)))).choices
    assert (choice.reasoning, choice.text) == ("Hm", "Hi you")
    assert [each.token for each in choice.logprobs] == ["Hi", " you"]


async def test_a_token_of_impossible_bytes_breaks_nothing() -> None:
    told = {"content": [{"token": "a", "logprob": -0.5, "bytes": [353, -1], "top_logprobs": []}]}
    answer = {"index": 0, "delta": {"content": "a"}, "logprobs": told, "finish_reason": "stop"}
    async with served(VLLM, chat=lambda _: Said(stream=[{"choices": [answer]}])) as (engine, _):
        assert (await result_of(engine.generate(asked("Hi", logprobs=0)))).choices[0].text == "a"
