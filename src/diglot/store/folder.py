"""A folder of GGUF files, as people and other programs keep them.

    folder/Qwen3-4B-Q4_K_M.gguf
    folder/owner/repository/model-Q8_0.gguf
    folder/owner/repository/mmproj-F16.gguf      for images, of the model beside it
    folder/big-Q8_0-00001-of-00002.gguf          with its other parts beside it

A model is called as its file, without the number of its part. A projector belongs to the models beside it where it is the only one there. Neighbour:
`found` reads what lies here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from diglot.core.model import InvalidName
from diglot.core.source import name_of_file
from diglot.store.found import Found
from diglot.store.split import splits_of

_DEEPEST: Final = 4
_ENDING: Final = ".gguf"
PROJECTOR: Final = "mmproj"


def files_in(folder: Path) -> Iterator[Found]:
    """Yield what lies in a folder and the folders inside it, down to the fourth, in the order of their names."""
    for name, inner, files in os.walk(folder):
        here = Path(name)
        inner[:] = sorted(each for each in inner if not each.startswith("."))
        if len(here.relative_to(folder).parts) >= _DEEPEST:
            inner.clear()
        found = [here / file for file in sorted(files) if file.lower().endswith(_ENDING) and not file.startswith(".")]
        projectors = [path for path in found if PROJECTOR in path.name.lower()]
        projector = projectors[0] if len(projectors) == 1 else None
        for split in splits_of(path for path in found if path not in projectors):
            try:
                ref = name_of_file(split.stem)
            except InvalidName:
                continue  # Nothing of its name is left that a name may have.
            yield Found(ref=ref, files=split.files, missing=split.missing, projector=projector)
