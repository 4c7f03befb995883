"""What the models of a report are compared by: scores on the same rows, in the same metric."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from recipes.against import SPLITS
from recipes.part import Part
from recipes.report_models import Found, Scoring
from recipes.result import DataResult, Result


class Rows(Part):
    """The rows that the steps are compared on, and the metric."""

    data: str
    split: str
    rows: int
    metric: str


class Reference(NamedTuple):
    """What the scores of a report are of: the rows of a split of some data, and the metric."""

    data: DataResult
    split: str
    metric: str

    def is_of(self, scoring: Scoring, split: str) -> bool:
        """Whether ``scoring`` has, by ``split``, scores of these rows in this metric."""
        same = (split, scoring.metric) == (self.split, self.metric)
        return same and same_rows(scoring.data, self.data, split)

    def describe(self) -> Rows:
        """The same in words and numbers."""
        rows = self.data.report.splits[self.split].rows
        return Rows(data=self.data.source, split=self.split, rows=rows, metric=self.metric)


class StepScore(Part):
    """A main score; the interval is ``None`` where it is not known. ``here``: on the rows of the report."""

    metric: str
    split: str
    value: float
    low: float | None
    high: float | None
    here: bool


class Verdict(Part):
    """What the same rows say of a step and ``other``, a model's name.

    ``difference`` is the step's score less that of the other, ``p_value`` of McNemar's exact test.
    """

    other: str
    metric: str
    rows: int
    difference: float | None
    low: float | None
    high: float | None
    p_value: float | None
    claim: str


def find_reference(found: Sequence[Found]) -> Reference | None:
    """Data, split and metric on which most models were scored; of equals test before validation."""
    candidates = [
        (Reference(scoring.data, split, scoring.metric), scoring)
        for one in found
        for scoring in one.scorings
        for split in SPLITS
        if split in scoring.scores and split in scoring.data.report.splits
    ]
    different: list[Reference] = []
    for candidate, scoring in candidates:
        if not any(one.is_of(scoring, candidate.split) for one in different):
            different.append(candidate)

    def worth(candidate: Reference) -> tuple[int, int]:
        scored = [find_score(one, candidate) for one in found]
        return sum(one is not None and one.here for one in scored), -SPLITS.index(candidate.split)

    return max(different, key=worth, default=None)


def same_rows(one: DataResult, other: DataResult, split: str) -> bool:
    """Whether ``split`` of both has the same rows: the same data, or the same file read alike."""
    if one.fingerprint == other.fingerprint:
        return True
    first, second = one.report.splits.get(split), other.report.splits.get(split)
    if first is None or second is None:
        return False
    return (one.source, first.origin, first.rows, first.classes, first.label_range) == (
        other.source,
        second.origin,
        second.rows,
        second.classes,
        second.label_range,
    )


def find_score(one: Found, reference: Reference | None) -> StepScore | None:
    """Its score on the rows of ``reference``, otherwise on whatever it was scored on."""
    elsewhere = None
    for scoring in one.scorings:
        for split in SPLITS:
            value = scoring.scores.get(split, {}).get(scoring.metric)
            if value is None:
                continue
            interval = scoring.intervals.get(split)
            here = reference is not None and reference.is_of(scoring, split)
            made = StepScore(
                metric=scoring.metric,
                split=split,
                value=value,
                low=interval.low if interval else None,
                high=interval.high if interval else None,
                here=here,
            )
            if here:
                return made
            elsewhere = elsewhere or made
    return elsewhere


def describe_verdict(run: Result, names: Mapping[str, str]) -> Verdict | None:
    """What ``run`` found out beside the other model; ``names`` are by SHA-256."""
    against = run.against
    if against is None:
        return None
    name = names.get(against.sha256, Path(against.source).name)
    difference = against.difference
    rows = run.data.report.splits.get(against.split)
    return Verdict(
        other=name,
        metric=run.main_metric,
        rows=difference.rows if difference else rows.rows if rows else 0,
        difference=difference.difference if difference else None,
        low=difference.low if difference else None,
        high=difference.high if difference else None,
        p_value=against.mcnemar.p_value if against.mcnemar else None,
        claim=against.verdict.replace(against.source, name),
    )
