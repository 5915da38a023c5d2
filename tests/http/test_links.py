"""Pictures behind links, through the whole house in each dialect: off, on, and what is refused."""

from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from diglot import app
from diglot.pictures.fetching import Fetcher
from tests.core.test_images import png
from tests.http.test_every_route import application, ask
from tests.pictures.test_fetching import hosting, reply

CHAT: Final = "/v1/chat/completions"


def bodies(link: str) -> list[tuple[str, dict[str, Any], str]]:
    """Return where to send what, and the field in which the link stands."""
    part = {"type": "image_url", "image_url": {"url": link}}
    return [
        (CHAT, {"messages": [{"role": "user", "content": [part]}]}, "messages[0].content[0].image_url.url"),
        (
            "/v1/responses",
            {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": link}]}]},
            "input[0].content[0].image_url",
        ),
        ("/api/chat", {"messages": [{"role": "user", "content": "a", "images": [link]}]}, "messages[0].images[0]"),
        ("/api/generate", {"prompt": "a", "images": [link]}, "images[0]"),
    ]


def sent(body: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"model": "scripted", "stream": False, **body})


async def test_a_link_is_not_followed_unless_a_setting_says_so(tmp_path: Path) -> None:
    async with hosting(lambda _: reply(png(1, 1))) as host:
        for path, body, field in bodies(f"http://127.0.0.1:{host.port}/a.png"):
            answer = await ask(application(tmp_path), "POST", path, sent(body))
            assert answer.status == 400
            told = answer.error if path.startswith("/api") else answer.error["message"]
            assert field in told or path == "/api/generate"
            assert "fetch_images" in told
        assert not host.connected


async def test_a_link_into_this_machine_is_not_followed_although_links_are(tmp_path: Path) -> None:
    async with hosting(lambda _: reply(png(1, 1))) as host:
        for path, body, _ in bodies(f"http://127.0.0.1:{host.port}/a.png"):
            answer = await ask(application(tmp_path, fetch_images=True), "POST", path, sent(body))
            assert answer.status == 400
            told = answer.error if path.startswith("/api") else answer.error["message"]
            assert told == "images[0]: it cannot be fetched: 127.0.0.1 is not on the public network"
        assert not host.connected


@pytest.mark.parametrize(("size", "status"), [((1, 1), 200), ((30, 30), 400)])
async def test_a_picture_behind_a_link_is_looked_at_like_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int], status: int
) -> None:
    monkeypatch.setattr(app, "Fetcher", partial(Fetcher, is_open=lambda address: address == "127.0.0.1"))
    async with hosting(lambda _: reply(png(*size))) as host:
        server = application(tmp_path, fetch_images=True)
        for path, body, _ in bodies(f"http://127.0.0.1:{host.port}/a.png"):
            assert (await ask(server, "POST", path, sent(body))).status == status
        assert host.connected == len(bodies(""))


async def test_a_stored_response_goes_on_with_its_link_and_gives_it_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "Fetcher", partial(Fetcher, is_open=lambda address: address == "127.0.0.1"))
    async with hosting(lambda _: reply(png(1, 1))) as host:
        server = application(tmp_path, fetch_images=True)
        link = f"http://127.0.0.1:{host.port}/a.png"
        _, body, _ = bodies(link)[1]
        first = msgspec.json.decode((await ask(server, "POST", "/v1/responses", sent(body))).body)
        items = (await ask(server, "GET", f"/v1/responses/{first['id']}/input_items")).body
        assert msgspec.json.decode(items)["data"][0]["content"][0]["image_url"] == link
        more = sent({"input": "and?", "previous_response_id": first["id"]})
        assert (await ask(server, "POST", "/v1/responses", more)).status == 200
        assert host.connected == 2
