"""Label cells → the kind of task, label names and the numbers that training wants.

Nothing is guessed quietly: each inference comes with its reason, and a doubtful one is refused with the
option that settles it.
"""

import ast
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from encoder.errors import ConfigError, DataError
from encoder.task import TaskKind

# A label cell, tidied: text, a list of labels, or None where there is none.
Cell = str | tuple[str, ...] | None

# Labels that a message names; of more it tells the number.
SHOWN_LABELS = 10
SEPARATORS = ("|", ";", ",")
WHOLE_AS_FLOAT = re.compile(r"[+-]?[0-9]+(\.0*)?", re.ASCII)
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
_NOT_FINITE = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE)
_DECIMAL_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+", re.ASCII)


@dataclass(frozen=True)
class LabelReading:
    """How the label cells are to be understood, and ``why`` as a sentence for the report."""

    kind: TaskKind
    why: str
    separator: str | None = None
    bracketed: bool = False

    def names(self, cell: str | tuple[str, ...]) -> tuple[str, ...]:
        """The label names in one cell, in its order, each once. Raises ``ValueError`` for an unsound cell."""
        if isinstance(cell, str) and self.bracketed:
            cell = _parse_brackets(cell)
        if isinstance(cell, tuple):
            if self.kind == "single_label" and len(cell) != 1:
                raise ValueError(
                    f"{len(cell)} labels ({list_labels(cell)}), a single-label task has one a row"
                )
            if any(not name.strip() for name in cell):
                raise ValueError("an empty label name in the list")
            return tuple(dict.fromkeys(cell))
        if self.separator is None:
            return (cell,)
        parts = tuple(part.strip() for part in cell.split(self.separator))
        if not all(parts):
            raise ValueError(f"label {cell!r} has an empty name beside a {self.separator!r}")
        return tuple(dict.fromkeys(parts))


def tidy_cell(value: object, class_names: Sequence[str] | None = None) -> Cell:
    """A cell of any format as text or a tuple of texts; blank, ``None``, NaN and class -1 are ``None``.

    Integers of a ``ClassLabel`` become names. Raises ``ValueError`` for what cannot be a label.
    """
    if isinstance(value, str):
        return value if value.strip() else None
    if isinstance(value, (list, tuple)):
        names = [tidy_cell(item, class_names) for item in value]
        if any(not isinstance(name, str) for name in names):
            raise ValueError("a list of labels that holds an empty label or another list")
        return tuple(str(name) for name in names)
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, dict):
        raise ValueError("a label that is an object")
    if isinstance(value, bool):
        return str(value).lower()
    if class_names is not None and isinstance(value, int):
        if value == -1:
            return None
        if not 0 <= value < len(class_names):
            raise ValueError(f"label {value} is outside the {len(class_names)} names of its column")
        return class_names[value]
    return str(value)


def infer_reading(
    cells: Iterable[str | tuple[str, ...]],
    *,
    kind: TaskKind | None = None,
    separator: str | None = None,
    known: Collection[str] = (),
) -> LabelReading:
    """How to read label ``cells``; ``kind`` and ``separator`` are the user's word and override the evidence.

    ``known`` are names of labels, so a separator inside one of them separates nothing.

    Raises ``DataError`` when the cells can be read in two ways, ``ConfigError`` for options at odds.
    """
    if separator is not None and kind not in (None, "multi_label"):
        raise ConfigError(f"--label-separator {separator!r} needs --task multi_label, not {kind}")
    counts = Counter(cells)
    lists = {cell for cell in counts if isinstance(cell, tuple)}
    texts = {cell: count for cell, count in counts.items() if isinstance(cell, str)}
    if lists and texts:
        raise DataError(
            f"the label column mixes lists and single labels, such as {next(iter(texts))!r}: "
            "write all of them as lists"
        )
    if lists:
        return _read_lists(lists, counts, kind, separator)
    if texts and all(text.strip().startswith("[") and text.strip().endswith("]") for text in texts):
        return LabelReading(
            kind or "multi_label", f"{_given(kind)}each label cell is a list in brackets", bracketed=True
        )
    if separator is not None:
        return LabelReading(
            "multi_label", f"label names are separated by {separator!r} (--label-separator)", separator
        )
    if kind == "multi_label":
        return _read_forced_multi_label([text for text in texts if text not in known])
    if kind is not None:
        return LabelReading(kind, f"the task was given (--task {kind})")
    return _infer_from_texts(texts)


def _given(kind: TaskKind | None) -> str:
    return f"the task was given (--task {kind}); " if kind else ""


def _read_lists(
    lists: set[tuple[str, ...]],
    counts: Counter[str | tuple[str, ...]],
    kind: TaskKind | None,
    separator: str | None,
) -> LabelReading:
    if separator is not None:
        raise ConfigError(f"--label-separator {separator!r}: the labels are lists already")
    lengths = {len(cell) for cell in lists}
    indicator = {name for cell in lists for name in cell} <= {"0", "1", "0.0", "1.0", "true", "false"}
    if indicator and len(lengths) == 1 and max(lengths) > 1:
        raise DataError(
            f"each label is a list of {max(lengths)} zeros and ones: write the names of the labels that hold "
            'instead, such as ["joy", "surprise"]'
        )
    why = f"{_given(kind)}labels are lists"
    if lengths == {1} and kind is None:
        why += " (of one label each: --task single_label reads them so)"
    return LabelReading(kind or "multi_label", why)


