"""What was read, as plain data: for the screen, for run.json and for tests."""

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Dropped:
    """Rows left out for one ``reason``, and where the first of them stand."""

    reason: str
    rows: int
    examples: tuple[str, ...]


@dataclass(frozen=True)
class LabelRange:
    """Regression labels: smallest, mean, largest."""

    smallest: float
    mean: float
    largest: float


@dataclass(frozen=True)
class SplitReport:
    """One split: ``rows`` in use, how many have each label, and what was left out.

    ``classes`` (label name → rows, in the order of the logits) is empty for regression, which has
    ``label_range``. ``rows_without_label`` counts multi-label rows to which no label applies.
    ``duplicates``: rows whose text stands in an earlier row; ``conflicts``: texts with more than one label.
    """

    origin: str
    rows: int
    classes: dict[str, int] = field(default_factory=dict)
    label_range: LabelRange | None = None
    rows_without_label: int = 0
    dropped: tuple[Dropped, ...] = ()
    duplicates: int = 0
    conflicts: int = 0


@dataclass(frozen=True)
class Overlap:
    """``rows`` of split ``second`` have a text of ``first``, ``conflicts`` of them with another label."""

    first: str
    second: str
    rows: int
    conflicts: int


@dataclass(frozen=True)
class DataReport:
    """All that reading found: columns by role, the task and why it is that, splits, leaks, further notes."""

    source: str
    task: str
    columns: dict[str, str]
    splits: dict[str, SplitReport]
    overlaps: tuple[Overlap, ...] = ()
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The report as JSON can hold it."""
        return asdict(self)
