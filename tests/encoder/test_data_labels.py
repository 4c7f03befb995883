"""What becomes of label cells: classes by name, several labels, numbers."""

import math
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest

from encoder.data import DataOptions, read_data
from encoder.errors import ConfigError, DataError
from encoder.task import Task
from tests.encoder.data_files import plain, write_csv, write_lines, write_splits


def test_whole_numbers_are_classes_in_numeric_order(tmp_path: Path) -> None:
    data = read_data(write_splits(tmp_path, train=plain(40, [10, 9, 2, 1])))
    assert data.task == Task(kind="single_label", labels=("1", "2", "9", "10"))
    assert "labels are 4 different whole numbers" in data.report.task


def test_a_blank_label_drops_its_row_with_a_report_and_changes_no_label(tmp_path: Path) -> None:
    source = write_splits(tmp_path, train=[*plain(20, [0, 1]), ("unlabelled", ""), (" ", 1), ("", "")])
    data = read_data(source)
    assert data.task.labels == ("0", "1")
    dropped = {drop.reason: (drop.rows, drop.examples) for drop in data.report.splits["train"].dropped}
    train = tmp_path / "train.csv"
    assert dropped == {
        "empty label": (1, (f"{train}:22",)),
        "empty text": (2, (f"{train}:23", f"{train}:24")),
    }
    assert sum(split.rows for split in data.report.splits.values()) == 20


def test_a_float_column_with_a_hole_is_still_of_whole_numbers(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"text": f"t{number}", "label": float(number % 3)} for number in range(12)]
    rows[5]["label"] = math.nan
    datasets.Dataset.from_list(rows).to_parquet(str(tmp_path / "train.parquet"))
    data = read_data(str(tmp_path / "train.parquet"))
    assert data.task == Task(kind="single_label", labels=("0", "1", "2"))
    assert data.report.splits["train"].dropped[0].rows == 1
    assert "written with a decimal point" in data.report.task
    assert (
        read_data(str(tmp_path / "train.parquet"), DataOptions(task="regression")).task.kind == "regression"
    )


def test_a_label_that_train_lacks_is_refused_with_its_line_in_all_splits(tmp_path: Path) -> None:
    source = write_splits(
        tmp_path, train=plain(20), validation=[*plain(4), ("new", "neutral")], test=[("newer", "pso")]
    )
    with pytest.raises(DataError) as caught:
        read_data(source)
    message = str(caught.value)
    assert "validation.csv:6: label 'neutral' is none of the labels of train\n" in message
    assert "test.csv:2: label 'pso' is none of the labels of train; did you mean 'pos'?\n" in message
    assert message.endswith("\nthe labels of train: 'neg', 'pos'") and message.count("'neg'") == 1


def test_a_label_with_a_space_or_another_case_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "reviews.csv"
    write_csv(path, [*plain(15), ("odd", "pos "), ("odder", "Neg")])
    with pytest.raises(DataError) as caught:
        read_data(str(path))
    message = str(caught.value)
    assert "reviews.csv:17: label 'pos ' is none of the labels in use; did you mean 'pos'?" in message
    assert "reviews.csv:18: label 'Neg' is none of the labels in use; did you mean 'neg'?" in message
    assert "--label-variants merge" in message
    merged = read_data(str(path), DataOptions(label_variants="merge"))
    assert merged.task.labels == ("neg", "pos")
    assert any("label 'Neg' (1 row) is taken for 'neg'" in note for note in merged.report.notes)
    assert read_data(str(path), DataOptions(label_variants="keep")).task.labels == (
        "Neg",
        "neg",
        "pos",
        "pos ",
    )


def test_only_the_first_twenty_problems_are_spelt_out(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="… and 5 more") as caught:
        read_data(write_splits(tmp_path, train=[*plain(60), *[("odd", "Pos")] * 25]))
    assert str(caught.value).count("did you mean") == 20


def test_a_class_missing_from_validation_is_a_note(tmp_path: Path) -> None:
    data = read_data(write_splits(tmp_path, train=plain(20), validation=plain(4, ["neg"]), test=plain(4)))
    assert "validation: no rows of 'pos': its score says nothing of that" in data.report.notes
    assert data.report.splits["validation"].classes == {"neg": 4, "pos": 0}


def test_one_label_alone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="each row has the label 'neg'; training needs two labels or more"):
        read_data(write_splits(tmp_path, train=plain(9, ["neg"])))


