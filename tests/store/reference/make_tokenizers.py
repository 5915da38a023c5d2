"""Makes the small tokenizers of the golden files: `python -m tests.store.reference.make_tokenizers`.

It needs what `tools/setup reference` installs (sentencepiece, tokenizers). The Unigram one is built as the
one of XLM-RoBERTa is: a sentencepiece model with rules of its own for replacing letters, whose pieces are
moved behind the four tokens that fairseq put first. The WordPiece ones come with and without case.
"""

import io
from collections import Counter
from pathlib import Path

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers, processors

from tests.store.encoders import GOLDEN

CORPUS = (Path(__file__).parent / "corpus.txt").read_text(encoding="utf-8").splitlines()

RULES = {
    "\ufb01": "fi",
    "\u00bd": "1/2",
    "\uff21": "A",
    "\uff41": "a",
    "E\u0301": "\u00c9",
    "e\u0301": "\u00e9",
    "\t": " ",
    "\n": " ",
    "\u3000": " ",
}
"""What a letter is replaced with; the real table of XLM-RoBERTa has thousands of such rules."""


def unigram() -> Tokenizer:
    """Train the Unigram tokenizer."""
    rules = Path(__file__).parent / "rules.tsv"
    points = [
        (" ".join(f"{ord(c):x}" for c in old), " ".join(f"{ord(c):x}" for c in new)) for old, new in RULES.items()
    ]
    rules.write_text("".join(f"{old}\t{new}\n" for old, new in points), encoding="ascii")
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(CORPUS),
            model_writer=model,
            model_type="unigram",
            vocab_size=420,
            character_coverage=1.0,
            normalization_rule_tsv=str(rules),
            num_threads=1,
        )
    finally:
        rules.unlink()
    proto = sentencepiece_model_pb2.ModelProto.FromString(model.getvalue())
    pieces = [(piece.piece, piece.score) for piece in proto.pieces][3:]
    vocabulary = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), *pieces]
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=3))
    special = [AddedToken(text, special=True, normalized=False) for text in ("<s>", "<pad>", "</s>", "<unk>")]
    tokenizer.add_special_tokens([*special, AddedToken("<mask>", lstrip=True, special=True, normalized=False)])
    tokenizer.normalizer = normalizers.Precompiled(proto.normalizer_spec.precompiled_charsmap)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always")]
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return tokenizer


def word_piece(*, lowercase: bool) -> Tokenizer:
    """Build a WordPiece tokenizer of all letters, the words that come twice, and the ends that come often."""
    normalizer, splitter = normalizers.BertNormalizer(lowercase=lowercase), pre_tokenizers.BertPreTokenizer()
    words = Counter(word for line in CORPUS for word, _ in splitter.pre_tokenize_str(normalizer.normalize_str(line)))
    ends = Counter(word[-length:] for word in words for length in range(2, 5) if len(word) > length)
    letters = sorted(set("".join(words)))
    tokens = [
        *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
        *letters,
        *(f"##{letter}" for letter in letters),
        *sorted(word for word, count in words.items() if count > 1 and len(word) > 1),
        *sorted(f"##{end}" for end, count in ends.items() if count > 3),
    ]
    tokenizer = Tokenizer(models.WordPiece({text: number for number, text in enumerate(tokens)}, unk_token="[UNK]"))
    tokenizer.add_special_tokens(tokens[:5])
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, splitter
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return tokenizer


def main() -> None:
    """Write the golden tokenizers."""
    unigram().save(str(GOLDEN / "unigram.json"), pretty=False)
    word_piece(lowercase=True).save(str(GOLDEN / "uncased.json"), pretty=False)
    word_piece(lowercase=False).save(str(GOLDEN / "cased.json"), pretty=False)


if __name__ == "__main__":
    main()
