"""Texts into tokens. Oracle: Transformers' AutoTokenizer on the same folder."""

import json
import os
import shutil
import subprocess
import sys
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from encoder.errors import ConfigError, DataError
from encoder.tokenizer import CHUNK_ROWS, Tokenizer
from tests.encoder.tokenizer_folders import (
    BERT_CONFIG,
    FOLDERS,
    family_of,
    minilm_vocab,
    ours,
    save_json,
    save_vocab,
    wordpiece,
    write_folder,
)

TEXTS = [
    "The quick brown fox",
    "",
    "   ",
    "Résumé NAÏVE Ärger İstanbul ﬁne",
    "한국어와 中文 mixed with English",
    "emoji 😀👩‍👩‍👧 and \u200bzero width, tab\tand\nnewline\r\n",
    "a literal [SEP] or [MASK] or </s> or <mask> inside",
    "NA",
    "x" * 150,
    "unbelievable " * 20,
    "\x00control\x07 \ufffd chars\ufeff",
    "  leading and   inner spaces ",
]
PAIRS = [
    "",
    "jumps over",
    "the lazy dog " * 9,
    "a",
    "b c",
    "😀",
    "[SEP]",
    "null",
    "y",
    "lazy " * 30,
    "ok",
    "",
]
LENGTHS = [None, 5, 6, 7, 16, 37]


@pytest.fixture(params=FOLDERS)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return FOLDERS[request.param](tmp_path / "model")


def oracle(folder: Path) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(str(folder))


def assert_equal_rows(tokenizer: Tokenizer, expected: Any) -> None:
    # DistilBERT has no token types: Transformers may compute them, and the model ignores them.
    segments = family_of(Path(expected.name_or_path)) != "distilbert"
    for max_length in LENGTHS:
        limit = max_length or tokenizer.max_length
        for pairs in (None, PAIRS):
            if limit < (6 if pairs else 4):
                continue
            rows, stats = tokenizer.encode(TEXTS, pairs, max_length=max_length)
            full = expected(TEXTS, pairs, return_token_type_ids=True)
            cut = expected(
                TEXTS, pairs, truncation="longest_first", max_length=limit, return_token_type_ids=True
            )
            assert [ids.tolist() for ids in np.split(rows.input_ids, rows.offsets[1:-1])] == cut["input_ids"]
            if segments:
                assert rows.token_type_ids.tolist() == list(chain.from_iterable(cut["token_type_ids"]))
            else:
                assert not rows.token_type_ids.any()
            lengths = [len(ids) for ids in full["input_ids"]]
            assert stats.rows == len(TEXTS)
            assert stats.rows_cut == sum(length > limit for length in lengths)
            assert stats.tokens_lost == sum(max(0, length - limit) for length in lengths)
            assert stats.tokens == sum(min(limit, length) for length in lengths)


def test_rows_are_those_of_transformers(folder: Path) -> None:
    assert_equal_rows(ours(folder), oracle(folder))


def test_saved_tokenizer_opens_in_transformers_with_equal_rows(folder: Path, tmp_path: Path) -> None:
    tokenizer = ours(folder)
    saved = tmp_path / "saved"
    tokenizer.save(saved)
    shutil.copy(folder / "config.json", saved)
    reopened = oracle(saved)
    assert_equal_rows(tokenizer, reopened)
    assert reopened.model_max_length == tokenizer.max_length
    for name in ("cls_token", "sep_token", "pad_token", "mask_token", "unk_token"):
        assert getattr(reopened, f"{name}_id") == tokenizer.token_id(name)


def test_saved_tokenizer_reloads_with_equal_fingerprint_and_saves_equal_bytes(
    folder: Path, tmp_path: Path
) -> None:
    tokenizer = ours(folder)
    contents = []
    for name in ("first", "second"):
        tokenizer.save(tmp_path / name)
        shutil.copy(folder / "config.json", tmp_path / name)
        contents.append([path.read_bytes() for path in sorted((tmp_path / name).iterdir())])
        reloaded = ours(tmp_path / name)
        assert reloaded.fingerprint == tokenizer.fingerprint
        assert reloaded.notes == ()
        tokenizer = reloaded
    assert contents[0] == contents[1]


def test_rows_do_not_depend_on_the_chunk_they_fall_into(tmp_path: Path) -> None:
    tokenizer = ours(minilm_vocab(tmp_path / "model"))
    texts = [f"text number {n} " * (n % 40) for n in range(2 * CHUNK_ROWS + 1)]
    rows, stats = tokenizer.encode(texts, max_length=30)
    alone = [tokenizer.encode([text], max_length=30) for text in texts[::CHUNK_ROWS]]
    for row, (expected, _) in zip(range(0, len(texts), CHUNK_ROWS), alone, strict=True):
        assert rows.select([row]).input_ids.tolist() == expected.input_ids.tolist()
    assert len(rows) == stats.rows == len(texts)
    assert rows.input_ids.dtype == np.int32
    assert rows.token_type_ids.dtype == np.int8
    assert rows.offsets.dtype == np.int64
    assert rows.labels is None


def test_no_texts_give_no_rows(tmp_path: Path) -> None:
    rows, stats = ours(minilm_vocab(tmp_path / "model")).encode([])
    assert len(rows) == stats.rows == stats.tokens == 0
    assert stats.tokens_unknown == stats.tokens_lost == 0


