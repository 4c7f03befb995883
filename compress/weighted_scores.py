"""The metrics of ``encoder.metrics`` as functions of how often each row is there.

A score of weighted rows is made of sums over rows, so the scores of a thousand resamples are a matrix
product. That they equal the metrics themselves is tested.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from encoder.errors import ConfigError, DataError, did_you_mean
from encoder.task import Task, in_words

Floats = NDArray[np.float64]

# Weights [S, R], whole numbers, to scores [S]: S samples of R rows.
WeightedScore = Callable[[Floats], Floats]


def weighted_score(
    task: Task, metric: str, logits: NDArray[np.floating[Any]], labels: NDArray[np.generic]
) -> WeightedScore:
    """The metric ``metric`` of ``logits`` [R, C] as a function of the rows' weights.

    Raises:
        ConfigError: a metric the task does not have.
        DataError: no rows.
    """
    from encoder.metrics import metric_names

    known = metric_names(task.kind)
    if metric not in known:
        hint = did_you_mean(metric, known)
        raise ConfigError(
            f"unknown metric {metric!r}{hint}; a {in_words(task.kind)} task has {', '.join(known)}"
        )
    if len(labels) == 0:
        raise DataError("no rows to score; expected at least one row with a label")
    if len(logits) != len(labels):
        raise ValueError(f"{len(logits)} rows of logits but {len(labels)} labels")
    return _METRICS[task.kind, metric](predict(task, logits), np.asarray(labels), task.num_outputs)


def predict(task: Task, logits: NDArray[np.floating[Any]]) -> NDArray[Any]:
    """The predictions that ``encoder.metrics.score`` judges: [R], or 0 and 1 [R, C] if multi-label."""
    from encoder.metrics import activate

    if task.kind == "single_label":
        classes: NDArray[np.int64] = logits.argmax(axis=-1)
        return classes
    if task.kind == "multi_label":
        return (activate(task, logits) > 0.5).astype(np.int64)
    return logits[:, 0].astype(np.float64)


def right_rows(predictions: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Which rows are right, bool [R]: in a multi-label task those with all labels right."""
    right: NDArray[np.bool_] = np.equal(predictions, labels).reshape(len(labels), -1).all(axis=1)
    return right


def _accuracy(predictions: NDArray[Any], labels: NDArray[Any], _: int) -> WeightedScore:
    right = right_rows(predictions, labels).astype(np.float64)
    return lambda weights: weights @ right / weights.sum(axis=1)


def _counts(
    predictions: NDArray[Any], labels: NDArray[Any], classes: int
) -> Callable[[Floats], tuple[Floats, Floats, Floats]]:
    """Weights [S, R] → rows of each class, rows predicted to be of it, and rows where both: [S, C] each."""
    if labels.ndim == 1:
        has = np.eye(classes)[labels.astype(np.int64)]  # [R, C]
        predicted = np.eye(classes)[predictions]
    else:
        has, predicted = labels.astype(np.float64), predictions.astype(np.float64)
    both = has * predicted
    return lambda weights: (weights @ has, weights @ predicted, weights @ both)


def _single_label_macro_f1(predictions: NDArray[Any], labels: NDArray[Any], classes: int) -> WeightedScore:
    counts = _counts(predictions, labels, classes)

    def scores(weights: Floats) -> Floats:
        has, predicted, both = counts(weights)
        occurs = has + predicted > 0  # a class that is in neither is not part of the mean
        f1 = np.where(occurs, 2 * both / np.where(occurs, has + predicted, 1), 0)
        result: Floats = f1.sum(axis=1) / occurs.sum(axis=1)
        return result

    return scores


def _multi_label_macro_f1(predictions: NDArray[Any], labels: NDArray[Any], classes: int) -> WeightedScore:
    counts = _counts(predictions, labels, classes)

    def scores(weights: Floats) -> Floats:
        has, predicted, both = counts(weights)
        f1: Floats = (2 * both / np.maximum(has + predicted, 1)).mean(axis=1)
        return f1

    return scores


