"""Claims about texts that are read a piece at a time."""

import json
import re

import pyarrow
import pyarrow.parquet
import pytest

from encoder import text_stream
from encoder.errors import DataError, EncError
from encoder.text_stream import stream_texts
from encoder.texts import read_text_table

TEXTS = ["one", "", 'three "quoted"', "vier ✨", "five"]


@pytest.fixture(params=["txt", "csv", "jsonl", "parquet"])
def path(request, tmp_path):
    file = tmp_path / f"texts.{request.param}"
    if request.param == "txt":
        file.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(TEXTS).encode())
    elif request.param == "csv":
        rows = (json.dumps(text, ensure_ascii=False).replace('\\"', '""') for text in TEXTS)
        file.write_text("text,id\n" + "".join(f"{row},1\n" for row in rows))
    elif request.param == "jsonl":
        file.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    else:
        pyarrow.parquet.write_table(pyarrow.table({"id": range(5), "text": TEXTS}), file, row_group_size=2)
    return file


@pytest.mark.parametrize("size", [1, 2, 3, 100])
@pytest.mark.parametrize("first", [0, 1, 3, 5])
def test_pieces_from_any_text_on_are_the_texts(path, size, first) -> None:
    found = stream_texts(path, text_column=None, encoding=None)
    assert found.num_rows == len(TEXTS)
    pieces = list(found.pieces(size, first))
    assert [text for piece in pieces for text in piece] == TEXTS[first:]
    assert all(0 < len(piece) <= size for piece in pieces)


@pytest.mark.parametrize("name", ["texts.csv", "texts.tsv"])
def test_sound_tables_are_read_in_pieces(tmp_path, monkeypatch, name) -> None:
    monkeypatch.setattr(text_stream, "read_text_table", lambda *_, **__: pytest.fail("read whole"))
    mark = "\t" if name.endswith("tsv") else ","
    rows = (
        ["id", "text "],
        ["1", "a\u00e4"],
        ["2", ""],
        ["3", '"two\r\nlines, ""quoted"""'],
        ["", ""],
        ["5", "b"],
    )
    if mark == "\t":
        rows = [row for row in rows if '"' not in row[1]]
    lines = [mark.join(row) for row in rows]
    lines.insert(2, "")
    (tmp_path / name).write_bytes("\r\n".join(["\ufeff" + lines[0], *lines[1:], ""]).encode())
    found = stream_texts(tmp_path / name, text_column=None, encoding=None)
    texts = ["aä", "", 'two\r\nlines, "quoted"', "", "b"] if mark == "," else ["aä", "", "", "b"]
    assert found.num_rows == len(texts)
    assert list(found.pieces(2, 1)) == [texts[at : at + 2] for at in range(1, len(texts), 2)]
    assert found.notes == (f"{tmp_path / name}: 1 blank line skipped",)


@pytest.mark.parametrize(
    ("name", "content", "encoding"),
    [
        ("a.csv", "text,b\nx\ry,1\n", None),
        ("a.csv", "text,b\n" + "long " * 40_000 + ",1\n", None),
        ("a.tsv", 'text\tb\n"x\t1\ny"\t2\n', None),
        ("a.csv", "text,b\nä,1\n", "latin-1"),
        ("a.csv", "text,b\nx\n", None),
        ("a.csv", 'text,b\n"x,1\n', None),
        ("a.csv", "text,text\nx,1\n", None),
        ("a.csv", "text;b\nx;1\n", None),
        ("a.csv", "text,b\n", None),
        ("a.csv", "text,b\nä,1\n", "utf-9"),
        ("a.csv", "text,b\nx\0,1\n", None),
    ],
)
def test_odd_and_faulty_tables_are_what_they_are_read_whole(tmp_path, name, content, encoding) -> None:
    (tmp_path / name).write_bytes(content.encode("latin-1" if encoding == "latin-1" else "utf-8"))
    options = {"text_column": None, "encoding": encoding}
    try:
        _, texts, _ = read_text_table(tmp_path / name, pair=False, **options)
    except EncError as error:
        with pytest.raises(type(error), match=re.escape(str(error))):
            stream_texts(tmp_path / name, **options)
    else:
        found = stream_texts(tmp_path / name, **options)
        assert [text for piece in found.pieces(1, 0) for text in piece] == texts


def test_lines_are_read_no_further_than_asked_for(tmp_path) -> None:
    (tmp_path / "texts.txt").write_bytes(b"good\n" * 3 + b"b\xe4d\n")
    pieces = stream_texts(tmp_path / "texts.txt", text_column=None, encoding=None).pieces(3, 0)
    assert next(pieces) == ["good"] * 3
    with pytest.raises(DataError, match=r"texts.txt:4:2: not UTF-8"):
        next(pieces)


def test_wide_encoding_is_read_whole(tmp_path) -> None:
    (tmp_path / "texts.txt").write_text("one\ntwo\n", encoding="utf-16")
    found = stream_texts(tmp_path / "texts.txt", text_column=None, encoding="utf-16")
    assert list(found.pieces(9, 0)) == [["one", "two"]]


def test_cell_that_is_no_text_is_named_by_its_row(tmp_path) -> None:
    table = pyarrow.table({"text": [["a"], ["b"]]})
    pyarrow.parquet.write_table(table, tmp_path / "texts.parquet")
    found = stream_texts(tmp_path / "texts.parquet", text_column=None, encoding=None)
    with pytest.raises(DataError, match=r"texts.parquet: row 2: text is not text but list"):
        list(found.pieces(5, 1))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"", "the file is empty"),
        ("a.parquet", b"nonsense", "not a Parquet file"),
        ("missing.txt", None, "cannot be read"),
    ],
)
def test_file_without_texts_is_refused(tmp_path, name, content, message) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        stream_texts(tmp_path / name, text_column=None, encoding=None)


def test_all_lines_that_are_no_rows_are_named_before_the_first_text(tmp_path) -> None:
    (tmp_path / "texts.jsonl").write_text('{"text": "a"}\n\n["b"]\n{"text": \n')
    with pytest.raises(
        DataError, match=r"(?s)texts.jsonl:3: expected an object.*texts.jsonl:4:\d+: not valid"
    ):
        stream_texts(tmp_path / "texts.jsonl", text_column=None, encoding=None)


def test_json_lines_are_streamed_over_blank_ones_and_wrong_cells_have_their_line(tmp_path) -> None:
    (tmp_path / "texts.jsonl").write_text('{"text": "a"}\n\n{"text": "b", "more": 1}\n{"text": [1]}\n')
    found = stream_texts(tmp_path / "texts.jsonl", text_column=None, encoding=None)
    pieces = found.pieces(1, 1)
    assert (found.num_rows, next(pieces)) == (3, ["b"])
    with pytest.raises(DataError, match=r"texts.jsonl:4: text is not text but list"):
        next(pieces)
