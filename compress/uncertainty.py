"""How sure a score is, and whether two models differ: so that "no loss" means something.

A test set is a sample. The bootstrap (Efron 1979) draws its rows again with replacement, many times, and
looks at how the score wavers. All metrics are computed from weighted sums over rows (a row drawn twice has
weight 2), so that a thousand resamples are one matrix product and not a thousand calls.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from compress.weighted_scores import Floats, WeightedScore, predict, right_rows, weighted_score
from encoder.task import Task

CONFIDENCE = 0.95
RESAMPLES = 2000
# Weights of so many numbers at once: 64 MB.
_CHUNK = 8_000_000


class ScoreInterval(BaseModel):
    """A score with its interval of ``confidence``; the percentiles of ``resamples`` bootstrap scores.

    Where every row is right, or none is, resampling sees no variation: an accuracy then gets the exact bound
    of the binomial distribution (Clopper and Pearson 1934), and for other metrics ``low`` equals ``high`` and
    means "not known".
    """

    model_config = ConfigDict(frozen=True)

    metric: str
    score: float
    low: float
    high: float
    rows: int
    confidence: float = CONFIDENCE
    resamples: int = RESAMPLES


class ScoreDifference(BaseModel):
    """The score of a model less the score of its baseline on the same rows, drawn again together."""

    model_config = ConfigDict(frozen=True)

    metric: str
    difference: float
    low: float
    high: float
    rows: int
    confidence: float = CONFIDENCE
    resamples: int = RESAMPLES

    @property
    def is_noise(self) -> bool:
        """Whether the interval allows that nothing has changed."""
        return self.low <= 0 <= self.high


class McNemar(BaseModel):
    """McNemar's exact test of two models on the same rows.

    ``only_first`` rows are right in the first model alone, ``only_second`` in the second alone; rows on which
    both are right or both wrong say nothing. ``p_value`` is the two-sided probability of a division as uneven
    as this, or more, if both were equally good.
    """

    model_config = ConfigDict(frozen=True)

    only_first: int
    only_second: int
    p_value: float


def score_interval(
    task: Task,
    logits: NDArray[np.floating[Any]],
    labels: NDArray[np.generic],
    *,
    metric: str,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
    seed: int = 0,
) -> ScoreInterval:
    """The score of ``logits`` [R, C] under one of ``encoder.metrics.metric_names``, with its interval.

    Raises:
        ConfigError: a metric the task does not have.
        DataError: no rows.
    """
    measure = weighted_score(task, metric, logits, labels)
    rows = len(labels)
    score = float(measure(np.ones((1, rows)))[0])
    drawn = _bootstrap([measure], rows, resamples, seed)[0]
    low, high = _percentiles(drawn, confidence)
    if metric in ("accuracy", "subset_accuracy") and score in (0.0, 1.0):
        margin = 1 - ((1 - confidence) / 2) ** (1 / rows)
        low, high = (0.0, margin) if score == 0 else (1 - margin, 1.0)
    return ScoreInterval(
        metric=metric,
        score=score,
        low=low,
        high=high,
        rows=rows,
        confidence=confidence,
        resamples=resamples,
    )


def score_difference(
    task: Task,
    baseline_logits: NDArray[np.floating[Any]],
    logits: NDArray[np.floating[Any]],
    labels: NDArray[np.generic],
    *,
    metric: str,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
    seed: int = 0,
) -> ScoreDifference:
    """How much better ``logits`` [R, C] score than ``baseline_logits``, with the interval of the difference.

    Both are scored on the same resamples, so that rows hard for both do not widen the interval.

    Raises:
        ConfigError: a metric the task does not have.
        DataError: no rows.
    """
    measures = [weighted_score(task, metric, one, labels) for one in (baseline_logits, logits)]
    rows = len(labels)
    before, after = (float(measure(np.ones((1, rows)))[0]) for measure in measures)
    drawn = _bootstrap(measures, rows, resamples, seed)
    low, high = _percentiles(drawn[1] - drawn[0], confidence)
    return ScoreDifference(
        metric=metric,
        difference=after - before,
        low=low,
        high=high,
        rows=rows,
        confidence=confidence,
        resamples=resamples,
    )


def mcnemar(first_right: NDArray[np.bool_], second_right: NDArray[np.bool_]) -> McNemar:
    """Whether two models differ, from which rows each has right, bool [R] (McNemar 1947, the exact form)."""
    if first_right.shape != second_right.shape:
        raise ValueError(f"{first_right.shape} and {second_right.shape} rows; expected the same")
    only_first = int((first_right & ~second_right).sum())
    only_second = int((second_right & ~first_right).sum())
    rows, fewer = only_first + only_second, min(only_first, only_second)
    # Whole numbers of any size, so that neither a sum of thousands of terms nor 2^rows loses anything.
    term = tail = 1
    for index in range(fewer):
        term = term * (rows - index) // (index + 1)
        tail += term
    p_value = min(1.0, 2 * tail / 2**rows)
    return McNemar(only_first=only_first, only_second=only_second, p_value=p_value)


def rows_right(
    task: Task, logits: NDArray[np.floating[Any]], labels: NDArray[np.generic]
) -> NDArray[np.bool_]:
    """Which rows are right, bool [R]: the class, or all labels of a row. Regression has no right and wrong.

    Raises:
        ValueError: a regression task.
    """
    if task.kind == "regression":
        raise ValueError("no row of a regression task is right or wrong")
    return right_rows(predict(task, logits), labels)


def _bootstrap(measures: list[WeightedScore], rows: int, resamples: int, seed: int) -> list[Floats]:
    """Scores of each measure on the same ``resamples`` resamples, float64 [resamples] each."""
    random = np.random.default_rng(seed)
    results: list[list[Floats]] = [[] for _ in measures]
    step = max(1, _CHUNK // rows)
    for start in range(0, resamples, step):
        count = min(step, resamples - start)
        drawn = random.integers(0, rows, (count, rows)) + np.arange(count)[:, None] * rows
        weights = np.bincount(drawn.ravel(), minlength=count * rows).reshape(count, rows).astype(np.float64)
        for result, measure in zip(results, measures, strict=True):
            result.append(measure(weights))
    return [np.concatenate(result) for result in results]


def _percentiles(drawn: Floats, confidence: float) -> tuple[float, float]:
    defined = drawn[~np.isnan(drawn)]  # a resample of equal values has no correlation
    if len(defined) == 0:
        return math.nan, math.nan
    low, high = np.quantile(defined, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


def agreement(
    task: Task, logits: NDArray[np.floating[Any]], others: NDArray[np.floating[Any]]
) -> float | None:
    """The share of rows for which two models, logits [R, C] each, give the same labels.

    Of a regression the correlation of their numbers, ``None`` where one of them is constant.
    """
    one, other = predict(task, logits), predict(task, others)
    if task.kind != "regression":
        return float(right_rows(one, other).mean())
    if np.ptp(one) == 0 or np.ptp(other) == 0:
        return None
    return float(np.corrcoef(one, other)[0, 1])
