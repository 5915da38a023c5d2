"""What a model can do, as a list and as a question."""

import msgspec

from diglot.core.model import Capabilities, Capability


def test_abilities_are_listed_in_one_order() -> None:
    able = Capabilities(thinking=True, vision=True, completion=True, template_tools=True)
    assert able.names == ("completion", "vision", "thinking")


def test_an_ability_can_be_asked_for() -> None:
    able = Capabilities(embedding=True)
    assert Capability.EMBEDDING in able
    assert Capability.COMPLETION not in able


def test_every_ability_has_its_field() -> None:
    assert {ability.value for ability in Capability} <= set(Capabilities.__struct_fields__)


def test_abilities_survive_being_written_down() -> None:
    able = Capabilities(embedding=True, template_thinks=True)
    assert msgspec.json.decode(msgspec.json.encode(able), type=Capabilities) == able
