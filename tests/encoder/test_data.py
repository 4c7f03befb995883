"""What a user's data becomes, from file to splits."""

import json
import random
from pathlib import Path

import pytest

from encoder.data import DataOptions, read_data
from encoder.errors import DataError
from encoder.task import Task
from tests.encoder.data_files import plain, texts_and_labels, write_csv, write_lines, write_splits

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


@pytest.mark.parametrize("column", ["text", "label"])
def test_mostly_empty_columns_are_refused(tmp_path: Path, column: str) -> None:
    empty = [("", "neg")] * 15 if column == "text" else [("a text", "")] * 15
    with pytest.raises(DataError, match=f"15 of 25 rows have an empty {column} .*train.csv:12"):
        read_data(write_splits(tmp_path, train=[*plain(10), *empty]))


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
