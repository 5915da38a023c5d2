"""Modelfiles: what is written reads as it was, and what is none is refused with its line."""

import codecs
import re
import time
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diglot.core.modelfile import (
    KINDS,
    ROLES,
    Command,
    InvalidModelfile,
    decode_modelfile,
    parameters_of,
    read_modelfile,
    write_modelfile,
)

WHOLE: Final = '''# A comment
from \t./model.gguf

Parameter temperature 0.5
PARAMETER stop "<|end|>"
PARAMETER stop </s>
PARAMETER num_ctx 4096
PARAMETER use_mmap false
SYSTEM """You are brief.

# This is no comment.
"""
TEMPLATE "{{ .Prompt }}
"
MESSAGE User   hello
MESSAGE assistant "He said ""hi"" there"
ADAPTER ./lora.gguf
license """
MIT"""
'''


def test_every_command_reads_in_any_case_with_and_without_quotation_marks() -> None:
    commands = read_modelfile(WHOLE)
    assert [(command.kind, command.key, command.text) for command in commands] == [
        ("from", "", "./model.gguf"),
        ("parameter", "temperature", "0.5"),
        ("parameter", "stop", "<|end|>"),
        ("parameter", "stop", "</s>"),
        ("parameter", "num_ctx", "4096"),
        ("parameter", "use_mmap", "false"),
        ("system", "", "You are brief.\n\n# This is no comment.\n"),
        ("template", "", "{{ .Prompt }}\n"),
        ("message", "user", "hello"),
        ("message", "assistant", 'He said ""hi"" there'),
        ("adapter", "", "./lora.gguf"),
        ("license", "", "\nMIT"),
    ]
    assert [command.line for command in commands[-3:]] == [16, 17, 18]


def test_parameters_get_the_values_of_their_types() -> None:
    assert parameters_of(read_modelfile(WHOLE)) == {
        "temperature": 0.5,
        "stop": ["<|end|>", "</s>"],
        "num_ctx": 4096,
        "use_mmap": False,
    }


def test_parameters_that_mean_nothing_any_more_are_left_out() -> None:
    assert parameters_of(read_modelfile("FROM x\nPARAMETER mirostat 1\nPARAMETER seed 3")) == {"seed": 3}


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("", 1, "no FROM"),
        ("SYSTEM hello\n", 2, "no FROM"),
        ("FROM x\nFORM y", 2, "'FORM' is no command"),
        ("FROM", 1, "FROM names nothing"),
        ("FROM x\n\nPARAMETER", 3, "PARAMETER names nothing"),
        ("FROM x\nMESSAGE wizard hello", 2, "the role of a message is system, user, assistant"),
        ('FROM x\nSYSTEM """a\nb\n', 2, 'begins with """ here has no end'),
        ('FROM x\nSYSTEM "a\nb\n', 2, 'begins with " here has no end'),
    ],
)
def test_what_is_no_modelfile_is_refused_with_its_line(text: str, line: int, reason: str) -> None:
    with pytest.raises(InvalidModelfile, match=re.escape(reason)) as caught:
        read_modelfile(text)
    assert caught.value.line == line


@pytest.mark.parametrize(
    ("parameter", "reason"),
    [
        ("temperature warm", "temperature is a number, not 'warm'"),
        ("temperature nan", "temperature is a number"),
        ("num_ctx inf", "num_ctx is a number"),
        ("use_mmap maybe", "use_mmap is true or false"),
        ("temprature 1", "there is no parameter 'temprature'"),
    ],
)
def test_a_parameter_that_cannot_be_is_refused_with_its_line(parameter: str, reason: str) -> None:
    with pytest.raises(InvalidModelfile, match=re.escape(reason)) as caught:
        parameters_of(read_modelfile(f"FROM x\nPARAMETER {parameter}"))
    assert caught.value.line == 2


@pytest.mark.parametrize("bom", [codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, b""])
def test_files_are_read_in_the_encodings_that_editors_write(bom: bytes) -> None:
    coding = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}.get(bom, "utf-8")
    assert decode_modelfile(bom + "FROM ü".encode(coding)) == "FROM ü"


def test_a_file_that_is_no_text_is_refused_with_its_line() -> None:
    with pytest.raises(InvalidModelfile, match="line 2: it is no text in UTF-8"):
        decode_modelfile(b"FROM x\nSYSTEM \xff\xfe")


def test_a_text_of_many_lines_is_read_in_linear_time() -> None:
    begun = time.process_time()
    text = "a line of a licence\n" * 200_000
    assert read_modelfile(f'FROM x\nLICENSE """{text}"""')[1].text == text
    assert time.process_time() - begun < 5  # It is far below one second; with a square in it, it is minutes.


def expressible(text: str) -> bool:
    return re.search(r'"""\s*\n', text) is None


texts = st.one_of(
    st.text(st.sampled_from('ab"# \t\r\n'), max_size=12), st.text(st.characters(codec="utf-8"), max_size=20)
).filter(expressible)
commands = st.one_of(
    st.builds(
        Command, st.sampled_from([kind for kind in KINDS if kind not in ("from", "message", "parameter")]), texts
    ),
    st.builds(Command, st.just("message"), texts, st.sampled_from(ROLES)),
    st.builds(Command, st.just("parameter"), texts, st.sampled_from(["stop", "seed"])),
)


@given(st.lists(commands, max_size=5))
def test_what_is_written_reads_as_it_was(written: list[Command]) -> None:
    whole = [Command("from", "model"), *written]
    read = read_modelfile(write_modelfile(whole))
    assert [(each.kind, each.key, each.text) for each in read] == [(each.kind, each.key, each.text) for each in whole]


@given(st.text(st.sampled_from('a"\n '), max_size=12))
def test_a_text_without_a_form_is_still_whole_but_for_blanks(text: str) -> None:
    [_, read] = read_modelfile(write_modelfile([Command("from", "model"), Command("system", text)]))
    assert read.text.replace(" ", "") == text.replace(" ", "")


@given(st.text(st.sampled_from('FROMSYTE fromsyte"#\n\r\t0.é'), max_size=60))
def test_any_text_is_a_modelfile_or_refused_with_a_line_of_it(text: str) -> None:
    lines: list[int] = []
    try:
        parameters_of(read_modelfile(text))
    except InvalidModelfile as error:
        lines.append(error.line)
    assert all(1 <= line <= text.count("\n") + 1 for line in lines)
