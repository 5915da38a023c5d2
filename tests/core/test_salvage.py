"""Calls that a model wrote as text are found in every form, and nothing else is taken for one."""

import time
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from diglot.core.candidates import LONGEST
from diglot.core.salvage import CallSalvage, Piece
from diglot.core.tools import WrittenCall

DECLARED = frozenset({"f", "read_file"})
CALL = '{"name": "f", "arguments": {"a": 1}}'
F = WrittenCall("f", '{"a":1}')


def salvage(*pieces: str) -> list[Piece]:
    """Return what comes out, neighbouring texts joined."""
    reader = CallSalvage(DECLARED)
    out: list[Piece] = []
    for given_out in (*map(reader.feed, pieces), reader.close()):
        for piece in given_out:
            if isinstance(piece, str) and out and isinstance(out[-1], str):
                out[-1] += piece
            else:
                out.append(piece)
    return out


@pytest.mark.parametrize(
    "written",
    [
        f"<tool_call>{CALL}</tool_call>",
        f"<tool_call>\n{CALL}\n</tool_call>",
        f"<tool_call>{CALL}",
        "<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>",
        "<function=f><parameter=a>1</parameter></function>",
        '<function=f>{"a": 1}</function>',
        f"[TOOL_CALLS][{CALL}]",
        f"[TOOL_CALLS] {CALL}",
        f"  [TOOL_CALLS][{CALL}]".strip(),
        '<|python_tag|>{"name": "f", "parameters": {"a": 1}}',
        f"```json\n{CALL}\n```",
        f"```\n{CALL}```",
        f"```tool_call\n[{CALL}]\n```\n",
        CALL,
        f"[{CALL}]",
        '{"type": "function", "function": {"name": "f", "arguments": {"a": 1}}}',
        '{"type": "function", "function": "f", "parameters": {"a": 1}}',
        '{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{\\"a\\": 1}"}}',
        '{"tool": "f", "arguments": {"a": 1}}',
        '{\n  "name": "f",\n  "arguments": {\n    "a": 1\n  }\n}\n',
        '{"arguments": {"a": 1}, "name": "f"}',
    ],
)
def test_each_form_of_a_call_is_read(written: str) -> None:
    assert salvage(written) == [F]
    assert salvage(*written) == [F]


@pytest.mark.parametrize(
    "text",
    [
        "Just text.",
        '{"answer": 42}',
        '[1, 2, {"name": "f"}]',
        '{"name": "Ada", "age": 36}',
        '{"name": "rm", "arguments": {}}',
        '<tool_call>{"name": "rm", "arguments": {}}</tool_call>',
        "<function=rm><parameter=a>1</parameter></function>",
        f'[{CALL}, {{"name": "rm", "arguments": {{}}}}]',
        '{"name": "f", "arguments": {"a": 1,}}',
        f"[\n{CALL},\n]",
        '<tool_call>{"name": "f", "arguments": {"a": 1}',
        "<function=f><parameter=a>1",
        "<function=f><parameter=a>1</parameter>",
        "<function=f>",
        "<function=f> is how it begins",
        "<function=f g></function>",
        "<tool_call>f(1)</tool_call>",
        '{"name": "f", "arguments": {"a": NaN}}',
        '{"name": "f", "arguments": [1]}',
        '{"name": "f", "arguments": "[1]"}',
        f"I would write {CALL} here",
        "```python\nprint([1, 2])\n```\n",
        "```\n{}\n```",
        "````\n```\ntext\n```\n````",
        "<",
        "a < b and [TOOL",
        "``",
        "`f`",
        '{"name": "f',
        "[" * 5000,
        '{"name": ' + "[" * 5000,
        '{"name": "f", "arguments": {"a": ' + "[" * 200 + "]" * 200 + "}}",
        '{"name": "' + "x" * (LONGEST + 10) + '", "arguments": {}}',
        "\n" * 2000 + "{" + "\n" * 2000,
        '{"name": "a\nb"}',
    ],
)
def test_everything_else_stays_text(text: str) -> None:
    assert salvage(text) == [text]
    if len(text) < 10_000:
        assert salvage(*text) == [text]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        (f"Let me see.\n{CALL}\nDone.", ["Let me see.\n", F, "Done."]),
        (f"I call <tool_call>{CALL}</tool_call> and <tool_call>{CALL}</tool_call>!", ["I call ", F, "and ", F, "!"]),
        (f"<tool_call>{CALL}\n<tool_call>{CALL}</tool_call>", [F, F]),
        (f"{CALL}\n{CALL}", [F, F]),
        (f"```json\n{CALL}\n```\n\n```json\n{CALL}\n```", [F, F]),
        (f"```\nplain\n```\n{CALL}", ["```\nplain\n```\n", F]),
        (f'{{"name": oops\n<tool_call>{CALL}</tool_call>', ['{"name": oops\n', F]),
        (f'{{"answer": 1}}\n{CALL}', ['{"answer": 1}\n', F]),
        (f"<tool_call>{CALL}</tool_call></tool_call>", [F, "</tool_call>"]),
        (f"[{CALL}, {CALL}]", [F, F]),
        (f"  {CALL}", ["  ", F]),
        (f"<tool_<tool_call>{CALL}", ["<tool_", F]),
        (f"[[TOOL_CALLS][{CALL}]", ["[", F]),
    ],
)
def test_text_and_calls_come_in_their_order(text: str, pieces: list[Piece]) -> None:
    assert salvage(text) == pieces
    assert salvage(*text) == pieces


