"""The laws of the readers hold for any bytes: such as hypothesis makes, and such as coverage leads to."""

import importlib.util
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.readers import READERS, Reader
from tests.serving import ROOT

RUNS = 8_000
"""Inputs for each reader here; `make fuzz` goes on from where its last run ended."""

by_name = pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)


@st.composite
def changed(draw: st.DrawFn, reader: Reader) -> bytes:
    """Draw a sound file with some bytes overwritten, some put in and some left out."""
    data = bytearray(draw(st.sampled_from(reader.seeds)))
    for _ in range(draw(st.integers(0, 4))):
        begin = draw(st.integers(0, len(data)))
        end = draw(st.integers(begin, min(len(data), begin + 9)))
        data[begin:end] = draw(st.binary(max_size=9) | st.sampled_from((b"", *reader.words)))
    return bytes(data)


@by_name
@given(data=st.data())
def test_the_law_holds_for_any_bytes_near_and_far_from_sound_ones(reader: Reader, data: st.DataObject) -> None:
    reader.law(data.draw(st.binary(max_size=200) | changed(reader)))


@by_name
def test_the_law_holds_for_the_seeds_and_every_beginning_of_them(reader: Reader) -> None:
    for seed in reader.seeds:
        for end in range(0, len(seed) + 1, max(1, len(seed) // 500)):
            reader.law(seed[:end])


@pytest.mark.skipif(not importlib.util.find_spec("atheris"), reason="atheris has no wheel for this Python or machine")
@pytest.mark.timeout(240)
@by_name
def test_the_law_holds_wherever_coverage_leads(
    reader: Reader, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    options = [f"-runs={RUNS}", "-seed=1", "-rss_limit_mb=1024", f"-artifact_prefix={tmp_path}/"]
    command = [sys.executable, "-m", "tests.fuzz.follow", reader.name, str(tmp_path / reader.name), *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    tried = re.search(r"Done (\d+) runs", done.stderr)
    assert tried is not None
    record_property("inputs", int(tried[1]))
    assert int(tried[1]) >= RUNS
