from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from compress.weighted_scores import weighted_score
from encoder.errors import ConfigError, DataError
from encoder.metrics import metric_names, score
from encoder.task import Task, TaskKind

ROWS = 60


def make_task(kind: TaskKind) -> Task:
    return Task(kind=kind, labels=() if kind == "regression" else ("a", "b", "c", "d"))


def make_rows(kind: TaskKind, seed: int = 0) -> tuple[NDArray[np.float32], NDArray[Any]]:
    """Logits and labels that agree more often than by chance; values repeat, class d is rare."""
    random = np.random.default_rng(seed)
    if kind == "regression":
        labels = random.integers(0, 6, ROWS).astype(np.float32)
        return (labels[:, None] + random.integers(-2, 3, (ROWS, 1))).astype(np.float32), labels
    if kind == "multi_label":
        labels = (random.random((ROWS, 4)) < [0.5, 0.3, 0.3, 0.02]).astype(np.float32)
        return (labels * 2 - 1 + random.normal(0, 1, (ROWS, 4))).astype(np.float32), labels
    classes = random.choice(4, ROWS, p=[0.5, 0.3, 0.18, 0.02])
    return (np.eye(4)[classes] + random.normal(0, 0.7, (ROWS, 4))).astype(np.float32), classes


CASES = [
    (kind, name) for kind in ("single_label", "multi_label", "regression") for name in metric_names(kind)
]


@pytest.mark.parametrize(("kind", "metric"), CASES)
def test_a_weighted_score_is_the_metric_of_the_rows_repeated(kind: TaskKind, metric: str) -> None:
    task = make_task(kind)
    logits, labels = make_rows(kind)
    random = np.random.default_rng(1)
    drawn = [np.arange(ROWS), *(random.integers(0, ROWS, ROWS) for _ in range(5))]
    drawn.append(random.integers(0, 3, ROWS))  # three rows again and again: most classes are gone
    weights = np.array([np.bincount(index, minlength=ROWS) for index in drawn], dtype=np.float64)
    found = weighted_score(task, metric, logits, labels)(weights)
    expected = [score(task, logits[index], labels[index])[metric] for index in drawn]
    assert found == pytest.approx(expected, abs=1e-12, nan_ok=True)


def test_the_correlation_of_a_constant_is_not_defined() -> None:
    logits, labels = make_rows("regression")
    for metric in ("pearson", "spearman"):
        constant = weighted_score(make_task("regression"), metric, np.ones_like(logits), labels)
        assert np.isnan(constant(np.ones((1, ROWS)))).all()


def test_a_metric_of_another_task_is_refused_by_name() -> None:
    logits, labels = make_rows("single_label")
    with pytest.raises(
        ConfigError, match=r"unknown metric 'micro_f1'; did you mean 'macro_f1'.*single-label"
    ):
        weighted_score(make_task("single_label"), "micro_f1", logits, labels)


def test_no_rows_are_refused() -> None:
    with pytest.raises(DataError, match="no rows"):
        weighted_score(make_task("single_label"), "accuracy", np.ones((0, 4)), np.ones(0, np.int64))
