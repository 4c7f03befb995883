"""Claims about tokenizers that are made of a corpus."""

import random

import pytest

from encoder.errors import DataError
from encoder.tokenizer_training import SPECIAL_TOKENS, train_tokenizer_

WORDS = ("reading", "reader", "readers", "writing", "writer", "writers", "Paper", "papers", "été", "slowly")


def texts(count=400):
    draw = random.Random(0)
    return [[" ".join(draw.choices(WORDS, k=8)) + "." for _ in range(count // 4)] for _ in range(4)]


def train(folder, kind="wordpiece", vocab_size=60, lowercase=True):
    return train_tokenizer_(
        folder, lambda: iter(texts()), kind=kind, vocab_size=vocab_size, lowercase=lowercase, max_tokens=40
    )


@pytest.mark.parametrize("kind", ["wordpiece", "unigram"])
def test_special_tokens_come_first_and_frame_a_row(tmp_path, kind):
    tokenizer = train(tmp_path, kind)
    assert tokenizer.special_ids == tuple(range(len(SPECIAL_TOKENS)))
    assert (tokenizer.pad_token_id, tokenizer.unk_token_id, tokenizer.token_id("mask_token")) == (0, 1, 4)
    rows, _ = tokenizer.encode(["Reading papers."], ["été"])
    assert [piece.text for piece in tokenizer.spell("x")][::2] == ["[CLS]", "[SEP]"] or kind == "unigram"
    assert rows.input_ids[0] == 2 and rows.input_ids[-1] == 3
    assert set(rows.token_type_ids) == {0, 1}
    assert tokenizer.vocab_size <= 60


@pytest.mark.parametrize("kind", ["wordpiece", "unigram"])
@pytest.mark.parametrize("lowercase", [True, False])
def test_lower_case_is_what_was_asked_for(tmp_path, kind, lowercase):
    tokenizer = train(tmp_path, kind, lowercase=lowercase)
    plain, other = (tokenizer.encode_text([text])[0].tolist() for text in ("ete paper", "Été Paper"))
    assert (plain == other) == lowercase


@pytest.mark.parametrize("kind", ["wordpiece", "unigram"])
def test_the_same_texts_make_the_same_tokenizer(tmp_path, kind):
    files = []
    for name in "ab":
        (tmp_path / name).mkdir()
        train(tmp_path / name, kind)
        files.append((tmp_path / name / "tokenizer.json").read_bytes())
    assert files[0] == files[1]


@pytest.mark.parametrize("kind", ["wordpiece", "unigram"])
def test_transformers_opens_it_with_equal_ids(tmp_path, kind):
    from transformers import AutoTokenizer

    tokenizer = train(tmp_path, kind)
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    for text in ("Reading papers slowly.", "unheard-of  words\nété"):
        assert theirs(text)["input_ids"] == tokenizer.encode([text])[0].input_ids.tolist()
    assert theirs.mask_token_id == 4 and theirs.model_max_length == 40


def test_frequent_words_become_one_token(tmp_path):
    tokenizer = train(tmp_path, vocab_size=200)
    assert len(tokenizer.encode_text(["writers"])[0]) == 1
    assert len(tokenizer.encode_text(["wr"])[0]) > 1


def test_texts_that_no_tokenizer_can_be_made_of_say_so(tmp_path):
    with pytest.raises(DataError, match="no tokenizer can be made of these texts"):
        train_tokenizer_(
            tmp_path, lambda: iter([["\ud800"]]), kind="unigram", vocab_size=60, lowercase=True, max_tokens=40
        )
