"""CSV and TSV text → columns, strictly: every cell as written, every fault with its line."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from encoder.wording import counted

_LONE_CARRIAGE_RETURN = re.compile(r"\r(?!\n)")
OTHER_DELIMITERS = ("\t", ";", ",", "|")


@dataclass(frozen=True)
class Delimited:
    """The cells of a file by column, and the line on which each row begins."""

    columns: dict[str, list[str]]
    lines: list[int]
    notes: tuple[str, ...] = ()


@dataclass
class _Records:
    """What one pass over the lines found: rows (header first), their lines, and faults."""

    rows: list[list[str]] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    blank: int = 0
    faults: list[str] = field(default_factory=list)


def parse_delimited(text: str, *, name: str, delimiter: str, problems: list[str]) -> Delimited | None:
    """Columns of ``text``, whose first row is the header; faults are added to ``problems``, giving ``None``.

    Cells in double quotes may hold delimiters, line ends and (doubled) quotes. A TSV that is sound only
    if quotes are plain characters, as those of GLUE are, is read that way and a note says so. A column
    without a name, such as the index that pandas writes, is left out.
    """
    text, stand_in = _hide_carriage_returns(text)
    # newline="" keeps the line ends inside cells as they are.
    lines = list(io.StringIO(text, newline=""))
    notes: list[str] = []
    records = _read_records(lines, name, delimiter, quotes=True)
    if delimiter == "\t" and '"' in text:
        plain = _read_records(lines, name, delimiter, quotes=False)
        if not plain.faults and (records.faults or len(plain.rows) != len(records.rows)):
            records = plain
            notes.append(f"{name}: quotes are read as characters of the text, every line being one row")
    if not records.rows:
        problems.extend(records.faults or [f"{name}: the file is empty"])
        return None
    header = [cell.strip() for cell in records.rows[0]]
    faults = header_faults(header, name, delimiter) or records.faults
    if not faults and len(records.rows) == 1:
        faults = [f"{name}: a header ({', '.join(header)}) without rows"]
    if faults:
        problems.extend(faults)
        return None
    if records.blank:
        notes.append(f"{name}: {counted(records.blank, 'blank line')} skipped")
    cells = zip(*records.rows[1:], strict=True)
    columns = {column: list(values) for column, values in zip(header, cells, strict=True) if column}
    if stand_in:
        columns = {
            column: [cell.replace(stand_in, "\r") for cell in values] for column, values in columns.items()
        }
    return Delimited(columns, records.starts[1:], tuple(notes))


def _hide_carriage_returns(text: str) -> tuple[str, str]:
    """``text`` with a stand-in for each "\\r" that ends no line, and the stand-in ("" if there are none).

    Where lines end in "\\n", as the first does, a lone "\\r" belongs to a cell; writers leave it unquoted,
    and ``csv`` would end the row there.
    """
    end = re.search(r"\r\n|\r|\n", text)
    if end is None or end[0] == "\r" or not _LONE_CARRIAGE_RETURN.search(text):
        return text, ""
    stand_in = next(letter for letter in map(chr, range(0xE000, 0xF8FF)) if letter not in text)
    return _LONE_CARRIAGE_RETURN.sub(stand_in, text), stand_in


def header_faults(header: Sequence[str], name: str, delimiter: str) -> list[str]:
    """What is wrong with the names of columns, spaces around them taken off."""
    repeated = [column for column, count in Counter(header).items() if column and count > 1]
    if repeated:
        return [f"{name}:1: the header names {', '.join(map(repr, repeated))} more than once"]
    if not any(header):
        return [f"{name}:1: the header names no column"]
    if len(header) == 1:
        for mark in OTHER_DELIMITERS:
            if mark != delimiter and mark in header[0]:
                todo = "name the file .tsv" if mark == "\t" else f"separate the cells with {delimiter!r}"
                return [f"{name}:1: the header is one cell, {header[0]!r}, that holds {mark!r}: {todo}"]
    return []


def _read_records(lines: Sequence[str], name: str, delimiter: str, *, quotes: bool) -> _Records:
    """All rows of one width; others, and cells with unsound quotes, are faults."""
    records = _Records()
    width = 0
    with _cells_of_any_length():
        reader = csv.reader(
            iter(lines),
            delimiter=delimiter,
            strict=True,
            quoting=csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE,
        )
        while True:
            start = reader.line_num + 1
            try:
                row = next(reader)
            except StopIteration:
                break
            except csv.Error:
                # The reader goes on with the next line.
                records.faults.append(_quote_fault(lines, start, reader.line_num, name, delimiter))
                continue
            if _is_blank(row, width):
                records.blank += 1
                continue
            if not width:
                width = len(row)
            if len(row) != width:
                records.faults.append(_width_fault(row, records.rows, width, f"{name}:{start}", delimiter))
                continue
            records.rows.append(row)
            records.starts.append(start)
    return records


def sound_rows(lines: Iterable[str], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """The rows of ``lines`` one at a time, the header first, each with the line it begins on; blank ones
    without cells. ``lines`` keep their ends.

    Only of text that reads one way: ``ValueError`` at a fault, and where a quote or a carriage return may be
    a character of a cell. Then ``parse_delimited`` says what is what.
    """
    reader = csv.reader(_unmistakable(lines, delimiter), delimiter=delimiter, strict=True)
    width = 0
    while True:
        start = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise ValueError(str(error)) from error
        if _is_blank(row, width):
            yield start, []
            continue
        width = width or len(row)
        if len(row) != width:
            raise ValueError(f"{counted(len(row), 'cell')} on line {start} instead of {width}")
        yield start, row


def _unmistakable(lines: Iterable[str], delimiter: str) -> Iterator[str]:
    for line in lines:
        if line.endswith("\r") or "\0" in line or (delimiter == "\t" and '"' in line):
            raise ValueError("a character that may mean several things")
        yield line


def _is_blank(row: Sequence[str], width: int) -> bool:
    """Whether a row is none, in a file with ``width`` cells in a row."""
    return not row or (len(row) == 1 and width > 1 and not row[0].strip())


def _width_fault(
    row: Sequence[str], rows: Sequence[Sequence[str]], width: int, where: str, delimiter: str
) -> str:
    header = ", ".join(rows[0]) if rows else ""
    found = f"{where}: {counted(len(row), 'cell')} where the header has {width} ({header})"
    if len(row) > width:
        what = "tab" if delimiter == "\t" else "comma"
        return f"{found}: a cell that holds a {what} must stand in double quotes"
    return f"{found}: cells are missing"


def _quote_fault(lines: Sequence[str], start: int, end: int, name: str, delimiter: str) -> str:
    """Where the quotes of the row on lines ``start`` to ``end`` (from 1) go wrong."""
    state, opened = "begin", (start, 1)
    for number in range(start, end + 1):
        line = lines[number - 1]
        for column, letter in enumerate(line, start=1):
            if state == "begin" and letter == '"':
                state, opened = "quoted", (number, column)
            elif state == "quoted":
                state = "closed" if letter == '"' else "quoted"
            elif state == "closed" and letter == '"':
                state = "quoted"
            elif letter == delimiter:
                state = "begin"
            elif state == "closed" and letter not in "\r\n":
                return (
                    f"{name}:{number}:{column}: text after the closing quote of the cell that begins at line "
                    f'{opened[0]}, column {opened[1]}: write a quote inside a quoted cell twice, ""'
                )
            elif state == "begin":
                state = "plain"
    return f"{name}:{opened[0]}:{opened[1]}: a quoted cell begins here and has no closing quote"


@contextmanager
def _cells_of_any_length() -> Iterator[None]:
    """``csv`` refuses cells above 128 KiB unless told otherwise, for the whole process."""
    before = csv.field_size_limit(2**31 - 1)
    try:
        yield
    finally:
        csv.field_size_limit(before)
