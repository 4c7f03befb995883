"""Label names → numbers: one spelling a label, one order, the same in every split.

A split never adds a label: what train (or the trained model) does not know is an error with its line.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from encoder.cells import SplitCells
from encoder.errors import DataError, did_you_mean
from encoder.labels import WHOLE_AS_FLOAT, LabelReading, list_labels, parse_number, short
from encoder.splits import Label

Variants = Literal["refuse", "merge", "keep"]
VARIANTS_HINT = (
    "labels that differ only in case, spaces or invisible letters: mend them, or take each for its commonest "
    "spelling with --label-variants merge (or keep, if they are different labels):"
)
_WHOLE = re.compile(r"[+-]?[0-9]+", re.ASCII)


@dataclass(frozen=True)
class EncodedLabels:
    """Label names in the order of the logits (none for regression), and each split's labels as numbers."""

    names: tuple[str, ...]
    labels: Mapping[str, list[Label]]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Spellings:
    """Every spelling that occurs: ``accepted`` with the name it goes by, ``refused`` with the one meant."""

    accepted: Mapping[str, str]
    refused: Mapping[str, str]
    notes: tuple[str, ...] = ()


def encode_labels(
    splits: Mapping[str, SplitCells],
    reading: LabelReading,
    *,
    known: Sequence[str] | None = None,
    declared: Sequence[str] = (),
    variants: Variants = "refuse",
) -> EncodedLabels:
    """Number the labels of all splits.

    Names are ``known`` (a trained model's), else ``declared`` (a ``ClassLabel``'s), else those of train.
    Raises ``DataError`` with every row that has an unsound or unknown label, or a variant spelling of one.
    """
    problems: list[str] = []
    if reading.kind == "regression":
        numbers = {split: _numbers(cells, problems) for split, cells in splits.items()}
        if problems:
            raise DataError.from_problems(problems)
        return EncodedLabels((), numbers)
    rows = {split: _names(cells, reading, problems) for split, cells in splits.items()}
    counts = {split: Counter(name for names in found for name in names) for split, found in rows.items()}
    fixed = list(declared if known is None else known)
    spellings = settle_spellings(counts, fixed, variants)
    names = fixed or sort_names(
        {spellings.accepted[name] for name in counts["train"] if name in spellings.accepted}
    )
    whose = "of the model" if known is not None else "of train" if len(splits) > 1 else "in use"
    index = {name: number for number, name in enumerate(names)}
    refused = unknown = False
    labels: dict[str, list[Label]] = {}
    for split, found in rows.items():
        labels[split] = []
        for number, row in enumerate(found):
            for name in row:
                if spellings.accepted.get(name) not in index:
                    meant = spellings.refused.get(name)
                    refused |= meant is not None
                    unknown = True
                    fault = unknown_label(name, names, whose, meant)
                    problems.append(f"{splits[split].where(number)}: {fault}")
            numbered = sorted(
                {index[spellings.accepted[name]] for name in row if spellings.accepted.get(name) in index}
            )
            labels[split].append(tuple(numbered) if reading.kind == "multi_label" else sum(numbered))
    if problems:
        error = DataError.from_problems(problems, title=VARIANTS_HINT if refused else "")
        raise DataError(f"{error}\nthe labels {whose}: {list_labels(names)}") if unknown else error
    return EncodedLabels(tuple(names), labels, spellings.notes)


