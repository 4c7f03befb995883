"""What a user's data becomes, from file to splits."""

import csv
import json
import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest

from encoder.data import DataOptions, TaskData, read_data
from encoder.errors import ConfigError, DataError
from encoder.task import Task

SHARED = Path(__file__).parents[3] / "shared" / "data"
WORDS = [
    "fine",
    "NA",
    "null",
    "None",
    "nan",
    "1",
    "2.0",
    "é",
    "한국어",
    "😀",
    ",",
    '"',
    "\n",
    "\r\n",
    "\t",
    "'",
    " ",
]


def write_csv(
    path: Path, rows: Sequence[Sequence[object]], header: Sequence[str] = ("text", "label")
) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])


def write_splits(folder: Path, **splits: Sequence[Sequence[object]]) -> str:
    for split, rows in splits.items():
        write_csv(folder / f"{split}.csv", rows)
    return str(folder)


def write_lines(path: Path, rows: Sequence[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def texts_and_labels(data: TaskData, split: str) -> list[tuple[str, str]]:
    names = data.task.labels
    return [(text, names[label]) for text, label in zip(data.texts(split), data.labels(split), strict=True)]


def plain(count: int, labels: Sequence[object] = ("neg", "pos")) -> list[tuple[str, object]]:
    return [(f"text {number}", labels[number % len(labels)]) for number in range(count)]


@pytest.mark.parametrize("seed", range(10))
def test_what_csv_writes_is_read_back_word_for_word(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    rows = [("x" + "".join(draw.choices(WORDS, k=6)), draw.choice(["a", "b"])) for _ in range(40)]
    data = read_data(write_splits(tmp_path, train=rows, validation=rows))
    assert texts_and_labels(data, "train") == texts_and_labels(data, "validation") == rows


def test_words_that_mean_missing_elsewhere_are_texts_and_labels(tmp_path: Path) -> None:
    words = ["NA", "null", "None", "nan", "NaN", "n/a", "N/A", "-", "1", "2.0", "True"]
    rows = [(word, label) for word in words for label in ("None", "NA")]
    data = read_data(write_splits(tmp_path, train=rows, validation=rows))
    assert texts_and_labels(data, "train") == rows
    assert data.task.labels == ("NA", "None")
    assert data.report.splits["train"].dropped == ()


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


@pytest.mark.parametrize("column", ["text", "label"])
def test_mostly_empty_columns_are_refused(tmp_path: Path, column: str) -> None:
    empty = [("", "neg")] * 15 if column == "text" else [("a text", "")] * 15
    with pytest.raises(DataError, match=f"15 of 25 rows have an empty {column} .*train.csv:12"):
        read_data(write_splits(tmp_path, train=[*plain(10), *empty]))


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


def test_pairs_stay_two_texts(tmp_path: Path) -> None:
    rows = [("a", f"b {number}", "yn"[number % 2]) for number in range(20)]
    write_csv(tmp_path / "train.csv", rows, ["premise", "hypothesis", "label"])
    data = read_data(str(tmp_path))
    assert data.task.pair
    assert data.splits["train"].column_names == ["text", "text_pair", "label"]
    assert set(data.texts("train")) == {"a"}
    pairs = [*(data.pairs("train") or []), *(data.pairs("validation") or [])]
    assert sorted(pairs) == sorted(row[1] for row in rows)
    assert data.report.columns == {"text": "premise", "text_pair": "hypothesis", "label": "label"}


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


def test_a_test_file_without_labels_is_left_out_with_a_note_but_minus_one_may_be_a_label(
    tmp_path: Path,
) -> None:
    (tmp_path / "test.csv").write_text("text\na\nb\n")
    data = read_data(write_splits(tmp_path, train=plain(20)))
    assert any("test.csv: the 2 rows have no label" in note for note in data.report.notes)
    data = read_data(write_splits(tmp_path, train=plain(20, [-1, 1]), test=plain(3, [-1])))
    assert data.report.splits["test"].classes == {"-1": 3, "1": 0}


def test_a_validation_file_with_other_columns_is_refused(tmp_path: Path) -> None:
    (tmp_path / "validation.csv").write_text("text,lable\na,pos\n")
    with pytest.raises(
        DataError, match=r"validation.csv: no column 'label', as in .*train.csv; the columns are: text, lable"
    ):
        read_data(write_splits(tmp_path, train=plain(20)))


def test_validation_is_cut_from_train_in_proportion_and_whatever_the_order(tmp_path: Path) -> None:
    rows = [(f"text {number // 2}", "ab"[number // 2 % 5 == 0]) for number in range(400)]
    write_csv(tmp_path / "one.csv", rows)
    write_csv(tmp_path / "two.csv", rows[::-1])
    one, two = read_data(str(tmp_path / "one.csv")), read_data(str(tmp_path / "two.csv"))
    assert sorted(texts_and_labels(one, "validation")) == sorted(texts_and_labels(two, "validation"))
    assert one.report.splits["validation"].classes == {"a": 32, "b": 8}
    assert not set(one.texts("train")) & set(one.texts("validation"))
    assert one.report.splits["validation"].origin == f"cut from {tmp_path / 'one.csv'}"
    assert any("40 of the 400 training rows are cut off as one" in note for note in one.report.notes)
    assert one.fingerprint != two.fingerprint
    half = read_data(str(tmp_path / "one.csv"), DataOptions(validation_fraction=0.5))
    assert half.report.splits["validation"].rows == 200


def test_an_evaluation_finds_the_validation_rows_of_the_training(tmp_path: Path) -> None:
    source = write_splits(tmp_path, train=plain(50))
    trained = read_data(source)
    assert read_data(source, task=trained.task).texts("validation") == trained.texts("validation")


def test_too_few_rows_for_a_validation_split_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match="2 rows are too few to cut a validation split from: give a validation file"
    ):
        read_data(write_splits(tmp_path, train=plain(2)))
    assert len(read_data(write_splits(tmp_path, train=plain(4))).splits["validation"]) == 2


def test_train_rows_keeps_the_first_by_hash_and_says_so(tmp_path: Path) -> None:
    source = write_splits(tmp_path, train=plain(100), validation=plain(5))
    data = read_data(source, DataOptions(train_rows=30))
    assert len(data.splits["train"]) == 30
    assert set(data.texts("train")) < {f"text {number}" for number in range(100)}
    assert "train: 30 of 100 rows are used, the first by content hash" in data.report.notes
    assert read_data(source, DataOptions(train_rows=30)).fingerprint == data.fingerprint


def test_duplicates_leaks_and_contradictions_are_counted(tmp_path: Path) -> None:
    train = [*plain(20), ("text 0", "neg"), ("text 1", "neg")]
    data = read_data(
        write_splits(tmp_path, train=train, validation=plain(2), test=[("text  0", "pos"), ("z", "neg")])
    )
    assert (data.report.splits["train"].duplicates, data.report.splits["train"].conflicts) == (2, 1)
    leaks = {(leak.first, leak.second): (leak.rows, leak.conflicts) for leak in data.report.overlaps}
    assert leaks == {
        ("train", "validation"): (2, 0),
        ("train", "test"): (1, 1),
        ("validation", "test"): (1, 1),
    }


def test_the_report_is_json_and_the_fingerprint_is_of_the_content_alone(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    one = read_data(write_splits(tmp_path / "a", train=plain(20), validation=plain(4)))
    write_lines(tmp_path / "b" / "train.jsonl", [{"label": label, "text": text} for text, label in plain(20)])
    write_lines(tmp_path / "b" / "dev.jsonl", [{"label": label, "text": text} for text, label in plain(4)])
    two = read_data(str(tmp_path / "b"))
    assert one.fingerprint == two.fingerprint
    assert len(one.fingerprint) == 64
    assert json.loads(json.dumps(one.report.as_dict()))["splits"]["train"]["rows"] == 20


def test_without_train_only_a_trained_model_can_use_the_data(tmp_path: Path) -> None:
    source = write_splits(tmp_path, test=plain(4))
    with pytest.raises(DataError, match="no train split, only test"):
        read_data(source)
    assert list(read_data(source, task=Task(kind="single_label", labels=("neg", "pos"))).splits) == ["test"]


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.is_dir(), reason="../shared/data is not there")
@pytest.mark.parametrize(
    "folder", sorted(SHARED.glob("*/")) if SHARED.is_dir() else [], ids=lambda path: path.name
)
def test_the_shared_data_sets_are_read_as_their_descriptions_say(folder: Path) -> None:
    if not (folder / "meta.json").is_file():
        pytest.skip("no meta.json")
    meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
    data = read_data(str(folder))
    kind = "regression" if meta["regression"] else "multi_label" if meta["multilabel"] else "single_label"
    assert (data.task.kind, data.task.pair) == (kind, meta["pair"])
    assert set(data.task.labels) == set(meta["labels"] or ())
    for split, stats in meta["stats"].items():
        report = data.report.splits[split]
        cut = (
            data.report.splits["validation"]
            if split == "train" and "validation" not in meta["stats"]
            else None
        )
        assert report.rows + (cut.rows if cut else 0) == stats["rows"]
        assert not report.dropped
        if not meta["regression"]:
            counts = {
                name: count + (cut.classes[name] if cut else 0) for name, count in report.classes.items()
            }
            assert counts == stats["labels"]
