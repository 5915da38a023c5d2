"""Computes the golden vectors: `python -m tests.store.reference.make_golden FOLDER_OF_MINILM`.

It needs what `tools/setup reference` installs. The reference is mlx-embeddings, an implementation that
shares no code with the engine; token numbers come from the tokenizers library. The vectors are not normalised.
"""

import sys
import tempfile
from pathlib import Path

import mlx.core as mx
import numpy as np
from mlx_embeddings.utils import load_model
from tokenizers import Tokenizer

from tests.store.encoders import BERT, GOLDEN, ROBERTA, lay_encoder, write_json

TEXTS = (
    "The cat sat on the mat.",
    "Hello",
    "",
    "Crème brûlée à l'été, naïve façade",
    "Příliš žluťoučký kůň",
    "机器学习 is 'fun'!!",
    "Сервер отвечает на вопросы",
    "unbelievable antidisestablishmentarianism 12345",
    "  two  spaces\nand a newline\t tab ",
    "\uff21 \ufb01ne \u00bd e\u0301cole",
    "an emoji \U0001f600 that no vocabulary knows",
    "don't stop-believing @user #tag http://example.org/a?b=1",
)
LONGEST = 512


def filling(tokenizer: Tokenizer, longest: int) -> str:
    """Return a text of exactly `longest` tokens."""
    words = " ".join(TEXTS[0].split() * longest).split()
    count = next(n for n in range(len(words), 0, -1) if len(tokenizer.encode(" ".join(words[:n])).ids) <= longest)
    while len(tokenizer.encode(" ".join(words[:count])).ids) < longest:
        words[count - 1 : count] = [words[count - 1], "a"]
        count += 1
    text = " ".join(words[:count])
    if len(tokenizer.encode(text).ids) != longest:
        raise ValueError(f"no text of {longest} tokens was found")
    return text


def golden(folder: Path, longest: int, poolings: tuple[str, ...] = ("mean", "cls")) -> list[dict[str, object]]:
    """Return each text with its token numbers and its vectors by pooling."""
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    model = load_model(folder)
    cases: list[dict[str, object]] = []
    for text in (*TEXTS, filling(tokenizer, longest)):
        ids = tokenizer.encode(text).ids
        output = model(mx.array([ids]), attention_mask=mx.ones((1, len(ids)), dtype=mx.int32))
        hidden = np.array(output.last_hidden_state[0], dtype=np.float64)
        vectors = {"mean": hidden.mean(0), "cls": hidden[0]}
        rounded = {
            name: [round(float(number), 6) for number in vector] for name, vector in vectors.items() if name in poolings
        }
        cases.append({"text": text, "ids": ids, **rounded})
    return cases


def main(minilm: str) -> None:
    """Write the golden files."""
    write_json(GOLDEN / "minilm.golden.json", golden(Path(minilm), LONGEST, ("mean",)))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_json(
            GOLDEN / "roberta.golden.json",
            golden(lay_encoder(folder / "r", ROBERTA, tokenizer=GOLDEN / "unigram.json"), LONGEST),
        )
        for case in ("cased", "uncased"):
            laid = lay_encoder(folder / case, BERT, tokenizer=GOLDEN / f"{case}.json")
            write_json(GOLDEN / f"{case}.golden.json", golden(laid, BERT["max_position_embeddings"]))


if __name__ == "__main__":
    main(sys.argv[1])
