"""The catalogue: which model a request gets."""

import pytest

from diglot.core.errors import InvalidField, ModelIncapable, ModelNotFound, NoModel
from diglot.core.model import Capability
from diglot.services.catalog import Catalog
from tests.services.world import Store, encoder, model

CHAT, EMBED = Capability.COMPLETION, Capability.EMBEDDING


async def test_a_name_is_found_in_any_case_and_in_the_first_store_that_has_it() -> None:
    near, far = Store(model("m", size=1)), Store(model("m", size=2), model("n"))
    catalog = Catalog([near, far])
    assert (await catalog.choose("M:LATEST", CHAT)).size == 1
    assert (await catalog.find("n")).name == "n:latest"
    assert [each.name for each in await catalog.list()] == ["m:latest", "n:latest"]


async def test_the_list_begins_with_the_newest() -> None:
    catalog = Catalog([Store(model("old", modified_at=1)), Store(model("new", modified_at=2))])
    assert [each.name for each in await catalog.list()] == ["new:latest", "old:latest"]


async def test_a_name_that_is_not_there_fails_with_the_name_as_it_was_written() -> None:
    catalog = Catalog([Store(model())])
    for ask in (catalog.find("Nope"), catalog.choose("Nope", CHAT), catalog.card("Nope", verbose=False)):
        with pytest.raises(ModelNotFound) as caught:
            await ask
        assert caught.value.name == "Nope"


@pytest.mark.parametrize("name", ["../etc/passwd", "a/b/c/d", "a b", "m:", "\udce4"])
async def test_a_name_outside_the_grammar_is_a_fault_of_the_field(name: str) -> None:
    catalog = Catalog([Store(model())])
    with pytest.raises(InvalidField) as caught:
        await catalog.choose(name, CHAT)
    assert caught.value.field == "model"


async def test_without_a_name_it_is_the_one_used_last_for_that_ability_else_the_newest() -> None:
    store = Store(model("new", modified_at=2), model("old", modified_at=1), encoder())
    catalog = Catalog([store])
    assert (await catalog.choose(None, CHAT)).name == "new:latest"
    await catalog.choose("old", CHAT)
    await catalog.choose("encoder", EMBED)
    assert (await catalog.choose(None, CHAT)).name == "old:latest"
    assert (await catalog.choose("", EMBED)).name == "encoder:latest"
    store.models.pop(1)
    assert (await catalog.choose(None, CHAT)).name == "new:latest", "the one used last is gone"


async def test_the_model_chosen_for_embeddings_stands_in_where_none_is_named() -> None:
    catalog = Catalog([Store(encoder("one", modified_at=9), encoder("two"))], embedding_model="two")
    assert (await catalog.choose(None, EMBED)).name == "two:latest"
    assert (await catalog.choose("one", EMBED)).name == "one:latest"
    assert (await catalog.choose(None, EMBED)).name == "two:latest"


async def test_a_named_model_that_cannot_is_refused_and_never_replaced() -> None:
    catalog = Catalog([Store(model(), encoder())])
    with pytest.raises(ModelIncapable) as caught:
        await catalog.choose("encoder", CHAT)
    assert caught.value.ability == "chat"


async def test_without_a_name_and_without_a_model_there_is_none() -> None:
    catalog = Catalog([Store(model())])
    with pytest.raises(NoModel) as caught:
        await catalog.choose(None, EMBED)
    assert caught.value.ability == "embedding"


async def test_a_card_comes_from_the_store_that_has_the_model() -> None:
    catalog = Catalog([Store(), Store(model())])
    assert (await catalog.card("chat", verbose=True)).info == {"verbose": True}
