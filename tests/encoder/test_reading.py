import json
import math
from pathlib import Path

import datasets
import pyarrow
import pyarrow.parquet
import pytest

from encoder.errors import ConfigError
from encoder.reading import Table, read_file, table_from_dataset

ENGLISH = "text,label\nfine,x\nA café – “good”,y\n"
KOREAN = "text,label\n정말 재미있는 영화,x\n별로였다,y\n"
CHINESE = "text,label\n这部电影非常好看,x\n浪费时间,y\n"
JAPANESE = "text,label\nとても面白い映画でした,x\n"


def read(path: Path, encoding: str | None = None) -> Table:
    problems: list[str] = []
    table = read_file(path, encoding=encoding, problems=problems)
    assert table is not None, problems
    return table


def faults(path: Path, encoding: str | None = None) -> str:
    problems: list[str] = []
    assert read_file(path, encoding=encoding, problems=problems) is None
    return "\n".join(problems)


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_utf8_is_read_with_and_without_a_byte_order_mark(tmp_path: Path, encoding: str) -> None:
    table = read(write(tmp_path, "f.csv", (ENGLISH + KOREAN[11:]).encode(encoding)))
    assert list(table.columns) == ["text", "label"]
    assert table.columns["text"] == ["fine", "A café – “good”", "정말 재미있는 영화", "별로였다"]
    assert table.where(1).endswith("f.csv:3")


@pytest.mark.parametrize(
    ("text", "encoding"),
    [(ENGLISH, "cp1252"), (KOREAN, "cp949"), (JAPANESE, "cp932"), (CHINESE, "gb18030"), (ENGLISH, "utf-16")],
)
def test_another_encoding_is_named_and_the_option_reads_it(tmp_path: Path, text: str, encoding: str) -> None:
    path = write(tmp_path, "f.csv", text.encode(encoding))
    assert f"--encoding {encoding} reads it" in faults(path)
    assert list(read(path, encoding).columns["text"]) == [
        line.rsplit(",", 1)[0] for line in text.splitlines()[1:]
    ]


def test_the_first_wrong_byte_is_named_with_offset_line_and_column(tmp_path: Path) -> None:
    path = write(tmp_path, "f.csv", ENGLISH.encode("cp1252"))
    assert "f.csv:3:6: not UTF-8: byte 0xe9 at offset 23; it looks like cp1252" in faults(path)


def test_a_workbook_named_csv_is_not_taken_for_an_encoding(tmp_path: Path) -> None:
    path = write(tmp_path, "f.csv", b"PK\x03\x04\x14\x00\x06\xff\xfe workbook, " * 9)
    assert "this looks like no text file" in faults(path)
    assert "--encoding" not in faults(path)


def test_a_wrong_encoding_option_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "f.csv", KOREAN)
    with pytest.raises(ConfigError, match=r"--encoding: 'cp94' is not the name .* did you mean 'cp949'\?"):
        read_file(path, encoding="cp94", problems=[])
    with pytest.raises(ConfigError, match="--encoding: 'base64' is not the name"):
        read_file(path, encoding="base64", problems=[])
    assert "not ascii: byte 0xec at offset 11" in faults(path, "ascii")


@pytest.mark.parametrize("name", ["f.csv", "f.tsv", "f.jsonl"])
def test_a_nul_character_is_named_with_its_place(tmp_path: Path, name: str) -> None:
    assert f"{name}:2:3: a NUL character (1 in all)" in faults(write(tmp_path, name, "text,label\na,\0\n"))


@pytest.mark.parametrize("name", ["f.csv", "f.tsv", "f.jsonl", "f.parquet"])
def test_an_empty_file_is_refused(tmp_path: Path, name: str) -> None:
    assert faults(write(tmp_path, name, "")).endswith("the file is empty")


def test_an_unknown_format_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    assert "the format '.xlsx' is not one of .csv, .tsv, .jsonl, .parquet" in faults(
        write(tmp_path, "f.xlsx", "x")
    )


def test_json_lines_keep_types_lines_and_separators_inside_strings(tmp_path: Path) -> None:
    rows = [{"text": "a\u2028b\u0085c\nd", "label": ["x"]}, {"label": 3, "more": None}]
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\r\n" for row in rows)
    table = read(write(tmp_path, "f.jsonl", "\ufeff" + lines.replace("\r\n", "\r\n\r\n", 1)))
    assert table.columns == {"text": ["a\u2028b\u0085c\nd", None], "label": [["x"], 3], "more": [None, None]}
    assert table.places == [1, 3]
    assert table.notes[0].endswith("1 blank line skipped")


def test_all_faulty_json_lines_are_named(tmp_path: Path) -> None:
    lines = ['{"text": "fine"}', '{"text": "a" "b"}', '["a"]', "3", '{"text": 1, "text": 2}', "[" * 10**5]
    found = faults(write(tmp_path, "f.jsonl", "\n".join(lines)))
    assert "f.jsonl:2:14: not valid JSON: Expecting ',' delimiter" in found
    assert 'f.jsonl:3: expected an object like {"text": …, "label": …}, found a list' in found
    assert "f.jsonl:4: expected an object" in found
    assert "f.jsonl:5: not valid JSON: the key 'text' occurs twice" in found
    assert "f.jsonl:6: not valid JSON" in found


def test_parquet_keeps_missing_cells_and_class_names(tmp_path: Path) -> None:
    features = datasets.Features(
        {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["neg", "pos"])}
    )
    dataset = datasets.Dataset.from_dict({"text": ["NA", None], "label": [1, 0]}, features=features)
    path = tmp_path / "f.parquet"
    pyarrow.parquet.write_table(dataset.data.table.replace_schema_metadata(_metadata(features)), path)
    table = read(path)
    assert table.columns == {"text": ["NA", None], "label": [1, 0]}
    assert table.class_names == {"label": ("neg", "pos")}
    assert table.where(0) == f"{path}: row 1"


def test_parquet_categories_are_text_and_nan_is_kept_as_missing(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    words = pyarrow.array(["b", "a", "b"]).dictionary_encode()
    pyarrow.parquet.write_table(pyarrow.table({"text": words, "label": [1.0, float("nan"), 2.0]}), path)
    table = read(path)
    assert table.columns["text"] == ["b", "a", "b"]
    assert math.isnan(table.columns["label"][1])


def test_a_damaged_parquet_file_is_refused(tmp_path: Path) -> None:
    assert "not a Parquet file that can be read" in faults(write(tmp_path, "f.parquet", "text,label\na,b\n"))


def test_a_dataset_of_lists_of_classes_keeps_their_names() -> None:
    names = datasets.ClassLabel(names=["a", "b"])
    features = datasets.Features({"text": datasets.Value("string"), "labels": datasets.Sequence(names)})
    dataset = datasets.Dataset.from_dict({"text": ["x", "y"], "labels": [[0, 1], []]}, features=features)
    table = table_from_dataset(dataset, "hub")
    assert table.columns == {"text": ["x", "y"], "labels": [[0, 1], []]}
    assert table.class_names == {"labels": ("a", "b")}


def _metadata(features: datasets.Features) -> dict[str, str]:
    return {"huggingface": json.dumps({"info": {"features": features.to_dict()}})}
