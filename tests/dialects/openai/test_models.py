"""Models: what is on disk, as a list and one by one."""

import json
from pathlib import Path

from openai.types import Model as OpenAIModel

from diglot.core.model import Anatomy, Capabilities, Model, ModelCard, ModelDetails, ModelRef
from diglot.core.request import ListModels, ShowModel
from diglot.dialects.openai import models
from diglot.dialects.operation import Wire
from tests.dialects.openai.material import STAMP


def model(name: str, **abilities: bool) -> Model:
    return Model(
        ref=ModelRef.parse(name),
        digest="0" * 64,
        size=1,
        modified_at=1_700_000_000_999_999_999,
        weights=Path("weights.gguf"),
        details=ModelDetails(),
        capabilities=Capabilities(**abilities),
        anatomy=Anatomy(architecture="llama"),
    )


def test_the_list_holds_every_model_that_chats_or_embeds() -> None:
    listed = (model("smol:135m", completion=True), model("hf.co/Maker/mini:f16", embedding=True))
    assert models.parse_list(Wire()).request == ListModels()
    reply = json.loads(models.whole_list(None, STAMP, listed).body)
    assert [each["slug"] for each in reply.pop("models")] == ["smol:135m"]
    assert reply == {
        "object": "list",
        "data": [
            {"id": "smol:135m", "object": "model", "created": 1_700_000_000, "owned_by": "library"},
            {"id": "hf.co/Maker/mini:f16", "object": "model", "created": 1_700_000_000, "owned_by": "Maker"},
        ],
    }
    for each in reply["data"]:
        OpenAIModel.model_validate(each, strict=True)


def test_no_models_are_an_empty_list() -> None:
    assert json.loads(models.whole_list(None, STAMP, ()).body) == {"object": "list", "data": [], "models": []}


def test_one_model_comes_back_under_the_name_that_was_asked_for() -> None:
    parsed = models.parse_one(Wire(path={"id": "hf.co/maker/MINI:f16"}))
    assert parsed.request == ShowModel(model="hf.co/maker/MINI:f16")
    card = ModelCard(model=model("hf.co/Maker/mini:f16"), info={}, tensors=())
    assert json.loads(models.whole_one(parsed.view, STAMP, card).body)["id"] == "hf.co/maker/MINI:f16"


def test_a_name_may_hold_slashes() -> None:
    assert models.ONE.path == "/v1/models/{id:path}"
