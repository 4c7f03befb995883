import csv
import io
import random

import pytest

from encoder.delimited import parse_delimited

NASTY = [
    "",
    " ",
    "a",
    "NA",
    "null",
    "1",
    "é",
    "한국",
    "😀",
    ",",
    "\t",
    ";",
    '"',
    '""',
    "\n",
    "\r\n",
    "\r",
    "\u2028",
    "'",
    "\\",
]


def parse(text: str, delimiter: str = ",") -> dict[str, list[str]]:
    problems: list[str] = []
    parsed = parse_delimited(text, name="f.csv", delimiter=delimiter, problems=problems)
    assert parsed is not None, problems
    assert not problems
    return parsed.columns


def faults(text: str, delimiter: str = ",") -> str:
    problems: list[str] = []
    assert parse_delimited(text, name="f.csv", delimiter=delimiter, problems=problems) is None
    return "\n".join(problems)


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("delimiter", [",", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_cells_written_by_csv_are_read_back_exactly(seed: int, delimiter: str, end: str) -> None:
    draw = random.Random(seed)
    rows = [
        ["".join(draw.choices(NASTY, k=draw.randrange(1, 6))) for _ in range(3)]
        for _ in range(draw.randrange(1, 9))
    ]
    for row in rows:
        row[2] = row[2].rstrip("\r")  # which csv leaves unquoted, so that it becomes part of the line's end
    rows[0][0] = 'tab\t, comma, "quote" and\nline'  # otherwise a TSV may be one that needs no quotes
    text = io.StringIO()
    quoting = draw.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
    writer = csv.writer(text, delimiter=delimiter, lineterminator=end, quoting=quoting)
    writer.writerows([["a", "b", "c"], *rows])
    columns = parse(text.getvalue(), delimiter)
    assert [list(row) for row in zip(columns["a"], columns["b"], columns["c"], strict=True)] == rows


def test_each_row_has_the_line_on_which_it_begins() -> None:
    text = 'text,label\n"one\ntwo",x\n\nthree,y\n"four\r\n\r\nfive",z\n'
    parsed = parse_delimited(text, name="f.csv", delimiter=",", problems=[])
    assert parsed is not None
    assert parsed.lines == [2, 5, 6]
    assert parsed.notes == ("f.csv: 1 blank line skipped",)


def test_a_cell_of_a_megabyte_is_read_and_the_limit_of_csv_is_as_before() -> None:
    before = csv.field_size_limit()
    assert parse(f"text,label\n{'x' * 2**20},a\n")["text"] == ["x" * 2**20]
    assert csv.field_size_limit() == before


def test_a_column_without_a_name_is_left_out() -> None:
    assert list(parse(",text,label\n0,a,x\n1,b,y\n")) == ["text", "label"]


def test_spaces_around_header_names_are_ignored() -> None:
    assert list(parse("text , label\na,x\n")) == ["text", "label"]


def test_lone_quotes_in_a_tsv_are_characters() -> None:
    text = 'text\tlabel\n"Stop" he said\tx\n"open\ty\nplain\tx\n'
    parsed = parse_delimited(text, name="f.tsv", delimiter="\t", problems=[])
    assert parsed is not None
    assert parsed.columns["text"] == ['"Stop" he said', '"open', "plain"]
    assert "quotes are read as characters" in parsed.notes[0]


def test_quotes_that_would_swallow_rows_of_a_tsv_are_characters() -> None:
    assert parse('text\tlabel\n"a\tx\nb\ty\nc"\tx\n'.replace('c"', '"c'), "\t")["text"] == ['"a', "b", '"c']


def test_all_ragged_rows_are_named_with_their_lines() -> None:
    found = faults("text,label\na,b,c\nfine,x\nlonely\n")
    assert "f.csv:2: 3 cells where the header has 2 (text, label): a cell that holds a comma" in found
    assert "f.csv:4: 1 cell where the header has 2 (text, label): cells are missing" in found


def test_text_after_a_closing_quote_is_named_with_line_and_column() -> None:
    found = faults('text,label\nfine,x\n"one\n"two" three,x\n"a"b,y\n')
    assert "f.csv:4:2: text after the closing quote of the cell that begins at line 3, column 1" in found
    assert "f.csv:5:4: text after the closing quote of the cell that begins at line 5, column 1" in found


def test_a_quote_that_is_never_closed_is_named_where_it_opens() -> None:
    assert "f.csv:3:3: a quoted cell begins here" in faults('text,label\nfine,x\na,"y\nb,x\n')


def test_doubled_header_names_are_refused() -> None:
    assert "f.csv:1: the header names 'text' more than once" in faults("text,label,text\na,b,c\n")


@pytest.mark.parametrize(
    ("mark", "todo"), [(";", "separate the cells with ','"), ("\t", "name the file .tsv")]
)
def test_another_delimiter_is_recognised_and_named(mark: str, todo: str) -> None:
    found = faults(f"text{mark}label\na, b{mark}x\n")
    assert "f.csv:1: the header is one cell" in found
    assert todo in found


def test_a_header_without_rows_is_refused() -> None:
    assert faults("text,label\n\n") == "f.csv: a header (text, label) without rows"


def test_rows_may_end_in_carriage_returns_as_on_old_macs() -> None:
    assert parse('text,label\r"a\nb",x\rc,y\r') == {"text": ["a\nb", "c"], "label": ["x", "y"]}