def test_labels_are_matched_to_a_model_by_name_and_not_by_order(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    write_csv(path, plain(4))
    task = Task(kind="single_label", labels=("pos", "neutral", "neg"))
    data = read_data(str(path), task=task, single_split="test")
    assert list(data.splits) == ["test"]
    assert data.task == task
    assert list(data.labels("test")) == [2, 0, 2, 0]
    assert data.report.splits["test"].classes == {"pos": 2, "neutral": 0, "neg": 2}
    with pytest.raises(
        DataError, match=r"(?s)f.csv:2: label 'neg' is none of .*the labels of the model: 'bad', 'good'$"
    ):
        read_data(str(path), task=Task(kind="single_label", labels=("bad", "good")), single_split="test")


def test_the_task_of_a_model_is_not_inferred_again(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    write_csv(path, [("a", "1"), ("b", "2")])
    assert list(read_data(str(path), task=Task(kind="regression"), single_split="test").labels("test")) == [
        1,
        2,
    ]
    both = Task(kind="multi_label", labels=("1", "2"))
    assert read_data(str(path), task=both, single_split="test").labels("test").tolist() == [[1, 0], [0, 1]]
    with pytest.raises(ConfigError, match="--task single_label: the model was trained for regression"):
        read_data(str(path), DataOptions(task="single_label"), task=Task(kind="regression"))
    with pytest.raises(DataError, match="the model takes pairs of texts"):
        read_data(str(path), task=Task(kind="regression", pair=True))


def test_lists_are_several_labels_and_an_empty_list_is_none_of_them(tmp_path: Path) -> None:
    rows = [
        {"text": f"t{n}", "labels": [["joy"], ["joy", "fear"], [], ["fear", "fear"]][n % 4]}
        for n in range(40)
    ]
    data = read_data(write_lines(tmp_path / "train.jsonl", rows))
    assert data.task == Task(kind="multi_label", labels=("fear", "joy"))
    labels = data.labels("train")
    assert labels.dtype == np.float32
    assert {tuple(row) for row in labels} == {(0, 1), (1, 1), (0, 0), (1, 0)}
    assert sum(split.rows_without_label for split in data.report.splits.values()) == 10


def test_joined_names_are_several_labels_and_an_empty_cell_is_a_missing_one(tmp_path: Path) -> None:
    data = read_data(write_splits(tmp_path, train=[*plain(40, ["joy", "fear", "fear|joy"]), ("none", "")]))
    assert data.task == Task(kind="multi_label", labels=("fear", "joy"))
    assert data.report.splits["train"].dropped[0].reason == "empty label"


def test_a_doubtful_separator_is_refused_with_the_place(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"train.csv, column 'label': labels such as .*--label-separator"):
        read_data(write_splits(tmp_path, train=plain(40, ["a|x", "a|y", "b|x", "b|y"])))


def test_fractions_are_regression_and_each_wrong_number_is_named(tmp_path: Path) -> None:
    data = read_data(write_splits(tmp_path, train=plain(40, [0, 1.5, 5])))
    assert data.task == Task(kind="regression")
    assert data.labels("train").dtype == np.float32
    label_range = data.report.splits["train"].label_range
    assert label_range is not None
    assert (label_range.smallest, label_range.largest) == (0.0, 5.0)
    with pytest.raises(
        DataError, match=r"(?s)train.csv:42: label 'nan' is not a number.*:43: label '1e999' is too large"
    ):
        read_data(write_splits(tmp_path, train=[*plain(40, [0, 1.5, 5]), ("x", "nan"), ("y", "1e999")]))


def test_class_labels_of_a_dataset_keep_their_names_and_order(tmp_path: Path) -> None:
    features = datasets.Features(
        {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["pos", "neg", "unused"])}
    )

    def make(labels: list[int]) -> datasets.Dataset:
        texts = [f"t{number}" for number in range(len(labels))]
        return datasets.Dataset.from_dict({"text": texts, "label": labels}, features=features)

    whole = datasets.DatasetDict({"train": make([0, 1] * 10), "test": make([-1] * 5)})
    whole.save_to_disk(str(tmp_path / "saved"))
    data = read_data(str(tmp_path / "saved"))
    assert data.task.labels == ("pos", "neg", "unused")
    assert "test" not in data.splits
    assert any(
        "[test]: the 5 rows have no label, so there is no test split" in note for note in data.report.notes
    )


@pytest.mark.parametrize("word", ["nan", "inf"])
def test_lines_of_many_labels_that_are_not_finite_are_named(tmp_path: Path, word: str) -> None:
    numbers = [*(f"{number / 7:.3f}" for number in range(1, 49)), *[word] * 12]
    write_csv(tmp_path / "scores.csv", [(f"text {place}", number) for place, number in enumerate(numbers)])
    with pytest.raises(DataError) as caught:
        read_data(str(tmp_path / "scores.csv"))
    found = str(caught.value).splitlines()
    assert len(found) == 12
    assert f"scores.csv:50: label '{word}' is not a number" in found[0]
    assert "scores.csv:61" in found[-1]
