"""Pictures go all the way: to a real model with an eye, by three kinds of file and three protocols.

The eye is drawn at random, so that nobody asks what the model sees; a picture shows in the tokens of the prompt, and
in what the model would say next.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from typing import Any, Final

import ollama
import openai
import pytest
from PIL import Image

from diglot.core.model import ModelRef
from diglot.store.local import LocalStore
from tests.clients.eye import TOKENS, draw
from tests.serving import CHAT, Served, serving, starter_folder

pytestmark = pytest.mark.timeout(240)  # Real engines, on whatever machine this is.

WORDS: Final = "What is this?"
SHORT: Final = {"temperature": 0, "num_predict": 1}
KINDS: Final = ("PNG", "JPEG", "WEBP")


def picture(kind: str, colour: str = "#c81e5a") -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (40, 30), colour).save(file, kind)
    return file.getvalue()


def link(kind: str) -> str:
    return f"data:image/{kind.lower()};base64,{base64.b64encode(picture(kind)).decode()}"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that reads a folder with a starter model and an eye beside it."""
    folder = tmp_path_factory.mktemp("seeing")
    model = LocalStore(starter_folder()).resolve(ModelRef.parse(CHAT))
    (folder / "files").mkdir()
    (folder / "files" / "seeing.gguf").symlink_to(model.weights)
    draw(folder / "files" / "mmproj-eye.gguf", width=model.anatomy.embedding_length)
    flags = ("--models", str(starter_folder()), "--folders", str(folder / "files"), "--no-starter")
    with serving(folder / "home", *flags, "--threads", "1", "--window", "1024") as server:
        yield server


@pytest.fixture
def client(served: Served) -> Iterator[ollama.Client]:
    with ollama.Client(served.url, trust_env=False) as client:
        yield client


@pytest.fixture
def other(served: Served) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{served.url}/v1", api_key="any", max_retries=0) as client:
        yield client


@pytest.fixture
def blind(client: ollama.Client) -> int:
    """The tokens of the prompt without a picture."""
    return client.chat("seeing", [{"role": "user", "content": WORDS}], options=SHORT).prompt_eval_count or 0


def test_it_is_listed_as_one_that_sees(client: ollama.Client) -> None:
    shown = client.show("seeing")
    assert "vision" in (shown.capabilities or ())
    assert shown.modelinfo
    sizes = {each.model: each.size or 0 for each in client.list().models}
    assert sizes["seeing:latest"] > sizes[CHAT] * 0.99


@pytest.mark.parametrize("kind", KINDS)
def test_a_picture_of_each_kind_is_a_part_of_the_prompt(
    client: ollama.Client, other: openai.OpenAI, blind: int, kind: str
) -> None:
    message = {"role": "user", "content": WORDS, "images": [picture(kind)]}
    assert client.chat("seeing", [message], options=SHORT).prompt_eval_count == blind + TOKENS
    image = {"type": "image_url", "image_url": {"url": link(kind)}}
    parts: Any = [{"role": "user", "content": [{"type": "text", "text": WORDS}, image]}]
    chat = other.chat.completions.create(model="seeing", messages=parts, max_tokens=1, temperature=0)
    assert chat.usage
    assert chat.usage.prompt_tokens == blind + TOKENS
    content = [{"type": "input_text", "text": WORDS}, {"type": "input_image", "image_url": link(kind)}]
    asked: Any = [{"role": "user", "content": content}]
    response = other.responses.create(model="seeing", input=asked, max_output_tokens=16, temperature=0)
    assert response.usage
    assert response.usage.input_tokens == blind + TOKENS


def test_several_pictures_each_take_their_place(client: ollama.Client, blind: int) -> None:
    images = [picture("PNG"), picture("JPEG", "#ffffff"), picture("PNG", "#000000")]
    answer = client.chat("seeing", [{"role": "user", "content": WORDS, "images": images}], options=SHORT)
    assert answer.prompt_eval_count == blind + 3 * TOKENS
    assert client.generate("seeing", WORDS, images=images[:1], options=SHORT).prompt_eval_count == blind + TOKENS


def test_what_the_model_says_depends_on_the_picture(client: ollama.Client) -> None:
    def chances(colour: str) -> list[float]:
        message = {"role": "user", "content": WORDS, "images": [picture("PNG", colour)]}
        answer = client.chat("seeing", [message], options=SHORT, logprobs=True, top_logprobs=5)
        assert answer.logprobs
        return [each.logprob or 0.0 for each in answer.logprobs[0].top_logprobs or ()]

    assert chances("#ffffff") == pytest.approx(chances("#ffffff"), abs=1e-4)
    assert chances("#ffffff") != pytest.approx(chances("#000000"), abs=1e-3)


def test_a_model_without_an_eye_refuses_pictures_in_words(client: ollama.Client) -> None:
    with pytest.raises(ollama.ResponseError, match=r"image|vision|picture") as caught:
        client.chat(CHAT, [{"role": "user", "content": WORDS, "images": [picture("PNG")]}], options=SHORT)
    assert caught.value.status_code == 400


def test_what_is_no_picture_is_refused(client: ollama.Client) -> None:
    broken = base64.b64encode(b"no picture at all").decode()
    with pytest.raises(ollama.ResponseError) as caught:
        client.chat("seeing", [{"role": "user", "content": WORDS, "images": [broken]}], options=SHORT)
    assert caught.value.status_code == 400
