"""Texts of a file a piece at a time: in bounded memory, however many."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from encoder.cells import read_text_cells
from encoder.columns import choose_columns
from encoder.delimited import header_faults, sound_rows
from encoder.errors import DataError
from encoder.reading import Table, decode, read_json_lines
from encoder.texts import read_text_table
from encoder.wording import counted

T = TypeVar("T")

DELIMITERS = {".csv": ",", ".tsv": "\t"}
# In these a line feed is not one byte, so that lines cannot be told apart before they are decoded.
WIDE_ENCODINGS = ("utf-16", "utf-32", "utf_16", "utf_32")


@dataclass(frozen=True)
class TextStream:
    """``num_rows`` texts of a file. ``pieces`` reads them anew at every call: ``pieces(size, first)``."""

    num_rows: int
    pieces: Callable[[int, int], Iterator[list[str]]]
    notes: tuple[str, ...] = ()


def stream_texts(path: Path, *, text_column: str | None, encoding: str | None) -> TextStream:
    """The texts of ``path``, as ``texts.read_text_table`` finds them; an empty one is a text too.

    Only a piece is in memory at a time. Read whole are encodings in which a line feed is not one byte, and
    CSV and TSV with a fault or an oddity (see ``delimited.sound_rows``).

    Raises:
        DataError: the file cannot be read; where it is read in pieces, when a broken line is reached.
    """
    suffix = path.suffix.lower()
    wide = (encoding or "").lower().startswith(WIDE_ENCODINGS)
    if suffix == ".txt" and path.is_file() and not wide:
        return _stream_lines(path, encoding)
    if suffix == ".jsonl" and path.is_file() and not wide:
        return _stream_json_lines(path, text_column, encoding)
    if suffix == ".parquet" and path.is_file():
        return _stream_parquet(path, text_column)
    if suffix in DELIMITERS and path.is_file() and not wide:
        stream = _stream_delimited(path, text_column, encoding)
        if stream is not None:
            return stream
    table, texts, _ = read_text_table(path, pair=False, text_column=text_column, encoding=encoding)
    return TextStream(
        len(texts),
        lambda size, first: (texts[at : at + size] for at in range(first, len(texts), size)),
        table.notes,
    )


def _stream_lines(path: Path, encoding: str | None) -> TextStream:
    try:
        rows = _count_lines(path)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error
    if not rows:
        raise DataError(f"{path}: the file is empty")

    def pieces(size: int, first: int) -> Iterator[list[str]]:
        with path.open("rb") as file:
            yield from _in_pieces(islice(_decoded(file, path, encoding), first, None), size)

    return TextStream(rows, pieces)


def _stream_json_lines(path: Path, text_column: str | None, encoding: str | None) -> TextStream:
    """A first reading finds the columns and all that is no row, a later one the texts."""
    problems: list[str] = []

    def rows(file: BinaryIO) -> Iterator[tuple[int, dict[str, Any]]]:
        return read_json_lines(_decoded(file, path, encoding), name=str(path), problems=problems)

    names: dict[str, None] = {}
    count = 0
    try:
        with path.open("rb") as file:
            for _, row in rows(file):
                count += 1
                names.update(dict.fromkeys(row))
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error
    if problems or not count:
        raise DataError.from_problems(problems or [f"{path}: the file has no rows"])
    column = choose_columns(list(names), where=str(path), text=text_column, need_label=False, pair=False).text

    def pieces(size: int, first: int) -> Iterator[list[str]]:
        with path.open("rb") as file:
            cells = ((line, row.get(column)) for line, row in islice(rows(file), first, None))
            yield from (_as_texts(path, column, piece, problems) for piece in _in_pieces(cells, size))

    return TextStream(count, pieces)


def _stream_delimited(path: Path, text_column: str | None, encoding: str | None) -> TextStream | None:
    """A first reading finds the columns and counts the rows; ``None`` where the file has to be read whole."""
    delimiter = DELIMITERS[path.suffix.lower()]

    def rows() -> Iterator[tuple[int, list[str]]]:
        with path.open(encoding=encoding or "utf-8", newline="") as file:
            lines = (line if number else line.removeprefix("\ufeff") for number, line in enumerate(file))
            yield from sound_rows(lines, delimiter)

    header, count, blank = list[str](), 0, 0
    try:
        for _, row in rows():
            if not header:
                header = [cell.strip() for cell in row]
            elif row:
                count += 1
            blank += not row
    except (OSError, ValueError, LookupError):
        return None
    if not count or header_faults(header, str(path), delimiter):
        return None
    names = [name for name in header if name]
    column = choose_columns(names, where=str(path), text=text_column, need_label=False, pair=False).text
    place = header.index(column)

    def pieces(size: int, first: int) -> Iterator[list[str]]:
        below = islice(filter(itemgetter(1), rows()), 1 + first, None)  # the header, without blank rows
        cells = ((line, row[place]) for line, row in below)
        yield from (_as_texts(path, column, piece, []) for piece in _in_pieces(cells, size))

    return TextStream(count, pieces, (f"{path}: {counted(blank, 'blank line')} skipped",) if blank else ())


def _as_texts(path: Path, column: str, piece: list[tuple[int, Any]], problems: list[str]) -> list[str]:
    """The cells of a ``piece``, each with its line, as texts; ``problems`` are what was found before."""
    table = Table(str(path), {column: [cell for _, cell in piece]}, [line for line, _ in piece])
    texts = read_text_cells(table, column, problems)
    if problems:
        raise DataError.from_problems(problems)
    return texts


def _in_pieces(items: Iterator[T], size: int) -> Iterator[list[T]]:
    while piece := list(islice(items, size)):
        yield piece


def _decoded(file: BinaryIO, path: Path, encoding: str | None) -> Iterator[str]:
    """The lines of ``file`` without their ends; one that does not fit ``encoding`` ends it."""
    return (_decode_line(line, path, number, encoding) for number, line in enumerate(file, start=1))


def _count_lines(path: Path) -> int:
    lines, last = 0, b"\n"
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            lines, last = lines + block.count(b"\n"), block[-1:]
    return lines + (last != b"\n")


def _decode_line(line: bytes, path: Path, number: int, encoding: str | None) -> str:
    problems: list[str] = []
    text = decode(line, name=str(path), encoding=encoding, problems=problems)
    if text is None:
        # decode counts lines within what it is given, which is this line alone
        raise DataError.from_problems([p.replace(f"{path}:1:", f"{path}:{number}:", 1) for p in problems])
    return text.removesuffix("\n").removesuffix("\r")


def _stream_parquet(path: Path, text_column: str | None) -> TextStream:
    import pyarrow
    import pyarrow.parquet

    try:
        file: Any = pyarrow.parquet.ParquetFile(path)
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(
            f"{path}: not a Parquet file that can be read: {str(error).splitlines()[0]}"
        ) from error
    with file:
        names, rows = list(file.schema_arrow.names), file.metadata.num_rows
    if not rows:
        raise DataError(f"{path}: the file has no rows")
    column = choose_columns(names, where=str(path), text=text_column, need_label=False, pair=False).text

    def pieces(size: int, first: int) -> Iterator[list[str]]:
        done = 0
        with pyarrow.parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=size, columns=[column]):
                skip = min(len(batch), max(0, first - done))
                cells = batch.column(0).to_pylist()[skip:]
                places = [f" row {number}" for number in range(done + skip + 1, done + len(batch) + 1)]
                done += len(batch)
                problems: list[str] = []
                table = Table(str(path), {column: cells}, places)
                texts = read_text_cells(table, column, problems)
                if problems:
                    raise DataError.from_problems(problems)
                if texts:
                    yield texts

    return TextStream(rows, pieces)
