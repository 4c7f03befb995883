import os
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import encoder.token_cache as token_cache
from encoder.cache_folder import cache_folder
from encoder.errors import DataError
from encoder.model_folder import read_tokenizer
from encoder.token_cache import encode_cached
from encoder.tokenizer import Tokenizer

TEXTS = ["good film", "a bad plot and a very slow cast", ""]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.setenv("ENC_CACHE", str(tmp_path))
    monkeypatch.setattr(token_cache, "MIN_LETTERS", 0)
    return tmp_path / "tokens"


@pytest.fixture
def tokenizer(tiny_model):
    return read_tokenizer(tiny_model)


@pytest.fixture
def no_tokenizing(tokenizer, monkeypatch):
    def make() -> None:
        monkeypatch.setattr(tokenizer, "encode", lambda *_, **__: pytest.fail("tokenized again"))

    return make


def assert_same(one, other) -> None:
    assert one[1] == other[1]
    for name in ("input_ids", "token_type_ids", "offsets"):
        found, expected = getattr(one[0], name), getattr(other[0], name)
        assert found.dtype == expected.dtype and np.array_equal(found, expected)


@pytest.mark.parametrize("pairs", [None, ["the story", "was", "dull"]])
def test_the_same_texts_are_tokenized_once(folder, tokenizer, no_tokenizing, pairs) -> None:
    expected = tokenizer.encode(TEXTS, pairs, max_length=6)
    assert_same(encode_cached(tokenizer, TEXTS, pairs, max_length=6), expected)
    no_tokenizing()
    told: list[int] = []
    assert_same(encode_cached(tokenizer, TEXTS, pairs, max_length=6, on_rows=told.append), expected)
    assert told == [3]


def test_other_texts_lengths_and_pairs_are_other_entries(folder, tokenizer) -> None:
    ways = [
        (TEXTS, None, 6),
        (TEXTS, None, 7),
        (["good", " film", *TEXTS[1:]], None, 6),
        (["good film", TEXTS[1] + " "], None, 6),
        (TEXTS, TEXTS, 6),
        (TEXTS + TEXTS, None, 6),
    ]
    for texts, pairs, length in ways:
        expected = tokenizer.encode(texts, pairs, max_length=length)
        assert_same(encode_cached(tokenizer, texts, pairs, max_length=length), expected)
    assert len(list(folder.iterdir())) == len(ways)


@pytest.mark.parametrize("damage", ["cut", "byte", "empty", "other"])
def test_a_damaged_entry_is_made_again(folder, tokenizer, no_tokenizing, damage: str) -> None:
    expected = encode_cached(tokenizer, TEXTS, max_length=6)
    (file,) = folder.iterdir()
    content = file.read_bytes()
    place = content.index(expected[0].input_ids.tobytes())
    file.write_bytes(
        {
            "cut": content[: len(content) // 2],
            "byte": content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :],
            "empty": b"",
            "other": b"not a file of numpy's",
        }[damage]
    )
    assert_same(encode_cached(tokenizer, TEXTS, max_length=6), expected)
    no_tokenizing()
    assert_same(encode_cached(tokenizer, TEXTS, max_length=6), expected)


def test_a_folder_that_cannot_be_written_is_done_without(tmp_path, tokenizer, folder) -> None:
    folder.write_text("a file where the folder should be")
    assert_same(encode_cached(tokenizer, TEXTS, max_length=6), tokenizer.encode(TEXTS, max_length=6))


def test_a_folder_that_can_only_be_read_is_read(folder, tokenizer, no_tokenizing, monkeypatch) -> None:
    expected = encode_cached(tokenizer, TEXTS, max_length=6)
    no_tokenizing()
    monkeypatch.setattr(os, "utime", lambda *_: (_ for _ in ()).throw(PermissionError))
    assert_same(encode_cached(tokenizer, TEXTS, max_length=6), expected)


def test_all_that_changes_tokens_is_in_the_name(tokenizer, monkeypatch) -> None:
    """What is not among the texts: the tokenizer's rules, its settings beside them, its library."""

    def name(made: Tokenizer = tokenizer) -> str:
        return token_cache._key(made, TEXTS, None, 6)

    names = [name()]
    names.append(name(tokenizer.with_definition(tokenizer.definition | {"normalizer": None})))
    files = tokenizer._folder
    changes = (
        {"truncation_side": "left" if files.truncation_side == "right" else "right"},
        {"uses_token_types": not files.uses_token_types},
        {"special_tokens": dict(files.special_tokens) | {"unk_token": "[MASK]"}},
    )
    names += [name(Tokenizer(replace(files, **change), max_tokens=64)) for change in changes]
    monkeypatch.setattr("tokenizers.__version__", "0")
    names.append(name())
    assert len(set(names)) == len(names)


def test_what_was_not_used_for_longest_goes_first(folder, tokenizer, no_tokenizing, monkeypatch) -> None:
    for age, length in enumerate((4, 5, 6)):
        encode_cached(tokenizer, TEXTS, max_length=length)
        newest = max(folder.iterdir(), key=lambda file: file.stat().st_mtime_ns)
        os.utime(newest, (1000 + age, 1000 + age))
    size = newest.stat().st_size
    encode_cached(tokenizer, TEXTS, max_length=4)  # used again
    monkeypatch.setattr(token_cache, "MAX_BYTES", 3 * size + size // 2)
    encode_cached(tokenizer, TEXTS, max_length=7)
    assert len(list(folder.iterdir())) == 3
    no_tokenizing()
    for kept in (4, 6, 7):
        encode_cached(tokenizer, TEXTS, max_length=kept)


def test_what_a_killed_process_left_half_written_goes(folder, tokenizer) -> None:
    encode_cached(tokenizer, TEXTS, max_length=4)
    for name, age_s in ((".a.npz.1.partial", 2 * 24 * 3600), (".b.npz.2.partial", 60)):
        (folder / name).write_bytes(b"half")
        os.utime(folder / name, (time.time() - age_s,) * 2)
    encode_cached(tokenizer, TEXTS, max_length=5)
    assert [file.name for file in folder.glob(".*")] == [".b.npz.2.partial"]


def test_small_texts_and_a_switched_off_cache_leave_no_file(tmp_path, tokenizer, folder, monkeypatch) -> None:
    monkeypatch.setattr(token_cache, "MIN_LETTERS", 1000)
    encode_cached(tokenizer, TEXTS, max_length=6)
    monkeypatch.setattr(token_cache, "MIN_LETTERS", 0)
    monkeypatch.setenv("ENC_CACHE", "")
    encode_cached(tokenizer, TEXTS, max_length=6)
    assert not folder.exists()


def test_the_folder_is_in_the_users_cache_unless_it_is_named(monkeypatch, tmp_path) -> None:
    monkeypatch.delenv("ENC_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder("tokens") == tmp_path / "enc" / "tokens"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder("tokens") == tmp_path / ".cache" / "enc" / "tokens"


def test_text_that_is_no_unicode_is_an_error_as_ever(folder, tokenizer) -> None:
    with pytest.raises(DataError, match="row 1: the text holds"):
        encode_cached(tokenizer, ["good", "\ud800"], max_length=6)
