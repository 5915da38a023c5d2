"""Servers for real clients: one with the starter models, one whose models say what stands in a script."""

from collections.abc import Iterator
from typing import Final

import ollama
import openai
import pytest

from tests.serving import Served, serving_script, serving_starters

WEATHER: Final = {"name": "get_weather", "arguments": {"city": "Brno"}}
SCRIPT: Final = {
    "replies": [
        {"when": "weather", "say": ["Let me ", "look."], "call": [WEATHER]},
        {"when": "two", "call": [WEATHER, {"name": "get_weather", "arguments": {"city": "Oslo"}}]},
        {"when": "think", "think": "Let me see.", "say": "It is 42."},
        {"when": "break", "say": ["Half ", "an answer"], "fault": "failed", "after": 1},
        {"echo": True},
    ]
}


@pytest.fixture(scope="session")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with the starter models."""
    with serving_starters(tmp_path_factory.mktemp("real"), "--window", "2048") as served:
        yield served


@pytest.fixture(scope="session")
def scripted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that says what stands in SCRIPT."""
    with serving_script(tmp_path_factory.mktemp("scripted"), SCRIPT) as served:
        yield served


@pytest.fixture
def openai_client(real: Served) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{real.url}/v1", api_key="any", max_retries=0) as client:
        yield client


@pytest.fixture
def ollama_client(real: Served) -> Iterator[ollama.Client]:
    with ollama.Client(real.url, trust_env=False) as client:
        yield client
