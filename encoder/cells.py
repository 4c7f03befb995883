"""Tables → rows of text and label cells; every row that is left out is counted with its reason and place."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat

from encoder.columns import Columns
from encoder.data_report import Dropped
from encoder.labels import tidy_cell
from encoder.reading import Table, is_missing

EXAMPLES = 5


@dataclass(frozen=True)
class SplitCells:
    """The R usable rows of a table. ``rows`` are their numbers in it; ``labels`` are tidied cells."""

    table: Table
    rows: Sequence[int]
    texts: list[str]
    pairs: list[str] | None
    labels: list[str | tuple[str, ...]]
    dropped: tuple[Dropped, ...] = ()

    def where(self, number: int) -> str:
        """The place of usable row ``number``."""
        return self.table.where(self.rows[number])


def usable_cells(table: Table, columns: Columns, problems: list[str]) -> SplitCells:
    """The rows of ``table`` that have a text (both of a pair) and a label.

    Cells that cannot be a text or a label are added to ``problems``, and so is it when more than half of the
    rows have an empty one.
    """
    assert columns.label is not None
    texts = read_text_cells(table, columns.text, problems)
    pairs = None if columns.text_pair is None else read_text_cells(table, columns.text_pair, problems)
    reasons: dict[str, list[int]] = {}
    rows: list[int] = []
    labels: list[str | tuple[str, ...]] = []
    class_names = table.class_names.get(columns.label)
    for row, value in enumerate(table.columns[columns.label]):
        try:
            label = tidy_cell(value, class_names)
        except ValueError as error:
            problems.append(f"{table.where(row)}: {error}")
            continue
        if not texts[row].strip():
            reasons.setdefault(f"empty {columns.text}", []).append(row)
        elif pairs is not None and not pairs[row].strip():
            reasons.setdefault(f"empty {columns.text_pair}", []).append(row)
        elif label is None:
            reasons.setdefault(f"empty {columns.label}", []).append(row)
        else:
            rows.append(row)
            labels.append(label)
    dropped = tuple(
        Dropped(reason, len(found), tuple(table.where(row) for row in found[:EXAMPLES]))
        for reason, found in reasons.items()
    )
    problems.extend(
        f"{table.name}: {drop.rows} of {len(table)} rows have an {drop.reason} (first: "
        f"{', '.join(drop.examples)}): too many to leave out; mend the file or choose other columns"
        for drop in dropped
        if drop.rows > len(table) / 2
    )
    kept_pairs = None if pairs is None else [pairs[row] for row in rows]
    return SplitCells(table, rows, [texts[row] for row in rows], kept_pairs, labels, dropped)


def has_labels(table: Table, column: str, train: Table | None) -> bool:
    """Whether any cell of the label column holds a label; -1 is none, unless it is one in ``train``."""
    blank: tuple[object, ...] = ("-1", -1)
    if train is not None and column not in train.class_names and set(blank) & _scalars(train, column):
        blank = ()
    cells = table.columns.get(column, ())
    return any(
        not (is_missing(cell) or cell in blank or (isinstance(cell, str) and not cell.strip()))
        for cell in cells
    )


def _scalars(table: Table, column: str) -> set[object]:
    return {cell for cell in table.columns.get(column, ()) if isinstance(cell, (str, int))}


def read_text_cells(table: Table, column: str, problems: list[str]) -> list[str]:
    """The cells of ``column`` as text: missing ones empty, numbers as written; anything else is a problem."""
    texts = []
    for row, value in enumerate(_values(table, column)):
        if isinstance(value, str):
            texts.append(value)
            if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
                problems.append(
                    f"{table.where(row)}: {column} holds half of a surrogate pair, which is no character"
                )
        elif is_missing(value):
            texts.append("")
        elif isinstance(value, (dict, list, tuple, bytes)):
            problems.append(f"{table.where(row)}: {column} is not text but {type(value).__name__}")
            texts.append("")
        else:
            texts.append(str(value).lower() if isinstance(value, bool) else str(value))
    return texts


def _values(table: Table, column: str) -> Iterator[object]:
    names = table.class_names.get(column)
    for value in table.columns.get(column) or repeat(None, len(table)):
        yield (
            names[value]
            if names is not None and isinstance(value, int) and 0 <= value < len(names)
            else value
        )
