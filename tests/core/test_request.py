"""What a client chose goes before what a model's maker chose, and nothing means nothing."""

from typing import Any

import msgspec
import pytest

from diglot.core.request import LoadOptions, Sampling


def test_a_choice_goes_before_the_default_and_nothing_takes_it() -> None:
    chosen = Sampling(temperature=0.0, stop=(), seed=0)
    made = chosen.over(Sampling(temperature=0.8, top_k=40, stop=("x",), seed=7))
    assert made == Sampling(temperature=0.0, top_k=40, stop=(), seed=0)
    assert LoadOptions(use_mmap=False).over(LoadOptions(use_mmap=True, window=9)) == LoadOptions(
        use_mmap=False, window=9
    )


def test_each_field_can_be_chosen() -> None:
    for name in Sampling.__struct_fields__:
        chosen: dict[str, Any] = {name: "chosen"}
        default: dict[str, Any] = {name: "default"}
        assert getattr(Sampling(**chosen).over(Sampling(**default)), name) == "chosen"


@pytest.mark.parametrize("kind", [Sampling, LoadOptions])
def test_a_request_says_nothing_by_default(kind: type[Sampling | LoadOptions]) -> None:
    assert set(msgspec.structs.asdict(kind()).values()) == {None}
