"""Texts of a file a piece at a time: lines and Parquet in bounded memory, as many as there are."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from encoder.cells import read_text_cells
from encoder.columns import choose_columns
from encoder.errors import DataError
from encoder.reading import Table, decode
from encoder.texts import read_text_table

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

    Of a .txt or a Parquet file only a piece is in memory at a time; CSV, TSV and JSON lines are read whole.

    Raises:
        DataError: the file cannot be read; where it is read in pieces, when a broken line is reached.
    """
    suffix = path.suffix.lower()
    wide = (encoding or "").lower().startswith(WIDE_ENCODINGS)
    if suffix == ".txt" and path.is_file() and not wide:
        return _stream_lines(path, encoding)
    if suffix == ".parquet" and path.is_file():
        return _stream_parquet(path, text_column)
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
            lines = enumerate(islice(file, first, None), first + 1)
            while piece := list(islice(lines, size)):
                yield [_decode_line(line, path, number, encoding) for number, line in piece]

    return TextStream(rows, pieces)


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
