"""``read_data``: a source of any kind → splits of texts and labels, the task, a report of what was read."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from encoder.cells import SplitCells, has_labels, usable_cells
from encoder.columns import Columns, choose_columns
from encoder.config import Strict
from encoder.data_report import DataReport, LabelRange, Overlap, SplitReport
from encoder.errors import ConfigError, DataError
from encoder.label_names import EncodedLabels, Variants, encode_labels
from encoder.labels import LabelReading, infer_reading, list_labels
from encoder.reading import Table
from encoder.sources import SPLITS, read_source
from encoder.splits import Rows, cut_rows, fingerprint, first_by_hash, label_strata, overlap, repeats
from encoder.task import Task, TaskKind, in_words
from encoder.wording import counted

# A score on fewer rows than these is hardly one.
FEW_ROWS = 30


class DataOptions(Strict):
    """How to read data; what is ``None`` is found out.

    ``validation_fraction`` of train is cut off when there is no validation split.
    ``train_rows`` keeps only so many training rows, the first by content hash. ``label_variants`` says what
    becomes of spellings of one label that differ in case or spaces.
    """

    text_column: str | None = None
    text_pair_column: str | None = None
    label_column: str | None = None
    label_separator: str | None = Field(default=None, min_length=1)
    label_variants: Variants = "refuse"
    task: TaskKind | None = None
    encoding: str | None = None
    validation_fraction: float = Field(default=0.1, gt=0, lt=1)
    train_rows: int | None = Field(default=None, ge=1)


@dataclass(frozen=True)
class TaskData:
    """Data ready to be tokenized.

    ``splits`` holds those of train, validation and test that there are, as ``datasets.Dataset`` with the
    columns text[, text_pair] and label: a class index, a list of them (multi-label) or a float (regression).
    ``fingerprint`` is the sha256 of all of it. ``validation_fraction`` of the training rows were cut off;
    ``None`` where there was a validation split, or no training rows.
    """

    splits: Mapping[str, Any]
    task: Task
    report: DataReport
    fingerprint: str
    source: str
    validation_fraction: float | None = None

    def texts(self, split: str) -> list[str]:
        """The texts of ``split``, R of them."""
        return list(self.splits[split]["text"])

    def pairs(self, split: str) -> list[str] | None:
        """The second texts of ``split``, or ``None`` when the task takes single texts."""
        return list(self.splits[split]["text_pair"]) if self.task.pair else None

    def labels(self, split: str) -> NDArray[np.generic]:
        """Labels as in ``TokenizedRows``: int64 [R], float32 [R, C] for multi-label or [R] for regression."""
        values = list(self.splits[split]["label"])
        if self.task.kind == "single_label":
            return np.asarray(values, dtype=np.int64)
        if self.task.kind == "regression":
            return np.asarray(values, dtype=np.float32)
        labels = np.zeros((len(values), len(self.task.labels)), dtype=np.float32)
        for row, indices in enumerate(values):
            labels[row, indices] = 1
        return labels


def read_data(
    source: str,
    options: DataOptions | None = None,
    *,
    task: Task | None = None,
    single_split: Literal["train", "test"] = "train",
) -> TaskData:
    """Read ``source`` (see ``sources.read_source``) for training, or for a model whose ``task`` is given.

    With ``task``, labels are matched to its labels by name. A source without splits becomes ``single_split``.
    Where there is a train but no validation split, one is cut from train; the cut depends on the content
    alone, so a later evaluation finds the same rows. Raises ``DataError`` or ``ConfigError``.
    """
    options = options or DataOptions()
    understood = _understand(source, options, task, single_split)
    columns, cells, reading = understood.columns, understood.cells, understood.reading
    encoded, task, notes = understood.encoded, understood.task, understood.notes
    splits = {split: Rows(part.texts, part.pairs, encoded.labels[split]) for split, part in cells.items()}
    origins = {split: part.table.name for split, part in cells.items()}
    fraction = options.validation_fraction if "train" in splits and "validation" not in splits else None
    if "train" in splits:
        if fraction is not None:
            _cut_validation_(splits, origins, fraction, task, notes)
        if options.train_rows is not None and options.train_rows < len(splits["train"]):
            train = splits["train"]
            splits["train"] = train.select(first_by_hash(train.keys(), train.labels, options.train_rows))
            notes.append(
                f"train: {options.train_rows} of {len(train)} rows are used, the first by content hash"
            )
        if "test" not in splits:
            notes.append("no test split")
    splits = {split: splits[split] for split in SPLITS if split in splits}
    report = _make_report(source, reading, task, columns, splits, origins, cells, notes)
    digest = fingerprint(task.kind, task.labels, splits)
    datasets = {name: _to_dataset(rows, task) for name, rows in splits.items()}
    return TaskData(datasets, task, report, digest, source, fraction)


@dataclass(frozen=True)
class Looked:
    """What was found in data that were only looked at: the task, and the splits that are there."""

    task: Task
    splits: tuple[str, ...]


def check_data(source: str, options: DataOptions | None = None, *, task: Task | None = None) -> Looked:
    """Refuse what ``read_data`` refuses of columns, rows and labels; nothing is cut, nothing is kept."""
    found = _understand(source, options or DataOptions(), task, "train")
    return Looked(found.task, tuple(found.cells))


@dataclass(frozen=True)
class _Understood:
    """Columns, cells and labels of a source, before they are made splits of."""

    columns: Columns
    cells: dict[str, SplitCells]
    reading: LabelReading
    encoded: EncodedLabels
    task: Task
    notes: list[str]


def _understand(
    source: str, options: DataOptions, task: Task | None, single_split: Literal["train", "test"]
) -> _Understood:
    if task is not None and options.task not in (None, task.kind):
        raise ConfigError(f"--task {options.task}: the model was trained for {in_words(task.kind)}")
    found = read_source(source, encoding=options.encoding, single_split=single_split)
    notes = list(found.notes)
    if task is None and "train" not in found.tables:
        raise DataError(f"{source}: no train split, only {' and '.join(found.tables)}")
    columns = _choose_columns(found.tables, options, task)
    cells = _read_cells(found.tables, columns, notes)
    reading = _infer_reading(cells, columns, options, task)
    first = next(iter(cells.values()))
    encoded = encode_labels(
        cells,
        reading,
        known=task.labels if task else None,
        declared=first.table.class_names.get(columns.label or "", ()),
        variants=options.label_variants,
    )
    notes.extend(encoded.notes)
    task = task or _make_task(reading, encoded, columns, first.table.name)
    return _Understood(columns, cells, reading, encoded, task, notes)


def _choose_columns(tables: Mapping[str, Table], options: DataOptions, task: Task | None) -> Columns:
    first = next(iter(tables.values()))
    return choose_columns(
        list(first.columns),
        where=first.name,
        text=options.text_column,
        text_pair=options.text_pair_column,
        label=options.label_column,
        pair=task.pair if task else None,
    )


def _read_cells(tables: Mapping[str, Table], columns: Columns, notes: list[str]) -> dict[str, SplitCells]:
    problems: list[str] = []
    cells: dict[str, SplitCells] = {}
    assert columns.label is not None
    first = next(iter(tables.values()))
    for split, table in tables.items():
        if split == "test" and len(tables) > 1 and not has_labels(table, columns.label, tables.get("train")):
            notes.append(
                f"{table.name}: the {len(table)} rows have no {columns.label}, so there is no test split"
            )
            continue
        missing = [name for name in columns.names().values() if name not in table.columns]
        if missing:
            problems.append(
                f"{table.name}: no column {', '.join(map(repr, missing))}, as in {first.name}; "
                f"the columns are: {', '.join(table.columns)}"
            )
            continue
        cells[split] = usable_cells(table, columns, problems)
        if not cells[split].labels and not problems:
            problems.append(f"{table.name}: no row has both a text and a label")
    if problems:
        raise DataError.from_problems(problems)
    return cells


def _infer_reading(
    cells: Mapping[str, SplitCells], columns: Columns, options: DataOptions, task: Task | None
) -> LabelReading:
    labels = (label for split in cells.values() for label in split.labels)
    try:
        if task is None:
            return infer_reading(labels, kind=options.task, separator=options.label_separator)
        found = infer_reading(labels, kind=task.kind, separator=options.label_separator, known=task.labels)
    except DataError as error:
        name = next(iter(cells.values())).table.name
        raise DataError(f"{name}, column {columns.label!r}: {error}") from None
    return replace(found, why="as the model was trained")


def _make_task(reading: LabelReading, encoded: EncodedLabels, columns: Columns, name: str) -> Task:
    if reading.kind == "single_label" and len(encoded.names) < 2:
        raise DataError(
            f"{name}: each row has the label {encoded.names[0]!r}; training needs two labels or more"
        )
    if reading.kind == "multi_label" and not encoded.names:
        raise DataError(f"{name}: no row has a label")
    return Task(kind=reading.kind, labels=encoded.names, pair=columns.text_pair is not None)


def _cut_validation_(
    splits: dict[str, Rows], origins: dict[str, str], fraction: float, task: Task, notes: list[str]
) -> None:
    train = splits["train"]
    kept, cut = cut_rows(train.keys(), label_strata(train.labels, task.kind), fraction)
    if not cut:
        few = f"{counted(len(train), 'row')} {'is' if len(train) == 1 else 'are'} too few"
        raise DataError(
            f"{origins['train']}: {few} to cut a validation split from: give a validation file, or more rows"
        )
    splits["train"], splits["validation"] = train.select(kept), train.select(cut)
    origins["validation"] = f"cut from {origins['train']}"
    manner = "" if task.kind == "regression" else ", in proportion to the labels"
    notes.append(
        f"no validation split: {len(cut)} of the {len(train)} training rows are cut off as one, "
        f"by content hash{manner}"
    )


def _make_report(
    source: str,
    reading: LabelReading,
    task: Task,
    columns: Columns,
    splits: Mapping[str, Rows],
    origins: Mapping[str, str],
    cells: Mapping[str, SplitCells],
    notes: list[str],
) -> DataReport:
    keys = {split: rows.keys() for split, rows in splits.items()}
    reports = {}
    for split, rows in splits.items():
        duplicates, conflicts = repeats(keys[split], rows.labels)
        dropped = cells[split].dropped if split in cells else ()
        reports[split] = SplitReport(
            origin=origins[split],
            rows=len(rows),
            classes=_count_classes(rows, task),
            label_range=_label_range(rows) if task.kind == "regression" else None,
            rows_without_label=sum(label == () for label in rows.labels),
            dropped=dropped,
            duplicates=duplicates,
            conflicts=conflicts,
        )
        absent = [name for name, count in reports[split].classes.items() if not count]
        if absent:
            these = "that" if len(absent) == 1 else "these"
            blind = "" if split == "train" else f": its score says nothing of {these}"
            notes.append(f"{split}: no rows of {list_labels(absent)}{blind}")
        if split != "train" and len(rows) < FEW_ROWS:
            share = f"; one row is {100 / len(rows):.1f} points of accuracy"
            few = f"{len(rows)} row{'' if len(rows) == 1 else 's'}"
            notes.append(
                f"{split}: only {few}: a score on so few means little"
                f"{share if task.kind == 'single_label' else ''}"
            )
    overlaps = []
    for first, second in (("train", "validation"), ("train", "test"), ("validation", "test")):
        if first in splits and second in splits:
            shared, conflicts = overlap(
                (keys[first], splits[first].labels), (keys[second], splits[second].labels)
            )
            if shared:
                overlaps.append(Overlap(first, second, shared, conflicts))
    what = {
        "single_label": f"single-label, {len(task.labels)} labels",
        "regression": "regression",
        "multi_label": f"multi-label, {len(task.labels)} labels",
    }[task.kind]
    sentence = f"{what}, {'pairs of texts' if task.pair else 'single texts'}: {reading.why}"
    return DataReport(source, sentence, columns.names(), reports, tuple(overlaps), tuple(notes))


def _count_classes(rows: Rows, task: Task) -> dict[str, int]:
    counts: Counter[int] = Counter()
    for label in rows.labels:
        counts.update(label if isinstance(label, tuple) else [int(label)])
    return {name: counts[index] for index, name in enumerate(task.labels)}


def _label_range(rows: Rows) -> LabelRange:
    values = np.asarray(rows.labels, dtype=np.float64)
    return LabelRange(float(values.min()), float(values.mean()), float(values.max()))


def _to_dataset(rows: Rows, task: Task) -> Any:
    import datasets

    features: dict[str, Any] = {"text": datasets.Value("string")}
    columns: dict[str, Sequence[Any]] = {"text": rows.texts}
    if rows.pairs is not None:
        features["text_pair"], columns["text_pair"] = datasets.Value("string"), rows.pairs
    features["label"] = {
        "single_label": datasets.ClassLabel(names=list(task.labels)),
        "multi_label": datasets.Sequence(datasets.Value("int64")),
        "regression": datasets.Value("float64"),
    }[task.kind]
    columns["label"] = [list(label) if isinstance(label, tuple) else label for label in rows.labels]
    return datasets.Dataset.from_dict(columns, features=datasets.Features(features))
