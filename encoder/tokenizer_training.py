"""A tokenizer made for a corpus: WordPiece or Unigram, by the tokenizers library."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

from encoder.errors import DataError
from encoder.files import write_atomic, write_json
from encoder.tokenizer import Tokenizer, load_tokenizer
from encoder.tokenizer_files import BERT_TOKENS, CONFIG_FILE, TOKENIZER_FILE

TokenizerKind = Literal["wordpiece", "unigram"]
# By their ids, so that padding is 0.
SPECIAL_TOKENS = tuple(
    BERT_TOKENS[name] for name in ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
)
PAD_TOKEN_ID = 0
# What WordPiece writes before a piece that does not begin a word.
WITHIN_WORD = "##"
# Of the logarithm of a piece's probability.
SCORE_DIGITS = 6
# What the library adds from letter to letter.
ADDED_APART = 1e-4
# Without a letter of its own a text would be unknown, so so many of the most frequent ones are kept.
MOST_LETTERS = 1000


def train_tokenizer_(
    folder: Path,
    pieces: Callable[[], Iterator[Sequence[str]]],
    *,
    kind: TokenizerKind,
    vocab_size: int,
    lowercase: bool,
    max_tokens: int,
) -> Tokenizer:
    """Make a tokenizer of at most ``vocab_size`` tokens from texts, and leave its files in ``folder``.

    WordPiece (Schuster and Nakajima 2012) splits words as BERT does, from the left into the longest pieces;
    Unigram (Kudo 2018) chooses the likeliest split of all, and needs no words to begin with. ``lowercase``
    takes accents off too, as BERT's uncased models do. Rows are framed as ``[CLS] A [SEP] B [SEP]``.

    The same texts make the same tokenizer; of Unigram's pieces the last ones may differ where many come out
    equally likely. Errors: DataError where no tokenizer can be made of the texts.
    """
    make = _make_wordpiece if kind == "wordpiece" else _make_unigram
    try:
        backend = make(pieces, vocab_size, lowercase)
    except Exception as error:  # the library raises bare Exception
        raise DataError(f"no tokenizer can be made of these texts: {error}") from error
    backend.add_special_tokens([tokenizers.AddedToken(token, special=True) for token in SPECIAL_TOKENS])
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[(token, SPECIAL_TOKENS.index(token)) for token in ("[CLS]", "[SEP]")],
    )
    settings = {
        **BERT_TOKENS,
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_input_names": ["input_ids", "token_type_ids", "attention_mask"],
        "model_max_length": max_tokens,
    }
    write_json(folder / CONFIG_FILE, settings)
    write_atomic(folder / TOKENIZER_FILE, backend.to_str(pretty=True))
    return load_tokenizer(folder, max_tokens=max_tokens, pad_token_id=PAD_TOKEN_ID)


def _make_wordpiece(
    pieces: Callable[[], Iterator[Sequence[str]]], vocab_size: int, lowercase: bool
) -> tokenizers.Tokenizer:
    """The library numbers letters in the order of a hash table, which decides between equally frequent
    pieces: another tokenizer in every process. So it is given all letters beforehand, those within a word as
    if they were special, in an order of ours."""
    backend = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    letters = _frequent_letters(pieces(), backend.normalizer)
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocab_size,
        special_tokens=[*SPECIAL_TOKENS, *(WITHIN_WORD + letter for letter in letters)],
        initial_alphabet=letters,
        limit_alphabet=len(letters),
        min_frequency=2,
        show_progress=False,
    )
    backend.train_from_iterator(pieces(), trainer)
    trained = tokenizers.Tokenizer(models.WordPiece(backend.get_vocab(), unk_token="[UNK]"))
    trained.normalizer, trained.pre_tokenizer = backend.normalizer, backend.pre_tokenizer
    trained.decoder = decoders.WordPiece(prefix=WITHIN_WORD)
    return trained


def _frequent_letters(pieces: Iterator[Sequence[str]], normalizer: normalizers.Normalizer) -> list[str]:
    counts: Counter[str] = Counter()
    for piece in pieces:
        counts.update(normalizer.normalize_str("\n".join(piece)))
    found = sorted((letter for letter in counts if not letter.isspace()), key=lambda one: (-counts[one], one))
    return sorted(found[:MOST_LETTERS])


def _make_unigram(
    pieces: Callable[[], Iterator[Sequence[str]]], vocab_size: int, lowercase: bool
) -> tokenizers.Tokenizer:
    """As above, an order of ours: likelihoods lose the digits that depend on the library's, and letters that
    it adds at the end, each a little above the last, come all to stand where the first of them does."""
    backend = tokenizers.Tokenizer(models.Unigram())
    one_blank = normalizers.Replace(tokenizers.Regex(r"\s+"), " ")
    steps: list[normalizers.Normalizer] = [normalizers.NFKC(), one_blank]
    if lowercase:
        bare = (normalizers.NFD(), normalizers.StripAccents(), normalizers.NFC())
        steps[1:1] = [normalizers.Lowercase(), *bare]
    backend.normalizer = normalizers.Sequence(steps)
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=vocab_size, special_tokens=list(SPECIAL_TOKENS), unk_token="[UNK]", show_progress=False
    )
    backend.train_from_iterator(pieces(), trainer)
    found = json.loads(backend.to_str())["model"]["vocab"]
    scores = {piece: round(score, SCORE_DIGITS) for piece, score in found if piece not in SPECIAL_TOKENS}
    lowest, letters = min(scores.values()), [piece for piece in scores if len(piece) == 1]
    added = lowest + ADDED_APART * (len(letters) + 1)
    scores |= {letter: lowest for letter in letters if scores[letter] < added}
    ordered = sorted(scores.items(), key=lambda one: (-one[1], one[0]))
    vocabulary = [*((token, 0.0) for token in SPECIAL_TOKENS), *ordered]
    trained = tokenizers.Tokenizer(models.Unigram(vocabulary, unk_id=SPECIAL_TOKENS.index("[UNK]")))
    trained.normalizer, trained.pre_tokenizer = backend.normalizer, backend.pre_tokenizer
    trained.decoder = decoders.Metaspace()
    return trained