def _read_forced_multi_label(texts: Sequence[str]) -> LabelReading:
    present = [mark for mark in SEPARATORS if any(mark in text for text in texts)]
    likely = [mark for mark in present if _joined(texts, mark) != "no"] or present
    if len(likely) > 1:
        raise DataError(
            f"labels hold {' and '.join(map(repr, likely))}: say with --label-separator which one "
            "stands between label names"
        )
    if likely:
        return LabelReading(
            "multi_label", f"{_given('multi_label')}label names are separated by {likely[0]!r}", likely[0]
        )
    return LabelReading(
        "multi_label", f"{_given('multi_label')}each cell is one label, no separator was found"
    )


def _infer_from_texts(texts: dict[str, int]) -> LabelReading:
    rows, distinct = sum(texts.values()), len(texts)
    numbers = {text for text in texts if _NUMBER.fullmatch(text.strip())}
    fractions = {text for text in numbers if not float(text).is_integer()}
    if fractions and sum(texts[text] for text in numbers) >= 0.9 * rows:
        return LabelReading("regression", f"labels are numbers with fractions, such as {min(fractions)}")
    # In a small file many different labels are no wonder.
    too_many = rows >= 20 and distinct > rows / 2
    others = [text for text in texts if text not in numbers]
    broken = too_many or all(_NOT_FINITE.fullmatch(text.strip()) for text in others)
    if fractions and broken and sum(texts[text] for text in numbers) > rows / 2:
        # What cannot be read as a number is told by its line, when all labels are read.
        return LabelReading("regression", f"most labels are numbers with fractions, such as {min(fractions)}")
    if distinct and all(WHOLE_AS_FLOAT.fullmatch(text.strip()) for text in texts):
        if too_many:
            raise DataError(
                f"{distinct} different whole numbers in {rows} rows, such as {min(texts)}: give "
                "--task regression if they measure something, --task single_label if each names a class"
            )
        why = f"labels are {distinct} different whole numbers"
        pointed = any("." in text for text in texts)
        if pointed:
            why += " (written with a decimal point)"
        if pointed or distinct > 20:
            why += "; if they measure something, --task regression"
        return LabelReading("single_label", why)
    commas = {text for text in texts if _DECIMAL_COMMA.fullmatch(text.strip())}
    if commas and commas | numbers == set(texts):
        raise DataError(
            f"labels such as {min(commas)!r} look like numbers with a decimal comma: write a point for "
            "regression, or give --task single_label or multi_label"
        )
    if texts and numbers == set(texts):
        raise DataError(
            f"labels such as {max(texts, key=len)!r} are whole numbers with an exponent: give "
            "--task regression if they measure something, --task single_label if each names a class"
        )
    notes = ""
    for mark in SEPARATORS:
        joined = _joined(texts, mark)
        if joined == "yes":
            example = next(text for text in texts if mark in text)
            return LabelReading(
                "multi_label", f"label cells join names with {mark!r}, such as {example!r}", mark
            )
        if joined == "unclear":
            example = next(text for text in texts if mark in text)
            raise DataError(
                f"labels such as {example!r} may be one name or several joined by {mark!r}: "
                f"give --task single_label, or --task multi_label --label-separator '{mark}'"
            )
        if any(mark in text for text in texts):
            notes = f"; {mark!r} is part of a name (otherwise: --label-separator '{mark}')"
    if too_many:
        raise DataError(
            f"{distinct} different labels in {rows} rows, such as {short(min(texts))}: this looks "
            "like no column of labels; choose another with --label-column, or insist with --task single_label"
        )
    return LabelReading("single_label", f"labels are {distinct} different names{notes}")


def _joined(texts: Iterable[str], mark: str) -> str:
    """Whether ``mark`` joins label names in ``texts``: "yes", "no" or "unclear".

    Joined names come back, alone or in other combinations ("a", "b", "a|b"); the parts of a name that
    merely holds the mark ("Q|A", "yes, please") mostly do not.
    """
    alone = {text.strip() for text in texts if mark not in text}
    combinations = [[part.strip() for part in text.split(mark)] for text in texts if mark in text]
    if not combinations:
        return "no"
    uses = Counter(part for parts in combinations for part in set(parts))
    known = [part for part in uses if part and (part in alone or uses[part] > 1)]
    share = len(known) / len(uses)
    seen_alone = any(part in alone for part in uses)
    if share >= 0.8 and seen_alone and "" not in uses:
        return "yes"
    return "unclear" if seen_alone or share >= 0.5 else "no"


def parse_number(text: str) -> float:
    """A regression label. Raises ``ValueError`` unless it is a finite number written plainly."""
    if not _NUMBER.fullmatch(text.strip()):
        raise ValueError(f"label {text!r} is not a number; a regression task needs one in each row")
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"label {text!r} is too large a number")
    return value


def short(name: str) -> str:
    """A label as an error shows it."""
    return repr(name if len(name) <= 60 else name[:60] + "…")


def list_labels(names: Sequence[str]) -> str:
    """Labels as a message shows them: each in quotes, as a name may hold a comma, and the first ten."""
    more = f", … ({len(names):,} in all)" if len(names) > SHOWN_LABELS else ""
    return ", ".join(map(short, names[:SHOWN_LABELS])) + more


def _parse_brackets(cell: str) -> tuple[str, ...]:
    readers: tuple[Callable[[str], object], ...] = (json.loads, ast.literal_eval)
    for read in readers:
        try:
            names = tidy_cell(read(cell.strip()))
        except (ValueError, SyntaxError):
            continue
        if isinstance(names, tuple):
            return names
    raise ValueError(f'label {short(cell)} is not a list such as ["joy", "surprise"]')
