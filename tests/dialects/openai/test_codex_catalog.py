"""The catalog for Codex: every field that it cannot start without, and windows as they are served."""

import json
from pathlib import Path
from typing import Any, Final

from diglot.core.model import Anatomy, Capabilities, Model, ModelDetails, ModelRef
from diglot.dialects.openai import models
from tests.dialects.openai.material import STAMP

NEEDED: Final = (
    *("slug", "display_name", "supported_reasoning_levels", "shell_type", "visibility", "supported_in_api", "priority"),
    *("base_instructions", "support_verbosity", "truncation_policy", "experimental_supported_tools"),
)


def model(name: str, window: int = 8192, **abilities: bool) -> Model:
    """Return a model that is served with this window."""
    return Model(
        ref=ModelRef.parse(name),
        digest="0" * 64,
        size=1,
        modified_at=0,
        weights=Path("weights.gguf"),
        details=ModelDetails(context_length=window),
        capabilities=Capabilities(**abilities),
        anatomy=Anatomy(architecture="llama", context_length=131_072),
    )


def catalog(*listed: Model) -> list[dict[str, Any]]:
    """Return the catalog of these models."""
    shown: list[dict[str, Any]] = json.loads(models.whole_list(None, STAMP, listed).body)["models"]
    return shown


def test_a_model_has_all_that_codex_needs() -> None:
    (shown,) = catalog(model("coder:7b", completion=True))
    assert [field for field in NEEDED if field not in shown] == []
    assert (shown["slug"], shown["visibility"], shown["apply_patch_tool_type"]) == ("coder:7b", "list", "freeform")
    assert not shown["supports_search_tool"]
    assert 0 < len(shown["base_instructions"]) < 1000


def test_the_window_is_the_one_that_is_served_and_compaction_comes_before_it_is_full() -> None:
    (shown,) = catalog(model("coder:7b", window=8192, completion=True))
    assert shown["context_window"] == 8192
    assert 8192 // 2 < shown["auto_compact_token_limit"] < 8192 * 0.9
    assert shown["auto_compact_token_limit"] + shown["truncation_policy"]["limit"] < 8192


def test_only_models_that_chat_are_offered_the_first_before_all() -> None:
    shown = catalog(
        model("a", completion=True), model("e", embedding=True), model("b", completion=True, vision=True, thinking=True)
    )
    assert [(each["slug"], each["priority"]) for each in shown] == [("a:latest", 0), ("b:latest", 1)]
    assert [each["input_modalities"] for each in shown] == [["text"], ["text", "image"]]
    assert [bool(each["supported_reasoning_levels"]) for each in shown] == [False, True]


def test_the_tag_changes_with_the_list() -> None:
    def tag(*listed: Model) -> str:
        return models.whole_list(None, STAMP, listed).headers["ETag"]

    one = model("a", completion=True)
    assert tag(one) == tag(one) != tag(one, model("b", completion=True))
    assert tag(one) != tag(model("a", window=4096, completion=True))
