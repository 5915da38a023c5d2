"""Models that are none: whatever is sent as weights, recipe, manifest or name is answered with a word, and the server lives."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.serving import Served, serving
from tests.store.gguf_bytes import LLAMA, gguf
from tests.store.registry import Registry, digest_of, registry
from tests.store.test_pull import MANIFESTS

SOUND: Final = gguf()
BOUNDED: Final = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

WEIGHTS = st.one_of(
    st.binary(max_size=200),
    st.binary(max_size=200).map(lambda tail: b"GGUF\x03\0\0\0" + tail),
    st.integers(0, len(SOUND)).map(lambda length: SOUND[:length]),
    st.tuples(st.integers(0, len(SOUND) - 9), st.binary(min_size=1, max_size=8)).map(
        lambda change: SOUND[: change[0]] + change[1] + SOUND[change[0] + len(change[1]) :]
    ),
    st.sampled_from(["split.count", "split.no", "general.type", "general.alignment"]).flatmap(
        lambda name: st.one_of(st.integers(-1, 1 << 33), st.text(max_size=9), st.booleans()).map(
            lambda value: gguf({**LLAMA, name: value})
        )
    ),
)
NAMES = st.text(st.sampled_from("aB0_.-:/%~ \\é\0@"), max_size=30) | st.text(max_size=20)
FAR = NAMES.map(lambda name: f"127.0.0.1:1/me/{name.replace('/', '')}")
"""Models of a registry that is not there; nothing is asked of others."""
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
RECIPES = st.fixed_dictionaries(
    {"model": st.just("odd") | NAMES},
    optional={
        "from": st.just("scripted") | FAR,
        "files": st.dictionaries(NAMES, st.just(digest_of(SOUND)) | st.text(max_size=80), max_size=3),
        "adapters": st.dictionaries(NAMES, st.just(digest_of(SOUND)), max_size=2),
        "template": ANYTHING,
        "system": ANYTHING,
        "license": ANYTHING,
        "parameters": ANYTHING | st.dictionaries(st.sampled_from(["num_ctx", "stop", "seed", "top_k"]), ANYTHING),
        "messages": ANYTHING,
        "quantize": ANYTHING,
        "stream": st.booleans(),
    },
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("odd"), "--engine", "scripted") as server:
        yield server


@pytest.fixture(scope="module")
def http(served: Served) -> Iterator[httpx2.Client]:
    with served.http() as client:
        yield client


@pytest.fixture(scope="module")
def there() -> Iterator[Registry]:
    with registry() as offered:
        yield offered


def told(answer: httpx2.Response) -> str:
    """Return the error of an answer, in its status or in its last line; empty where there is none."""
    assert answer.status_code < 500, answer.text
    if not answer.text:
        return ""
    last: dict[str, Any] = json.loads(answer.text.rstrip("\n").rpartition("\n")[2])
    error = last.get("error", "")
    assert isinstance(error, str)
    assert "internal error" not in error
    assert bool(error) or answer.status_code < 400
    return error


@BOUNDED
@given(WEIGHTS)
def test_any_weights_make_a_model_or_are_refused(http: httpx2.Client, weights: bytes) -> None:
    digest = digest_of(weights)
    assert not told(http.post(f"/api/blobs/{digest}", content=weights))
    error = told(http.post("/api/create", json={"model": "odd", "files": {"w.gguf": digest}}))
    shown = http.post("/api/show", json={"model": "odd"})
    if error:
        assert told(shown) == "" or shown.status_code == 404
    else:
        assert shown.json()["model_info"]["general.architecture"] == "llama"
    assert http.get("/api/tags").status_code == 200


@BOUNDED
@given(RECIPES)
def test_any_recipe_makes_a_model_or_is_refused(http: httpx2.Client, recipe: dict[str, Any]) -> None:
    http.post(f"/api/blobs/{digest_of(SOUND)}", content=SOUND)
    told(http.post("/api/create", json=recipe))
    assert http.get("/api/tags").status_code == 200


@BOUNDED
@given(MANIFESTS)
def test_any_manifest_is_pulled_or_refused(http: httpx2.Client, there: Registry, manifest: bytes) -> None:
    there.manifests["me/odd:1"] = manifest
    assert told(http.post("/api/pull", json={"model": f"{there.host}/me/odd:1", "insecure": True}))
    assert http.get("/api/tags").status_code == 200


@BOUNDED
@given(NAMES, FAR)
def test_any_name_is_answered_everywhere(http: httpx2.Client, name: str, far: str) -> None:
    for method, path, body in (
        ("POST", "/api/show", {"model": name}),
        ("POST", "/api/generate", {"model": name, "prompt": "x", "stream": False}),
        ("POST", "/api/copy", {"source": name, "destination": "x"}),
        ("POST", "/api/copy", {"source": "none", "destination": name}),
        ("DELETE", "/api/delete", {"model": name}),
        ("POST", "/api/push", {"model": far, "insecure": True}),
        ("POST", "/v1/chat/completions", {"model": name, "messages": [{"role": "user", "content": "x"}]}),
    ):
        answer = http.request(method, path, json=body)
        assert answer.status_code < 500, (path, answer.text)
    assert http.get("/").text == "Ollama is running"
