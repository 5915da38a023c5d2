"""Every operation reads any body that is nearly sound: it becomes a request, or a fault that the client can mend.

What becomes a request can go all the way to an engine: it can be written down, and the body that a server of a model
is asked with can be made of it, or is refused with a fault as well.
"""

import json
from http import HTTPStatus
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diglot.core.errors import AnyFault, Fault
from diglot.core.request import Generation, Respond
from diglot.dialects.ollama import DIALECT as OLLAMA
from diglot.dialects.openai import DIALECT as OPENAI
from diglot.dialects.openai.responses import SOCKETS
from diglot.dialects.operation import Dialect, Operation, Parsed, Wire
from diglot.engines.peer.body import Target, generation_body
from diglot.engines.peer.hosts import LLAMA_CPP
from tests.fuzz.bodies import BODIES
from tests.fuzz.odd import FEW, nearly

ROWS: Final[dict[str, tuple[Dialect, Operation]]] = {
    row.path: (dialect, row) for dialect in (OLLAMA, OPENAI) for row in dialect.operations if row.body is not None
}


def judged(path: str, body: bytes) -> Parsed | None:
    """Return what a body is read as; None where it is refused as a client's mistake."""
    dialect, row = ROWS[path]
    try:
        parsed = row.parse(Wire(body=body))
    except Fault as fault:
        known: AnyFault = fault  # type: ignore[assignment]  # Every fault is one of them.
        reply = (row.error or dialect.error)(known)
        assert HTTPStatus.BAD_REQUEST <= reply.status < HTTPStatus.INTERNAL_SERVER_ERROR, reply.body
        assert msgspec.json.decode(reply.body)["error"]
        return None
    assert row.parse(Wire(body=body)) == parsed
    return parsed


def asked_of_an_engine(request: Any) -> None:
    """See that a request can be written down, and asked of an engine or refused."""
    msgspec.json.encode(request)
    generation = request.generation if isinstance(request, Respond) else request
    if isinstance(generation, Generation):
        for template_tools in (True, False):
            target = Target(model="m", host=LLAMA_CPP, template_tools=template_tools, window=4096)
            try:
                _, body = generation_body(generation, target)
            except Fault:
                continue
            assert isinstance(msgspec.json.decode(body), dict)


def test_there_is_a_rich_body_for_every_operation() -> None:
    assert set(BODIES) == set(ROWS)


@pytest.mark.parametrize("path", sorted(ROWS))
def test_the_rich_body_is_read(path: str) -> None:
    parsed = judged(path, json.dumps(BODIES[path]).encode())
    assert parsed is not None
    asked_of_an_engine(parsed.request)


@pytest.mark.parametrize("path", sorted(ROWS))
@FEW
@given(data=st.data())
def test_what_is_nearly_sound_is_a_request_or_a_fault(path: str, data: st.DataObject) -> None:
    parsed = judged(path, json.dumps(data.draw(nearly(BODIES[path]))).encode())
    if parsed is not None:
        asked_of_an_engine(parsed.request)


@pytest.mark.parametrize("path", sorted(ROWS))
@FEW
@given(data=st.data())
def test_bytes_that_were_changed_in_place_are_a_request_or_a_fault(path: str, data: st.DataObject) -> None:
    body = bytearray(json.dumps(BODIES[path]).encode())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(body) - 1))
        width = data.draw(st.integers(0, 3))
        body[at : at + width] = data.draw(
            st.binary(max_size=3) | st.sampled_from([b"\\ud800", b"\xff", b'"', b"[", b"1e999"])
        )
    judged(path, bytes(body))


@given(nearly(BODIES["/v1/responses"]).filter(lambda body: isinstance(body, dict)))
def test_a_message_of_a_socket_is_a_request_or_a_fault(body: dict[str, Any]) -> None:
    (socket,) = SOCKETS
    try:
        parsed = socket.parse(Wire(body=json.dumps({"type": "response.create", **body}).encode()))
    except Fault as fault:
        known: AnyFault = fault  # type: ignore[assignment]  # Every fault is one of them.
        assert msgspec.json.decode(socket.error(known))["type"] == "error"
        return
    asked_of_an_engine(parsed.request)
