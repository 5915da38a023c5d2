"""The application: paths, methods, and the form of what lies outside of both."""

import pytest

from diglot.core.errors import Busy
from diglot.dialects.operation import Rendered
from diglot.http.reply import send_whole
from tests.http.world import World
from tests.services.world import model


async def test_head_is_answered_wherever_get_is_with_the_same_headers_and_no_body() -> None:
    world = World()
    for path in ("/", "/health", "/openapi.json", "/models/chat"):
        get, head = await world.get("GET", path), await world.get("HEAD", path)
        assert get.status == head.status == 200
        assert get.headers.keys() == head.headers.keys()
        assert all(get.headers[name] == value for name, value in head.headers.items() if name != "x-request-id")
        assert head.text == ""
        assert int(head.headers["content-length"]) == len(get.text.encode()) > 0


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("GET", "/say", "POST"),
        ("HEAD", "/say", "POST"),
        ("POST", "/", "GET, HEAD"),
        ("PUT", "/models/a", "DELETE, GET, HEAD"),
        ("BREW", "/health", "GET, HEAD"),
    ],
)
async def test_a_wrong_method_is_told_which_are_right(method: str, path: str, allow: str) -> None:
    reply = await World().get(method, path)
    assert (reply.status, reply.headers["allow"]) == (405, allow)
    assert reply.text.startswith("WrongMethod") or method == "HEAD"


@pytest.mark.parametrize("path", ["/nothing", "/say/more", "/models", "/SAY"])
async def test_a_path_that_is_not_there_has_the_form_of_its_dialect(path: str) -> None:
    reply = await World().get("POST", path)
    assert (reply.status, reply.text) == (404, f"UnknownPath: there is nothing at {path}")


@pytest.mark.parametrize(
    ("method", "path", "meant"),
    [("POST", "/say/", "/say"), ("GET", "//models//chat//", "/models/chat"), ("GET", "//", "/")],
)
async def test_slashes_too_many_are_passed_over(method: str, path: str, meant: str) -> None:
    world = World()
    body = b'{"text": "hi"}' if method == "POST" else b""
    crooked, straight = await world.get(method, path, body), await world.get(method, meant, body)
    assert crooked.status == straight.status == 200
    assert crooked.text == straight.text


async def test_the_longest_prefix_says_whose_form_it_is() -> None:
    world = World()
    assert (await world.get("GET", "/other/x")).text == "other"
    refused = await world.get("GET", "/other/x", headers={"host": "evil.example"})
    assert (refused.status, refused.text) == (403, "other")


async def test_an_operation_gets_its_path_query_headers_and_body() -> None:
    world = World()
    name = "hf.co/Org/Model:tag"
    reply = await world.get("DELETE", f"/models/{name}", b"body", headers={"X-Thing": "é"}, query="a=1&b=&a=2")
    assert '"id":"hf.co/Org/Model:tag"' in reply.text
    assert '"query":{"a":"2","b":""}' in reply.text
    assert '"x-thing":"é"' in reply.text
    assert '"body":"Ym9keQ=="' in reply.text


async def test_a_name_in_a_path_reaches_the_catalogue() -> None:
    world = World()
    assert (await world.get("GET", "/models/chat:latest")).status == 200
    assert (await world.get("GET", "/models/no/such")).status == 404
    world.store.models.append(model("org/name:tag"))
    assert (await world.get("GET", "/models/org/name:tag")).status == 200


async def test_a_header_value_is_sent_as_it_can_be_whatever_is_in_it() -> None:
    sent: list[dict[str, object]] = []

    async def send(message: object) -> None:
        assert isinstance(message, dict)
        sent.append(message)

    odd = "mödel\u4e2d\r\nx-forged: 1\x00"
    await send_whole(Rendered(b"", headers={"X-Model": odd}), send)
    headers = sent[0]["headers"]
    assert isinstance(headers, list)
    assert headers[-1] == (b"x-model", b"m\xf6del?  x-forged: 1 ")


async def test_busy_is_said_in_the_form_of_the_dialect() -> None:
    world = World()
    world.loader.fault = Busy(retry_after=3)
    assert (await world.get("POST", "/say")).status == 503
