"""The text of numbers: any label and any number comes back from Prometheus's own parsers as it was."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import parser
from prometheus_client.openmetrics import parser as openmetrics

from diglot.obs.exposition import counter, exposition, gauge, histogram

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NUMBER = st.floats(min_value=0, allow_infinity=False, allow_nan=False)


@pytest.mark.parametrize("strict", [False, True])
@given(values=st.dictionaries(TEXT, NUMBER, max_size=4))
def test_labels_and_numbers_come_back_as_they_were(strict: bool, values: dict[str, float]) -> None:  # noqa: FBT001
    labelled = [((("model", model),), value) for model, value in values.items()]
    page = exposition([counter("a", "Told.", labelled), gauge("b", "Told.", labelled)], openmetrics=strict).decode()
    read = openmetrics if strict else parser
    families = list(read.text_string_to_metric_families(page))
    assert [family.type for family in families] == (["counter", "gauge"] if values else [])
    for family in families:
        assert {sample.labels["model"]: sample.value for sample in family.samples} == values


@given(counts=st.lists(st.integers(0, 1000), min_size=4, max_size=4), total=NUMBER)
def test_the_buckets_of_a_histogram_add_up(counts: list[int], total: float) -> None:
    page = exposition([histogram("h", "Told.", [((), counts, total)], bounds=(0.1, 1.0, 10.0))], openmetrics=True)
    (family,) = openmetrics.text_string_to_metric_families(page.decode())  # type: ignore[no-untyped-call]
    buckets = [sample.value for sample in family.samples if sample.name == "h_bucket"]
    assert buckets == [sum(counts[: place + 1]) for place in range(4)]
    assert [float(each.labels["le"]) for each in family.samples if each.name == "h_bucket"] == [0.1, 1, 10, math.inf]
    assert {each.name: each.value for each in family.samples if each.name != "h_bucket"} == {
        "h_count": sum(counts),
        "h_sum": total,
    }


def test_a_page_without_numbers_is_a_page() -> None:
    assert exposition([counter("a", "Told.", [])]) == b""
    assert exposition([], openmetrics=True) == b"# EOF\n"
