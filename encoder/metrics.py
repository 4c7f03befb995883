"""Logits and labels to scores, through ``evaluate.Metric`` modules of our own that need no network.

==============  ====================================================================================
single_label    ``accuracy``, ``macro_f1``, ``matthews_correlation``
multi_label     ``micro_f1``, ``macro_f1``, ``subset_accuracy`` (a row counts if all its labels are right)
regression      ``pearson``, ``spearman``, ``mse`` (better when lower, as is a ``loss``)
==============  ====================================================================================

The libraries that do the arithmetic take seconds to import, so they are imported where they are used.
"""

import math
import tempfile
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from encoder.errors import DataError, EncError
from encoder.task import Task, TaskKind, in_words

# By task kind; the first one decides which checkpoint is the best.
METRIC_NAMES: dict[TaskKind, tuple[str, ...]] = {
    "single_label": ("accuracy", "macro_f1", "matthews_correlation"),
    "multi_label": ("micro_f1", "macro_f1", "subset_accuracy"),
    "regression": ("pearson", "spearman", "mse"),
}
LOWER_IS_BETTER = frozenset({"mse", "loss"})
# As sentences and tables spell them.
METRIC_TITLES = {
    "accuracy": "accuracy",
    "macro_f1": "macro F1",
    "micro_f1": "micro F1",
    "matthews_correlation": "MCC",
    "subset_accuracy": "all labels right",
    "pearson": "Pearson",
    "spearman": "Spearman",
    "mse": "mean squared error",
    "loss": "loss",
    "perplexity": "perplexity",
}


def metric_names(kind: TaskKind) -> tuple[str, ...]:
    """The names that ``score`` returns for a kind of task."""
    return METRIC_NAMES[kind]


def main_metric(task: Task) -> str:
    """The metric that decides which checkpoint is the best, unless the user names another."""
    return METRIC_NAMES[task.kind][0]


def is_better(name: str, value: float, best: float | None) -> bool:
    """Whether ``value`` of the metric ``name`` beats ``best``. An undefined value (nan) beats nothing."""
    if math.isnan(value):
        return False
    if best is None or math.isnan(best):
        return True
    return value < best if name in LOWER_IS_BETTER else value > best


def activate(task: Task, logits: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Logits [R, C] to what a user reads, float64 [R, C].

    Probabilities that sum to 1 (single-label), one probability a label (multi-label), or the value itself
    (regression).
    """
    x = logits.astype(np.float64)
    if task.kind == "regression":
        return x
    if task.kind == "single_label":
        exp: NDArray[np.float64] = np.exp(x - x.max(axis=-1, keepdims=True))
        total: NDArray[np.float64] = exp.sum(axis=-1, keepdims=True)
        return exp / total
    # The exponent is never positive, so that it cannot overflow.
    exp = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, exp) / (1 + exp)


def score(
    task: Task, logits: NDArray[np.floating[Any]], labels: NDArray[np.generic], *, threshold: float = 0.5
) -> dict[str, float]:
    """The metrics of a task, in the order of ``metric_names``.

    ``logits`` [R, C]; ``labels`` as in ``TokenizedRows``. In a multi-label task a label is predicted when its
    probability is above ``threshold``. macro F1 is the mean over the classes that occur in the labels or in
    the predictions (single-label) or over all C labels (multi-label); a class without a hit counts as 0. A
    correlation with a constant is not defined and comes out as nan.

    Raises ``DataError`` when there are no rows, ``EncError`` when a logit is not finite.
    """
    if len(labels) == 0:
        raise DataError("no rows to score; expected at least one row with a label")
    if len(logits) != len(labels):
        raise ValueError(f"{len(logits)} rows of logits but {len(labels)} labels")
    broken = np.flatnonzero(~np.isfinite(logits).all(axis=-1))
    if broken.size:
        raise EncError(
            f"{broken.size} of {len(logits)} rows have logits that are nan or infinite (the first is row "
            f"{broken[0]}): the training diverged. Lower the learning rate, or train with --precision fp32"
        )
    predictions: NDArray[Any]
    if task.kind == "single_label":
        predictions = logits.argmax(axis=-1)
    elif task.kind == "multi_label":
        predictions = (activate(task, logits) > threshold).astype(np.int64)
    else:
        predictions = logits[:, 0].astype(np.float64)
    with tempfile.TemporaryDirectory() as folder:
        # evaluate creates a folder even for what it keeps in memory; its default is under the home directory.
        metric = _metric_class(task.kind)(keep_in_memory=True, cache_dir=folder)
        scores = metric.compute(predictions=predictions, references=labels.astype(predictions.dtype))
    return {name: float(scores[name]) for name in metric_names(task.kind)}


@cache
def _metric_class(kind: TaskKind) -> Any:
    """The ``evaluate.Metric`` of a kind of task, a class that is made here to delay the import."""
    import datasets
    import evaluate

    value: Any = datasets.Value("float64" if kind == "regression" else "int64")
    feature = datasets.Sequence(value) if kind == "multi_label" else value
    compute = _COMPUTE[kind]

    class TaskMetric(evaluate.Metric):  # type: ignore[misc]  # evaluate has no types
        def _info(self) -> Any:
            return evaluate.MetricInfo(
                description=f"Scores of a {in_words(kind)} task: {', '.join(metric_names(kind))}.",
                citation="",
                features=datasets.Features({"predictions": feature, "references": feature}),
            )

        def _compute(self, predictions: Any, references: Any) -> dict[str, Any]:
            return compute(np.asarray(predictions), np.asarray(references))

    return TaskMetric


def _single_label(predictions: NDArray[np.int64], references: NDArray[np.int64]) -> dict[str, Any]:
    """Both [R], class indices."""
    from sklearn.metrics import f1_score, matthews_corrcoef

    # Where one class is all there is, the coefficient is 0/0: no correlation, and sklearn would warn.
    undefined = len(np.unique(np.concatenate([predictions, references]))) < 2
    return {
        "accuracy": np.mean(predictions == references),
        "macro_f1": f1_score(references, predictions, average="macro", zero_division=0),
        "matthews_correlation": 0.0 if undefined else matthews_corrcoef(references, predictions),
    }


def _multi_label(predictions: NDArray[np.int64], references: NDArray[np.int64]) -> dict[str, Any]:
    """Both [R, C], 0 or 1."""
    from sklearn.metrics import f1_score

    return {
        "micro_f1": f1_score(references, predictions, average="micro", zero_division=0),
        "macro_f1": f1_score(references, predictions, average="macro", zero_division=0),
        "subset_accuracy": np.mean((predictions == references).all(axis=1)),
    }


def _regression(predictions: NDArray[np.float64], references: NDArray[np.float64]) -> dict[str, Any]:
    """Both [R]."""
    from scipy.stats import pearsonr, spearmanr

    scores = {"pearson": math.nan, "spearman": math.nan, "mse": np.mean((predictions - references) ** 2)}
    if np.ptp(predictions) > 0 and np.ptp(references) > 0:
        with warnings.catch_warnings():
            # "Nearly constant": the number is what the data give, and nan is not better.
            warnings.simplefilter("ignore")
            scores["pearson"] = pearsonr(predictions, references).statistic
            scores["spearman"] = spearmanr(predictions, references).statistic
    return scores


_COMPUTE: dict[TaskKind, Callable[[NDArray[Any], NDArray[Any]], dict[str, Any]]] = {
    "single_label": _single_label,
    "multi_label": _multi_label,
    "regression": _regression,
}