@pytest.mark.parametrize(
    ("written", "arguments"),
    [
        ('{"name": "f", "arguments": {"a": "</tool_call> ``` }]"}}', '{"a":"</tool_call> ``` }]"}'),
        ('{"name": "f", "arguments": {"a": "\\"\\\\"}}', '{"a":"\\"\\\\"}'),
        ('{"name": "f", "arguments": {"a": "\\u00fc \\ud83d\\ude00 語"}}', '{"a":"ü 😀 語"}'),
        ('{"name": "f", "arguments": {"a": "\\ud83d"}}', '{"a":"?"}'),
        ('{"name": "f", "arguments": {}}', "{}"),
    ],
)
def test_arguments_come_through_whole(written: str, arguments: str) -> None:
    assert salvage(*f"<tool_call>{written}</tool_call>") == [WrittenCall("f", arguments)]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", "1"),
        ("true", "true"),
        ("null", "null"),
        ('{"b": [2]}', '{"b":[2]}'),
        ("plain words", '"plain words"'),
        ('"quoted"', '"\\"quoted\\""'),
        ("\n\ntwo lines\nhere\n", '"\\ntwo lines\\nhere"'),
        ("NaN", '"NaN"'),
        ("007", '"007"'),
        ("a < b", '"a < b"'),
    ],
)
def test_a_tagged_parameter_is_json_where_it_is_json_of_no_string(text: str, value: str) -> None:
    written = f"<function=f><parameter=a>{text}</parameter></function>"
    assert salvage(*written) == [WrittenCall("f", f'{{"a":{value}}}')]


def test_a_call_is_given_as_soon_as_it_is_whole() -> None:
    reader = CallSalvage(DECLARED)
    assert reader.feed(f"<tool_call>{CALL}") == [F]


def test_text_that_cannot_become_a_call_goes_on_at_once() -> None:
    reader = CallSalvage(DECLARED)
    assert reader.feed("Hello ") == ["Hello "]
    assert reader.feed("<b>") == ["<b>"]
    assert reader.feed("\n") == ["\n"]
    assert reader.feed('{"answer"') == ['{"answer"']
    assert reader.feed("\n```py") == ["\n"]
    assert reader.feed("\nx") == ["```py\nx"]


FRAGMENTS = [
    *(
        CALL,
        "<tool_call>",
        "</tool_call>",
        "<function=f>",
        "</function>",
        "<parameter=a>",
        "</parameter>",
        "[TOOL_CALLS]",
    ),
    *(
        "<|python_tag|>",
        "```",
        "```json\n",
        "{",
        "}",
        "[",
        "]",
        '"name"',
        '"f"',
        "arguments",
        ":",
        ",",
        "\n",
        " ",
        "x",
        "\\",
        '"',
    ),
    *("1", "語", "😀", "<", "</", "`", '{"answer": 1}'),
]
texts = st.lists(st.sampled_from(FRAGMENTS), max_size=14).map("".join)


@given(texts, st.data())
@example("[TOOL_CALLS]", None)
def test_any_cutting_gives_the_same_pieces(text: str, data: Any) -> None:
    whole = salvage(text)
    assert salvage(*text) == whole
    if data is not None:
        cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=4)))
        assert salvage(*(text[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True))) == whole


@given(texts)
def test_no_letter_of_the_text_is_lost(text: str) -> None:
    rest = text
    for piece in salvage(text):
        if isinstance(piece, str):
            assert piece in rest
            rest = rest[rest.index(piece) + len(piece) :]
    if not any(isinstance(piece, WrittenCall) for piece in salvage(text)):
        assert "".join(map(str, salvage(text))) == text


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>" + '{"name": "f", "arguments": {"a": [' + '{"b": "c"}, ' * 16_000 + "1]}}",
        "{\n" * 100_000,
        '{"name": ' * 22_000,
        "[TOOL_CALLS]" * 17_000,
        "```\n" * 50_000,
        "<function=f><parameter=a>" + "<parameter=b>" * 15_000,
        "`" * 200_000,
        " " * 200_000,
        "[" * 200_000,
        "a\n" * 100_000,
        f"{CALL}\n" * 5000,
    ],
    ids=range(11),
)
def test_the_work_is_linear(text: str) -> None:
    begun = time.process_time()
    salvage(*(text[at : at + 4] for at in range(0, len(text), 4)))
    salvage(text)
    assert time.process_time() - begun < 10  # It is about one second; with a square in it, it is minutes.
