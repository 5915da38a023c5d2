"""The name grammar: every spelling of a name is one name, and none of them is a path."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diglot.core.model import InvalidName, ModelRef

MODEL = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}", fullmatch=True).filter(lambda part: part.lower() != "local")
NAMESPACE = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,79}", fullmatch=True)
HOST = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,60}(:[0-9]{1,5})?", fullmatch=True)
REFS = st.builds(
    ModelRef,
    model=MODEL,
    tag=MODEL | st.just("latest"),
    namespace=NAMESPACE | st.just("library"),
    host=HOST | st.just("registry.ollama.ai"),
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("llama3", "llama3:latest"),
        ("llama3:latest", "llama3:latest"),
        ("Mixed.Case-1:Q4_K_M", "Mixed.Case-1:Q4_K_M"),
        ("library/llama3", "llama3:latest"),
        ("LIBRARY/llama3", "llama3:latest"),
        ("registry.ollama.ai/library/llama3:8b", "llama3:8b"),
        ("https://registry.ollama.ai/library/llama3", "llama3:latest"),
        ("me/mine", "me/mine:latest"),
        ("hf.co/u/m:Q4", "hf.co/u/m:Q4"),
        ("hf.co/bartowski/Some-Model_v1.5-GGUF", "hf.co/bartowski/Some-Model_v1.5-GGUF:latest"),
        ("localhost:5000/a/b", "localhost:5000/a/b:latest"),
        ("http://localhost:5000/a/b:t", "localhost:5000/a/b:t"),
        ("hf.co/library/m:t", "hf.co/library/m:t"),
        ("llama3:local", "llama3:latest"),
        ("llama3:8b:LOCAL", "llama3:8b"),
        ("localhost:5000/a/b:local", "localhost:5000/a/b:latest"),
        ("me/local", "me/local:latest"),
        ("gpt-oss:cloud", "gpt-oss:cloud"),
        ("gpt-oss:120b-cloud", "gpt-oss:120b-cloud"),
        ("gpt-oss:120b:cloud", "gpt-oss:120b-cloud"),
        ("localhost:5000/a/b:cloud", "localhost:5000/a/b:cloud"),
    ],
)
def test_a_name_is_shown_in_its_shortest_form_with_its_tag(text: str, shown: str) -> None:
    assert str(ModelRef.parse(text)) == shown


@given(REFS)
def test_what_is_shown_of_a_name_is_read_as_that_name(ref: ModelRef) -> None:
    again = ModelRef.parse(str(ref))
    assert again == ref
    assert (again.model, again.tag) == (ref.model, ref.tag)


@given(REFS)
def test_the_case_of_letters_is_kept_and_does_not_matter(ref: ModelRef) -> None:
    other = ModelRef.parse(str(ref).swapcase())
    assert other == ref
    assert hash(other) == hash(ref)
    assert other.model == ref.model.swapcase()


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":",
        ":tag",
        "model:",
        "/",
        "/model",
        "ns//model",
        "a/b/c/d",
        ".hidden",
        "..",
        "../x",
        "a/../b",
        "../../etc/passwd",
        "-flag",
        "a b",
        "a\n",
        "a\0",
        "a\\b",
        "m:t:u",
        "dotted.ns/m",
        "é",
        "m:" + "t" * 81,
        "m" * 81,
        "n" * 81 + "/m",
        "h" * 351 + "/n/m",
        "https://",
        ":local",
        ":cloud",
        "m:local:local",
    ],
)
def test_what_is_no_name_is_refused_with_a_reason(text: str) -> None:
    with pytest.raises(InvalidName) as caught:
        ModelRef.parse(text)
    assert caught.value.text == text
    assert caught.value.reason


@pytest.mark.parametrize("text", ["m:local:cloud", "m:cloud:local", "m:7b-cloud:local", "h:1/n/m:Local:Cloud"])
def test_a_name_cannot_be_here_and_in_a_cloud(text: str) -> None:
    with pytest.raises(InvalidName, match="use either :local or :cloud, not both"):
        ModelRef.parse(text)


@given(st.text(alphabet=st.sampled_from("aZ0_./:-~% \0\n\\é@"), max_size=40))
def test_no_part_of_any_name_climbs_out_of_a_folder(text: str) -> None:
    try:
        ref = ModelRef.parse(text)
    except InvalidName:
        return
    for part in (ref.host, ref.namespace, ref.model, ref.tag):
        assert part[0].isascii()
        assert part[0].isalnum() or part[0] == "_"
        assert not set(part) & set("/\\\0")


def test_a_part_outside_the_grammar_cannot_be_made_by_hand_either() -> None:
    with pytest.raises(InvalidName):
        ModelRef(model="..", tag="x")


def test_names_that_are_equal_are_not_unequal() -> None:
    assert not ModelRef("a") != ModelRef("A")  # noqa: SIM202  the other operator is what is shown
    assert ModelRef("a") != ModelRef("b")
    assert ModelRef("a") != "a"
