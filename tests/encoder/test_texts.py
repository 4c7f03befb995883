from pathlib import Path

import pytest

from encoder.errors import DataError
from encoder.texts import read_texts


def test_each_line_of_a_text_file_is_a_text_and_empty_ones_stay(tmp_path: Path) -> None:
    path = tmp_path / "f.txt"
    path.write_bytes('\ufeffone, "two"\r\n\r\nNA\u2028x\n'.encode())
    rows = read_texts(path, pair=False)
    assert rows.texts == ['one, "two"', "", "NA\u2028x"]
    assert rows.notes == (f"{path}: 1 of 3 texts are empty (first: {path}:2)",)


def test_columns_are_found_and_labels_are_not_needed(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    path.write_text("id,question,answer\n1,who?,me\n2,where?,\n")
    assert read_texts(path, pair=True).pairs == ["me", ""]
    single = read_texts(path, pair=False)
    assert (single.texts, single.pairs) == (["who?", "where?"], None)
    assert read_texts(path, pair=False, text_column="answer").texts == ["me", ""]


def test_numbers_and_missing_texts_of_json_lines_keep_their_rows(tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl"
    path.write_text('{"text": 12}\n{"text": null}\n{"text": "null"}\n{}\n')
    assert read_texts(path, pair=False).texts == ["12", "", "null", ""]


def test_what_is_no_text_is_named(tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl"
    path.write_text('{"text": ["a"]}\n{"text": "\\ud800"}\n')
    with pytest.raises(
        DataError, match=r"(?s)f.jsonl:1: text is not text but list.*:2: text holds half of a surrogate"
    ):
        read_texts(path, pair=False)


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="a folder; expected a file"):
        read_texts(tmp_path, pair=False)
    with pytest.raises(DataError, match="cannot be read: No such file"):
        read_texts(tmp_path / "no.txt", pair=False)
    with pytest.raises(DataError, match="cannot be read: No such file"):
        read_texts(tmp_path / "no.csv", pair=False)
    (tmp_path / "f.txt").write_text("\n \n")
    with pytest.raises(DataError, match="the file is empty"):
        read_texts(tmp_path / "f.txt", pair=False)
    (tmp_path / "g.txt").write_text("a\n")
    with pytest.raises(DataError, match="the model takes pairs of texts: give a file with two columns"):
        read_texts(tmp_path / "g.txt", pair=True)
