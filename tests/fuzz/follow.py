"""One reader under a fuzzer that follows coverage: `python -m tests.fuzz.follow READER CORPUS [options of libFuzzer]`.

A program of its own, because the fuzzer ends the process that it runs in, and because the readers must be imported
under its eyes. The seeds are written into the folder CORPUS, where it leaves what it finds worth going on from.
Neighbours: `readers` has the laws; `test_readers` runs it for some seconds, `tools/fuzz` for as long as one likes.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["diglot"]):
    from tests.fuzz.readers import READERS


def main(name: str, corpus: str, *options: str) -> None:
    """Fuzz until the options say that it is enough; a law that does not hold ends it with its bytes and a traceback."""
    (reader,) = (each for each in READERS if each.name == name)
    folder = Path(corpus)
    folder.mkdir(parents=True, exist_ok=True)
    for seed in reader.seeds:
        (folder / hashlib.sha1(seed, usedforsecurity=False).hexdigest()).write_bytes(seed)
    words = folder.with_suffix(".words")
    words.write_text("".join(map(_entry, reader.words)))
    atheris.Setup([sys.argv[0], corpus, f"-dict={words}", "-max_len=4096", *options], reader.law)
    atheris.Fuzz()


def _entry(word: bytes) -> str:
    """Return a line of a dictionary of libFuzzer."""
    return '"' + "".join(f"\\x{byte:02x}" for byte in word) + '"\n'


if __name__ == "__main__":
    main(*sys.argv[1:])