def _micro_f1(predictions: NDArray[Any], labels: NDArray[Any], classes: int) -> WeightedScore:
    counts = _counts(predictions, labels, classes)

    def scores(weights: Floats) -> Floats:
        has, predicted, both = (count.sum(axis=1) for count in counts(weights))
        result: Floats = 2 * both / np.maximum(has + predicted, 1)
        return result

    return scores


def _matthews(predictions: NDArray[Any], labels: NDArray[Any], classes: int) -> WeightedScore:
    """Gorodkin's correlation of K classes (2004), 0 where it is not defined."""
    counts = _counts(predictions, labels, classes)

    def scores(weights: Floats) -> Floats:
        has, predicted, both = counts(weights)
        total = weights.sum(axis=1)
        covariance = both.sum(axis=1) * total - (has * predicted).sum(axis=1)
        spread = (total**2 - (has**2).sum(axis=1)) * (total**2 - (predicted**2).sum(axis=1))
        result: Floats = np.where(spread > 0, covariance / np.sqrt(np.where(spread > 0, spread, 1)), 0)
        return result

    return scores


def _correlation(weights: Floats, x: Floats, y: Floats) -> Floats:
    """Weighted Pearson correlation: weights [S, R]; x and y [R] or [S, R] → [S], nan of a constant."""
    total = weights.sum(axis=1, keepdims=True)
    x = x - (weights * x).sum(axis=1, keepdims=True) / total  # [S, R]
    y = y - (weights * y).sum(axis=1, keepdims=True) / total
    spread = (weights * x**2).sum(axis=1) * (weights * y**2).sum(axis=1)
    covariance = (weights * x * y).sum(axis=1)
    result: Floats = np.where(spread > 0, covariance / np.sqrt(np.where(spread > 0, spread, 1)), math.nan)
    return result


def _pearson(predictions: NDArray[Any], labels: NDArray[Any], _: int) -> WeightedScore:
    x, y = predictions.astype(np.float64), labels.astype(np.float64)
    return lambda weights: _correlation(weights, x, y)


def _spearman(predictions: NDArray[Any], labels: NDArray[Any], _: int) -> WeightedScore:
    rank_x, rank_y = _weighted_ranks(predictions), _weighted_ranks(labels)
    return lambda weights: _correlation(weights, rank_x(weights), rank_y(weights))


def _weighted_ranks(values: NDArray[Any]) -> WeightedScore:
    """Weights [S, R] → the ranks [S, R] of ``values`` [R] when each is there as often as its weight says."""
    _, group = np.unique(values, return_inverse=True)  # equal values share the mean of their ranks
    member = np.argsort(group, kind="stable")
    starts = np.flatnonzero(np.diff(group[member], prepend=-1))

    def ranks(weights: Floats) -> Floats:
        sizes = np.add.reduceat(weights[:, member], starts, axis=1)  # [S, groups]
        middle = np.cumsum(sizes, axis=1) - (sizes - 1) / 2
        result: Floats = middle[:, group]
        return result

    return ranks


def _mse(predictions: NDArray[Any], labels: NDArray[Any], _: int) -> WeightedScore:
    squares = (predictions - labels.astype(np.float64)) ** 2
    return lambda weights: weights @ squares / weights.sum(axis=1)


_METRICS = {
    ("single_label", "accuracy"): _accuracy,
    ("single_label", "macro_f1"): _single_label_macro_f1,
    ("single_label", "matthews_correlation"): _matthews,
    ("multi_label", "micro_f1"): _micro_f1,
    ("multi_label", "macro_f1"): _multi_label_macro_f1,
    ("multi_label", "subset_accuracy"): _accuracy,
    ("regression", "pearson"): _pearson,
    ("regression", "spearman"): _spearman,
    ("regression", "mse"): _mse,
}