def settle_spellings(
    counts: Mapping[str, Counter[str]], fixed: Sequence[str], variants: Variants
) -> Spellings:
    """Which spellings go by which name, given how often each occurs in each split.

    The name is the one in ``fixed``, else the commonest spelling in train, else anywhere, stripped of spaces
    around it. A spelling that differs from a name that also occurs is refused (or merged, or kept apart).
    Whole numbers with a decimal point ("1.0") go by the whole number.
    """
    occurring = {name for counter in counts.values() for name in counter}
    total: Counter[str] = Counter()
    for split, counter in counts.items():
        for name, count in counter.items():
            total[name] += count * (10**9 if split == "train" else 1)
    notes: list[str] = []
    numbers = all(WHOLE_AS_FLOAT.fullmatch(name.strip()) for name in occurring)
    accepted: dict[str, str] = {}
    refused: dict[str, str] = {}
    groups: dict[str, list[str]] = {}
    for name in sorted(occurring | set(fixed)):
        if name in fixed or variants == "keep":
            accepted[name] = name
        whole = whole_number_name(name) if numbers else name
        if name not in accepted and whole != name and _consistent(whole, occurring):
            accepted[name] = whole
        groups.setdefault(fold(whole), []).append(name)
    pointed = [name for name in accepted if accepted[name] != name]
    if pointed:
        notes.append(f"labels such as {pointed[0]!r} are read as whole numbers ({accepted[pointed[0]]!r})")
    for group in groups.values():
        exact = [name for name in group if name in fixed]
        best = exact[0] if exact else min(group, key=lambda name: (-total[name], name)).strip()
        for name in group:
            if name in accepted:
                continue
            rivals = best in occurring or best in fixed
            if name == best or not rivals:
                accepted[name] = best
                if name != best:
                    notes.append(f"label {short(name)} is read as {best!r}")
            elif variants == "merge":
                accepted[name] = best
                rows = _rows(counts, name)
                notes.append(
                    f"label {short(name)} ({rows} row{'s' if rows > 1 else ''}) is taken for {best!r}"
                )
            else:
                refused[name] = best
    return Spellings(accepted, refused, tuple(notes))


def whole_number_name(name: str) -> str:
    """``"3"`` for ``"3.0"``, as a float column makes of it; other names as they are."""
    stripped = name.strip()
    return (
        str(int(stripped.split(".")[0])) if "." in stripped and WHOLE_AS_FLOAT.fullmatch(stripped) else name
    )


def sort_names(names: Iterable[str]) -> list[str]:
    """Label names in the order of the logits: whole numbers by value (2 before 10), others as text."""
    names = list(names)
    if all(_WHOLE.fullmatch(name) for name in names):
        return sorted(names, key=lambda name: (int(name), name))
    return sorted(names)


def fold(name: str) -> str:
    """What spellings of one label have in common: case, spacing, invisible letters and Unicode form aside."""
    visible = "".join(letter for letter in name if unicodedata.category(letter) != "Cf")
    folded = " ".join(unicodedata.normalize("NFC", visible).split()).casefold()
    return str(int(folded)) if _WHOLE.fullmatch(folded) else folded


def unknown_label(name: str, names: Sequence[str], whose: str, meant: str | None = None) -> str:
    """``label 'pos ' is none of the labels of train; did you mean 'pos'?``"""
    hint = did_you_mean(name, names) if meant is None else f"; did you mean {meant!r}?"
    return f"label {short(name)} is none of the labels {whose}{hint}"


def _names(cells: SplitCells, reading: LabelReading, problems: list[str]) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for number, cell in enumerate(cells.labels):
        try:
            found.append(reading.names(cell))
        except ValueError as error:
            problems.append(f"{cells.where(number)}: {error}")
            found.append(())
    return found


def _numbers(cells: SplitCells, problems: list[str]) -> list[Label]:
    found: list[Label] = []
    for number, cell in enumerate(cells.labels):
        try:
            found.append(parse_number(cell if isinstance(cell, str) else ", ".join(cell)))
        except ValueError as error:
            problems.append(f"{cells.where(number)}: {error}")
    return found


def _consistent(whole: str, occurring: set[str]) -> bool:
    """Whether no other spelling of the number ``whole``, such as "01", is among the labels."""
    return not any(fold(name) == fold(whole) and name != whole and "." not in name for name in occurring)


def _rows(counts: Mapping[str, Counter[str]], name: str) -> int:
    return sum(counter[name] for counter in counts.values())
