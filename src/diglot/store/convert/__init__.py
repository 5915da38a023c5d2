"""Conversion of encoders: BERT and XLM-RoBERTa, from safetensors to GGUF, by a writer of our own.

`convert_apart` runs the work in a process of its own, because it needs numpy and much memory for a
moment, which the server must not keep. Generative models are deliberately not converted here. Neighbours:
`encoder` (settings and names of tensors), `vocabulary` (tokenizers), `writer` (the only one that needs numpy).

Invariant: a model that would answer differently than in its own framework is refused, not approximated.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final, Literal

Element = Literal["f32", "f16", "q8_0"]

REFUSED: Final = 3
"""Exit status of the process for a model that cannot be converted; the reason is on its standard error."""


class CannotConvert(Exception):
    """The folder holds no model that can be converted; the text says why."""


def convert_apart(source: Path, target: Path, *, element: Element = "f16") -> None:
    """Convert the model in the folder `source` to the file `target`, in another process.

    Matrices are stored as `element`, everything else as 32-bit floats. Raises CannotConvert.
    """
    command = [sys.executable, "-P", "-m", __name__, str(source), str(target), element]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)  # noqa: S603 (our own module)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no reason was given"]
        raise CannotConvert(lines[-1] if done.returncode == REFUSED else f"the conversion failed: {lines[-1]}")
