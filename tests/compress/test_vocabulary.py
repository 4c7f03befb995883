from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tokenizers
from tokenizers import models, pre_tokenizers

from compress.vocabulary import prune_vocabulary
from encoder.checkpoint import load_classifier, save_classifier
from encoder.config import EncoderConfig
from encoder.errors import CompressionError
from encoder.model import Classifier
from encoder.model_folder import read_tokenizer
from encoder.prediction import predict_logits
from encoder.tokenizer import Tokenizer, load_tokenizer
from tests.encoder.tokenizer_folders import BERT_CONFIG, FOLDERS, save_json, wordpiece, write_folder

TEXTS = [
    "The quick brown fox, and the dog sleeps.",
    "encoders are pruned 12,345.67",
    "Ünïcödé naïve Straßen",
    "한국어 문장도",
    "we're sure \U0010fffd it's unknown",
    "",
]
PAIRS = ["it's 10 o'clock", "中文也有。", "a", "lazy", "", "dog"]
OTHER = ["Transformers quantized an été", "日本語もある。"]


def load(name: str, folder: Path) -> Tokenizer:
    path = FOLDERS[name](folder)
    pad = 1 if name.split()[0] in ("roberta", "xlm-roberta", "camembert") else 0
    return load_tokenizer(path, max_tokens=64, pad_token_id=pad)


def model_of(
    config_with: Callable[..., EncoderConfig],
    classifier: Callable[..., Classifier],
    tokenizer: Tokenizer,
    *,
    after_pad: bool = False,
) -> Classifier:
    pad = tokenizer.pad_token_id or 0
    config = config_with(
        vocab_size=tokenizer.vocab_size,
        max_position_embeddings=70,
        pad_token_id=pad,
        position_offset=pad + 1 if after_pad else 0,
    )
    return classifier(config)


@pytest.mark.parametrize("name", [name for name in FOLDERS if not name.startswith("minilm")])
def test_these_texts_keep_their_pieces_and_their_logits(
    name: str,
    config_with: Callable[..., EncoderConfig],
    classifier: Callable[..., Classifier],
    tmp_path: Path,
) -> None:
    tokenizer = load(name, tmp_path / "model")
    model = model_of(config_with, classifier, tokenizer, after_pad=tokenizer.pad_token_id == 1)
    small_model, small = prune_vocabulary(model, tokenizer, TEXTS, PAIRS)
    before, _ = tokenizer.encode(TEXTS, PAIRS)
    after, _ = small.encode(TEXTS, PAIRS)
    assert small.vocab_size == small_model.config.vocab_size < tokenizer.vocab_size
    assert np.array_equal(before.offsets, after.offsets)
    assert np.array_equal(before.token_type_ids, after.token_type_ids)
    assert np.array_equal(predict_logits(model, before), predict_logits(small_model, after))
    others, stats = small.encode(OTHER)
    assert stats.tokens_unknown <= tokenizer.encode(OTHER)[1].tokens_unknown
    assert predict_logits(small_model, others).shape == (2, 3)


def test_special_tokens_are_where_the_new_ids_say(
    config_with: Callable[..., EncoderConfig], classifier: Callable[..., Classifier], tmp_path: Path
) -> None:
    tokenizer = load("roberta", tmp_path / "model")
    model = model_of(config_with, classifier, tokenizer, after_pad=True)
    _, small = prune_vocabulary(model, tokenizer, ["The dog"])
    assert small.pad_token_id == 1  # positions are counted from it
    for token in ("cls_token", "sep_token", "mask_token", "unk_token"):
        assert small.token_id(token) is not None
    rows, _ = small.encode(["The dog"])
    assert (rows.input_ids[0], rows.input_ids[-1]) == (
        small.token_id("cls_token"),
        small.token_id("sep_token"),
    )


def test_a_smaller_vocabulary_survives_being_saved(
    config_with: Callable[..., EncoderConfig], classifier: Callable[..., Classifier], tmp_path: Path
) -> None:
    tokenizer = load("unigram, bert", tmp_path / "model")
    model, small = prune_vocabulary(model_of(config_with, classifier, tokenizer), tokenizer, TEXTS)
    save_classifier(model, small, tmp_path / "saved")
    loaded, read = load_classifier(tmp_path / "saved"), read_tokenizer(tmp_path / "saved")
    rows, _ = small.encode(TEXTS)
    again, _ = read.encode(TEXTS)
    assert np.array_equal(rows.input_ids, again.input_ids)
    assert np.array_equal(predict_logits(model, rows), predict_logits(loaded, again))


def test_a_word_that_was_unknown_stays_unknown(
    config_with: Callable[..., EncoderConfig], classifier: Callable[..., Classifier], tmp_path: Path
) -> None:
    # The longest piece first: "foxes" is fox + nothing; without "fox" it would be f + ##oxes.
    trained = wordpiece()
    definition = tokenizers.Tokenizer.from_str(trained.to_str())
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "f", "fox", "##oxes", "dog", "cat"]
    definition.model = models.WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]")
    folder = save_json(definition, write_folder(tmp_path / "model", "bert", BERT_CONFIG))
    tokenizer = load_tokenizer(folder, max_tokens=64, pad_token_id=0)
    texts = ["foxes dog"]
    assert tokenizer.encode(texts)[1].tokens_unknown == 1
    _, small = prune_vocabulary(model_of(config_with, classifier, tokenizer), tokenizer, texts)
    assert small.encode(texts)[1].tokens_unknown == 1
    assert small.vocab_size < tokenizer.vocab_size  # the cat is gone


def test_a_tokenizer_of_another_kind_is_refused_by_name(
    config_with: Callable[..., EncoderConfig], classifier: Callable[..., Classifier], tmp_path: Path
) -> None:
    words = tokenizers.Tokenizer(models.WordLevel({"[PAD]": 0, "[UNK]": 1, "dog": 2}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    config = BERT_CONFIG | {"tokenizer_class": "PreTrainedTokenizerFast"}
    folder = save_json(words, write_folder(tmp_path / "model", "bert", config))
    tokenizer = load_tokenizer(folder, max_tokens=64, pad_token_id=0)
    with pytest.raises(CompressionError, match="of the kind WordLevel cannot be cut down"):
        prune_vocabulary(model_of(config_with, classifier, tokenizer), tokenizer, ["dog"])
