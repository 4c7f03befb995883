"""Texts without labels, for prediction: every row is kept, so that answers stand beside their questions."""

from dataclasses import dataclass
from pathlib import Path

from encoder.cells import read_text_cells
from encoder.columns import choose_columns
from encoder.errors import DataError
from encoder.reading import FORMATS, Table, decode, read_file


@dataclass(frozen=True)
class TextRows:
    """R texts (and second texts, for pairs)."""

    texts: list[str]
    pairs: list[str] | None
    notes: tuple[str, ...] = ()


def read_texts(
    path: Path,
    *,
    pair: bool,
    text_column: str | None = None,
    text_pair_column: str | None = None,
    encoding: str | None = None,
) -> TextRows:
    """As ``read_text_table``. Empty texts stay, and a note counts them."""
    table, texts, pairs = read_text_table(
        path, pair=pair, text_column=text_column, text_pair_column=text_pair_column, encoding=encoding
    )
    empty = [row for row, text in enumerate(texts) if not text.strip()]
    notes = table.notes
    if empty:
        notes += (
            f"{table.name}: {len(empty)} of {len(texts)} texts are empty (first: {table.where(empty[0])})",
        )
    return TextRows(texts, pairs, notes)


def read_text_table(
    path: Path,
    *,
    pair: bool,
    text_column: str | None = None,
    text_pair_column: str | None = None,
    encoding: str | None = None,
) -> tuple[Table, list[str], list[str] | None]:
    """The texts in a .txt file (one a line), or in the text columns of a CSV, TSV, JSONL or Parquet file.

    ``pair``: whether the model takes pairs, which a .txt file cannot hold. Raises ``DataError`` with all that
    is wrong with the file.
    """
    problems: list[str] = []
    if path.is_dir():
        raise DataError(f"{path}: a folder; expected a file (.txt, {', '.join(FORMATS)})")
    if path.suffix.lower() == ".txt":
        table = _read_lines(path, encoding, problems)
    else:
        table = read_file(path, encoding=encoding, problems=problems)
    if table is None or problems:
        raise DataError.from_problems(problems)
    if pair and path.suffix.lower() == ".txt":
        raise DataError(f"{path}: the model takes pairs of texts: give a file with two columns, such as .csv")
    columns = choose_columns(
        list(table.columns),
        where=table.name,
        text=text_column,
        text_pair=text_pair_column,
        need_label=False,
        pair=pair,
    )
    texts = read_text_cells(table, columns.text, problems)
    pairs = None if columns.text_pair is None else read_text_cells(table, columns.text_pair, problems)
    if problems:
        raise DataError.from_problems(problems)
    return table, texts, pairs


def _read_lines(path: Path, encoding: str | None, problems: list[str]) -> Table | None:
    try:
        content = path.read_bytes()
    except OSError as error:
        problems.append(f"{path}: cannot be read: {error.strerror or error}")
        return None
    text = decode(content, name=str(path), encoding=encoding, problems=problems)
    if text is None:
        return None
    lines = [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]
    if not any(line.strip() for line in lines):
        problems.append(f"{path}: the file is empty")
        return None
    return Table(str(path), {"text": lines}, range(1, len(lines) + 1))
