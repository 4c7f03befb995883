"""What is read of a tokenizer folder, and which folders are refused."""

import json
from pathlib import Path

import pytest

from encoder.errors import CheckpointError
from encoder.tokenizer import load_tokenizer
from tests.encoder.tokenizer_folders import (
    BERT_CONFIG,
    FOLDERS,
    byte_level_bpe,
    ours,
    save_json,
    save_vocab,
    wordpiece,
    write_folder,
)


def test_baked_in_truncation_and_padding_are_reset(tmp_path: Path) -> None:
    tokenizer = wordpiece()
    tokenizer.enable_truncation(8)
    tokenizer.enable_padding(length=8)
    folder = save_json(tokenizer, write_folder(tmp_path / "model", "bert", BERT_CONFIG))
    rows, stats = ours(folder).encode(["fox", "the quick brown fox jumps over the lazy dog"])
    assert rows.lengths[0] < 8 < rows.lengths[1]
    assert stats.rows_cut == stats.tokens_lost == 0


@pytest.mark.parametrize(
    ("name", "note"),
    [
        (
            "tokenizer.json cased, config lower",
            "lowercase false but tokenizer_config.json says do_lower_case true",
        ),
        (
            "tokenizer.json cased, config silent",
            "lowercase false but the default of its tokenizer class is do_low",
        ),
        (
            "roberta with prefix space",
            "add_prefix_space false but tokenizer_config.json says add_prefix_space true",
        ),
    ],
)
def test_files_that_disagree_are_noted(name: str, note: str, tmp_path: Path) -> None:
    notes = ours(FOLDERS[name](tmp_path / "model")).notes
    assert len(notes) == 1
    assert note in notes[0]


def test_ids_of_special_tokens_and_vocab_size_are_those_of_the_folder(tmp_path: Path) -> None:
    tokenizer = ours(FOLDERS["roberta"](tmp_path / "model"))
    assert tokenizer.pad_token_id == 1
    assert tokenizer.unk_token_id == 3
    assert tokenizer.token_id("mask_token") == 4
    assert tokenizer.token_id("cls_token") == 0
    assert tokenizer.token_id("no such name") is None
    assert tokenizer.vocab_size == byte_level_bpe().get_vocab_size()


def test_vocab_size_counts_tokens_added_beyond_the_vocabulary(tmp_path: Path) -> None:
    plain = ours(FOLDERS["distilbert"](tmp_path / "plain"))
    extended = ours(FOLDERS["extra special tokens"](tmp_path / "model"))
    assert extended.vocab_size == plain.vocab_size + 1


def test_pad_id_that_shifts_positions_is_refused(tmp_path: Path) -> None:
    folder = FOLDERS["roberta"](tmp_path / "model")
    with pytest.raises(
        CheckpointError, match=r"pads with '<pad>' \(id 1\), but config.json says pad_token_id 3"
    ):
        load_tokenizer(folder, max_tokens=64, pad_token_id=3)


def test_model_with_one_segment_gets_one_segment_whatever_its_tokenizer_says(tmp_path: Path) -> None:
    # klue/roberta: a RoBERTa with BERT's tokenizer.
    folder = save_json(wordpiece(), write_folder(tmp_path / "model", "roberta", BERT_CONFIG))
    (folder / "config.json").write_text(json.dumps({"model_type": "roberta", "type_vocab_size": 1}))
    rows, _ = load_tokenizer(folder, max_tokens=64, pad_token_id=0).encode(["fox"], ["dog"])
    assert not rows.token_type_ids.any()


def test_pad_id_that_changes_nothing_is_accepted(tmp_path: Path) -> None:
    # multilingual-e5-small: BERT positions, the tokenizer pads with 1, config.json says 0.
    load_tokenizer(FOLDERS["unigram, bert"](tmp_path / "model"), max_tokens=64, pad_token_id=0)


@pytest.mark.parametrize("file", ["sentencepiece.bpe.model", "vocab.json", "spm.model"])
def test_vocabularies_of_other_libraries_are_refused_with_the_way_out(file: str, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "model", "xlm-roberta")
    (folder / file).write_text("")
    with pytest.raises(
        CheckpointError, match=rf"has {file} but no tokenizer.json.*AutoTokenizer.*save_pretrained"
    ):
        ours(folder)


def test_vocab_of_a_tokenizer_that_is_not_wordpiece_is_refused(tmp_path: Path) -> None:
    config = {"tokenizer_class": "BertJapaneseTokenizer"}
    folder = save_vocab(wordpiece(), write_folder(tmp_path / "model", "bert", config))
    with pytest.raises(CheckpointError, match="belongs to a BertJapaneseTokenizer"):
        ours(folder)


def test_broken_folders_are_refused_with_the_file(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="no such folder"):
        load_tokenizer(tmp_path / "nowhere", max_tokens=64, pad_token_id=0)
    folder = write_folder(tmp_path / "model", "bert")
    with pytest.raises(CheckpointError, match=r"no tokenizer; expected tokenizer.json or vocab.txt"):
        ours(folder)
    (folder / "tokenizer.json").write_text('{"version": "1.0"')
    with pytest.raises(CheckpointError, match=r"tokenizer.json: not a tokenizer"):
        ours(folder)
    (folder / "tokenizer_config.json").write_text("[1]")
    with pytest.raises(CheckpointError, match=r"tokenizer_config.json: expected a JSON object, found list"):
        ours(folder)
    (folder / "tokenizer_config.json").write_text("{")
    with pytest.raises(CheckpointError, match=r"tokenizer_config.json: cannot be read as JSON"):
        ours(folder)


def test_vocabulary_without_its_special_tokens_is_refused(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "model", "bert")
    (folder / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\na\nb\n")
    with pytest.raises(CheckpointError, match="the vocabulary holds no sep_token"):
        ours(folder)
    (folder / "vocab.txt").write_text("[PAD]\n[CLS]\n[SEP]\na\nb\n")
    with pytest.raises(CheckpointError, match="cannot encode an unknown word"):
        ours(folder)


def test_settings_of_the_wrong_type_are_refused_all_at_once(tmp_path: Path) -> None:
    config = BERT_CONFIG | {"model_max_length": "512", "do_lower_case": "yes", "truncation_side": "middle"}
    folder = save_json(wordpiece(), write_folder(tmp_path / "model", "bert", config))
    with pytest.raises(CheckpointError) as error:
        ours(folder)
    assert [line.split(": ", 1)[1] for line in str(error.value).splitlines()] == [
        "do_lower_case is 'yes'; expected bool",
        "model_max_length is '512'; expected int or float",
        "truncation_side is 'middle'; expected left or right",
    ]


def test_settings_that_are_null_mean_the_default(tmp_path: Path) -> None:
    nulls = dict.fromkeys(["model_max_length", "truncation_side", "do_lower_case", "pad_token"])
    folder = save_json(wordpiece(), write_folder(tmp_path / "model", "bert", BERT_CONFIG | nulls))
    tokenizer = ours(folder)
    assert tokenizer.max_length == 64
    assert tokenizer.pad_token_id == 0
    assert len(tokenizer.encode(["fox"])[0]) == 1