def test_two_very_long_texts_are_cut_in_bounded_time(tmp_path: Path) -> None:
    # The tokenizers library would build the product of what it cuts off: 10,000 rows of 64 tokens here.
    tokenizer = ours(minilm_vocab(tmp_path / "model"))
    rows, stats = tokenizer.encode(["one two three " * 2000], ["four five six " * 2001])
    assert rows.lengths.tolist() == [64]
    assert stats.tokens_lost == 3 * 4001 + 3 - 64
    assert rows.token_type_ids.sum() == 32


def test_text_in_a_language_the_vocabulary_lacks_shows_as_unknown(tmp_path: Path) -> None:
    tokenizer = ours(save_vocab(wordpiece(), write_folder(tmp_path / "model", "bert", BERT_CONFIG)))
    _, english = tokenizer.encode(["the lazy dog"])
    _, greek = tokenizer.encode(["ο τεμπέλης σκύλος"])
    assert english.tokens_unknown == 0
    assert (greek.tokens_unknown, greek.tokens) == (3, 5)


@pytest.mark.parametrize("name", ["vocab.txt without config", "tokenizer.json cased, config lower"])
def test_fingerprint_differs_when_rows_could_differ(name: str, tmp_path: Path) -> None:
    folder = FOLDERS[name](tmp_path / "model")
    fingerprint = ours(folder).fingerprint
    assert ours(folder, max_tokens=32).fingerprint == fingerprint
    (folder / "tokenizer_config.json").write_text(json.dumps(BERT_CONFIG | {"do_lower_case": False}))
    assert ours(folder).fingerprint != fingerprint


@pytest.mark.parametrize(
    ("max_tokens", "model_max_length", "expected"),
    [
        (512, 128, 128),
        (64, 128, 64),
        (512, None, 512),
        (510, 1e30, 510),
        (510, 1000000000000000019884624838656, 510),
    ],
)
def test_max_length_is_what_model_and_folder_both_allow(
    max_tokens: int, model_max_length: float | None, expected: int, tmp_path: Path
) -> None:
    config = BERT_CONFIG | {"model_max_length": model_max_length}
    tokenizer = ours(save_json(wordpiece(), write_folder(tmp_path / "model", "bert", config)), max_tokens)
    assert tokenizer.max_length == expected


def test_max_length_that_does_not_fit_is_refused_with_the_limit(tmp_path: Path) -> None:
    folder = FOLDERS["vocab.txt cased"](tmp_path / "model")
    with pytest.raises(
        ConfigError, match="max length 65 is too long: model_max_length in its tokenizer_config"
    ):
        ours(folder, 512).encode(["a"], max_length=65)
    with pytest.raises(ConfigError, match="max length 33 is too long: the model has positions for 32 tokens"):
        ours(folder, 32).encode(["a"], max_length=33)
    with pytest.raises(
        ConfigError, match="max length 2 is too short: a text takes 2 special tokens, so use 3"
    ):
        ours(folder).encode(["a"], max_length=2)
    with pytest.raises(
        ConfigError, match="max length 4 is too short: a pair takes 3 special tokens, so use 5"
    ):
        ours(folder).encode(["a"], ["b"], max_length=4)


def test_half_of_a_unicode_pair_is_named_with_its_row(tmp_path: Path) -> None:
    tokenizer = ours(FOLDERS["vocab.txt cased"](tmp_path / "model"))
    texts = ["fine"] * CHUNK_ROWS + ["fine", "not \ud83d fine"]
    with pytest.raises(DataError, match=r"row 1001: the text holds '\\ud83d' at character 4"):
        tokenizer.encode(texts)
    with pytest.raises(DataError, match="row 0"):
        tokenizer.encode(["fine"], ["\udc00"])


@pytest.mark.skipif(sys.platform != "linux", reason="counts threads in /proc")
def test_as_many_threads_tokenize_as_are_allowed(tiny_model) -> None:
    """The library reads the limit once in a process, so this takes one of its own."""
    program = (
        "import os, sys, threading\n"
        "from pathlib import Path\n"
        "from encoder.model_folder import read_tokenizer\n"
        "from encoder.tokenizer import limit_threads\n"
        "limit_threads(3)\n"
        "tokenizer = read_tokenizer(Path(sys.argv[1]))\n"
        "before = len(os.listdir('/proc/self/task'))\n"
        "tokenizer.encode(['good film'] * 100)\n"
        "print(len(os.listdir('/proc/self/task')) - before, os.environ.get('TOKENIZERS_PARALLELISM'))\n"
    )
    environment = {k: v for k, v in os.environ.items() if k != "RAYON_NUM_THREADS"}
    done = subprocess.run(
        [sys.executable, "-c", program, str(tiny_model)],
        env=environment | {"PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split() == ["3", "None"]


def test_spelling_gives_what_the_text_says_for_each_token_that_encode_makes(folder: Path) -> None:
    tokenizer = ours(folder)
    for text, pair in (("The lazy dog, unbelievable!", "fox"), ("한국어 and 😀", None), ("", None)):
        for max_length in (64, 8):
            rows, _ = tokenizer.encode([text], None if pair is None else [pair], max_length=max_length)
            pieces = tokenizer.spell(text, pair, max_length=max_length)
            assert len(pieces) == len(rows.input_ids)
            spelt = "".join(piece.text for piece in pieces if piece.sequence == 0)
            if len(rows.input_ids) < max_length and "😀" not in text:
                assert spelt.replace("␣", "") == text.replace(" ", "")
            assert {piece.sequence for piece in pieces} <= {None, 0, 1}
