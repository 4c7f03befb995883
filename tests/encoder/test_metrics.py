"""Oracle: scikit-learn and SciPy called directly."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.special
import scipy.stats
import sklearn.metrics

from encoder.errors import DataError, EncError
from encoder.metrics import activate, is_better, main_metric, metric_names, score
from encoder.task import Task

CLASSES = Task(kind="single_label", labels=("a", "b", "c", "d"))
TAGS = Task(kind="multi_label", labels=("a", "b", "c", "d"))
VALUE = Task(kind="regression")
TASKS = [CLASSES, TAGS, VALUE]


def random_rows(task: Task, rows: int = 97, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Logits float32 [R, C] that know something of the labels, and the labels."""
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((rows, task.num_outputs))
    labels: np.ndarray
    if task.kind == "single_label":
        labels = rng.integers(0, task.num_outputs, rows)
        known = np.eye(task.num_outputs)[labels]
    elif task.kind == "multi_label":
        labels = rng.integers(0, 2, (rows, task.num_outputs)).astype(np.float32)
        known = labels - 0.5
    else:
        labels = rng.random(rows).astype(np.float32)
        known = labels[:, None]
    return (known + noise).astype(np.float32), labels


def test_single_label_scores_are_those_of_sklearn() -> None:
    logits, labels = random_rows(CLASSES)
    predictions = logits.argmax(axis=1)
    assert score(CLASSES, logits, labels) == {
        "accuracy": pytest.approx(sklearn.metrics.accuracy_score(labels, predictions)),
        "macro_f1": pytest.approx(sklearn.metrics.f1_score(labels, predictions, average="macro")),
        "matthews_correlation": pytest.approx(sklearn.metrics.matthews_corrcoef(labels, predictions)),
    }


@pytest.mark.parametrize("threshold", [0.5, 0.2, 0.9])
def test_multi_label_scores_are_those_of_sklearn(threshold: float) -> None:
    logits, labels = random_rows(TAGS)
    predictions = scipy.special.expit(logits) > threshold
    truth = labels.astype(bool)
    assert score(TAGS, logits, labels, threshold=threshold) == {
        "micro_f1": pytest.approx(sklearn.metrics.f1_score(truth, predictions, average="micro")),
        "macro_f1": pytest.approx(
            sklearn.metrics.f1_score(truth, predictions, average="macro", zero_division=0)
        ),
        "subset_accuracy": pytest.approx(sklearn.metrics.accuracy_score(truth, predictions)),
    }


def test_regression_scores_are_those_of_scipy() -> None:
    logits, labels = random_rows(VALUE)
    assert score(VALUE, logits, labels) == {
        "pearson": pytest.approx(scipy.stats.pearsonr(logits[:, 0], labels).statistic),
        "spearman": pytest.approx(scipy.stats.spearmanr(logits[:, 0], labels).statistic),
        "mse": pytest.approx(sklearn.metrics.mean_squared_error(labels, logits[:, 0])),
    }


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.kind)
def test_scores_do_not_depend_on_the_order_of_rows(task: Task) -> None:
    logits, labels = random_rows(task)
    order = np.random.default_rng(1).permutation(len(labels))
    assert score(task, logits[order], labels[order]) == pytest.approx(score(task, logits, labels))


def test_scores_do_not_depend_on_the_order_of_labels() -> None:
    order = np.array([2, 0, 3, 1])
    logits, labels = random_rows(CLASSES)
    permuted = score(CLASSES, logits[:, order], np.argsort(order)[labels])
    assert permuted == pytest.approx(score(CLASSES, logits, labels))
    logits, labels = random_rows(TAGS)
    assert score(TAGS, logits[:, order], labels[:, order]) == pytest.approx(score(TAGS, logits, labels))


def test_perfect_predictions_score_one() -> None:
    labels = np.array([0, 1, 2, 3, 0])
    assert set(score(CLASSES, np.eye(4, dtype=np.float32)[labels], labels).values()) == {1.0}
    tags = np.eye(4, dtype=np.float32)[labels]
    assert set(score(TAGS, tags - 0.5, tags).values()) == {1.0}
    values = np.array([0.5, 1.5, 4.0], dtype=np.float32)
    assert score(VALUE, values[:, None], values) == pytest.approx(
        {"pearson": 1.0, "spearman": 1.0, "mse": 0.0}
    )


def test_class_missing_from_labels_or_predictions_counts_as_a_miss() -> None:
    logits = np.eye(4, dtype=np.float32)[[0, 0, 1, 3]]
    scores = score(CLASSES, logits, np.array([0, 0, 1, 1]))
    # Class 3 is predicted and wrong, class 2 occurs nowhere: three classes count.
    assert scores["macro_f1"] == pytest.approx((1 + 2 / 3 + 0) / 3)


def test_constant_class_predictions_have_no_correlation() -> None:
    logits = np.tile(np.array([1, 0, 0, 0], dtype=np.float32), (4, 1))
    scores = score(CLASSES, logits, np.array([0, 1, 2, 3]))
    assert scores == pytest.approx({"accuracy": 0.25, "macro_f1": 0.1, "matthews_correlation": 0.0})


def test_multi_label_rows_without_any_label_are_scored() -> None:
    nothing = np.full((3, 4), -1, dtype=np.float32)
    scores = score(TAGS, nothing, np.zeros((3, 4), dtype=np.float32))
    assert scores == {"micro_f1": 0.0, "macro_f1": 0.0, "subset_accuracy": 1.0}


@pytest.mark.parametrize(
    ("predictions", "labels"),
    [([0.5, 0.5, 0.5], [1, 2, 3]), ([1, 2, 3], [0.5, 0.5, 0.5]), ([1.0], [1.0])],
)
def test_correlation_with_a_constant_is_nan(predictions: list[float], labels: list[float]) -> None:
    scores = score(
        VALUE, np.array(predictions, dtype=np.float32)[:, None], np.array(labels, dtype=np.float32)
    )
    assert math.isnan(scores["pearson"])
    assert math.isnan(scores["spearman"])
    assert not math.isnan(scores["mse"])


def test_nearly_constant_predictions_warn_nobody() -> None:
    predictions = np.array([1, 1, np.nextafter(np.float32(1), np.float32(2))], dtype=np.float32)
    score(VALUE, predictions[:, None], np.array([1, 2, 3], dtype=np.float32))


def test_nan_is_never_the_best() -> None:
    assert not is_better("pearson", math.nan, None)
    assert not is_better("pearson", math.nan, 0.1)
    assert is_better("pearson", -0.5, math.nan)
    assert is_better("pearson", -0.5, None)


def test_higher_is_better_except_for_errors() -> None:
    assert is_better("accuracy", 0.9, 0.8)
    assert not is_better("accuracy", 0.8, 0.8)
    assert is_better("mse", 0.8, 0.9)
    assert not is_better("mse", 0.9, 0.8)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.kind)
def test_names_are_those_that_are_scored(task: Task) -> None:
    assert tuple(score(task, *random_rows(task))) == metric_names(task.kind)
    assert main_metric(task) in metric_names(task.kind)


@pytest.mark.parametrize(
    ("task", "name"),
    [(CLASSES, "accuracy"), (VALUE, "pearson"), (TAGS, "micro_f1")],
    ids=["single", "value", "multi"],
)
def test_main_metric(task: Task, name: str) -> None:
    assert main_metric(task) == name


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.kind)
def test_no_rows_are_refused(task: Task) -> None:
    logits, labels = random_rows(task)
    with pytest.raises(DataError, match="no rows to score"):
        score(task, logits[:0], labels[:0])


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.kind)
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_logits_that_are_not_finite_mean_a_diverged_training(task: Task, value: float) -> None:
    logits, labels = random_rows(task)
    logits[[5, 9], 0] = value
    with pytest.raises(EncError, match=r"2 of 97 rows .*\(the first is row 5\): the training diverged"):
        score(task, logits, labels)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.kind)
def test_scoring_leaves_the_random_state_alone(task: Task) -> None:
    # A resumed run must draw what the uninterrupted one drew.
    before = np.random.get_state()[1].copy()  # type: ignore[union-attr,index]
    score(task, *random_rows(task))
    assert (np.random.get_state()[1] == before).all()  # type: ignore[union-attr,index]


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        (CLASSES, lambda x: scipy.special.softmax(x, axis=-1)),
        (TAGS, scipy.special.expit),
        (VALUE, np.asarray),
    ],
    ids=["softmax", "sigmoid", "identity"],
)
def test_activation_is_scipys_and_does_not_overflow(task: Task, expected: Any) -> None:
    logits, _ = random_rows(task)
    logits[0] = 1e4
    logits[1] = -1e4
    logits[2, 0] = 1e4
    probabilities = activate(task, logits)
    np.testing.assert_allclose(probabilities, expected(logits.astype(np.float64)), rtol=1e-12)
    assert probabilities.shape == logits.shape


def test_names_load_no_library() -> None:
    code = (
        "import sys; import encoder.metrics; encoder.metrics.metric_names('regression');"
        "print({'torch', 'evaluate', 'datasets', 'sklearn', 'scipy', 'pandas'} & set(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"


SCORE_IN_A_PROCESS = """
import json, numpy as np
from encoder.metrics import score
from encoder.task import Task
task = Task(kind="single_label", labels=("a", "b"))
print(json.dumps(score(task, np.eye(2, dtype="f4"), np.array([0, 1]))))
"""


@pytest.mark.slow
def test_two_processes_score_offline_without_a_home(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(0o500)
    hidden = ("HF_HOME", "XDG_CACHE_HOME", "HF_METRICS_CACHE", "HF_EVALUATE_CACHE", "HF_DATASETS_CACHE")
    environment = {key: value for key, value in os.environ.items() if key not in hidden} | {
        "HOME": str(home),
        "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_OFFLINE": "1",
        "HF_EVALUATE_OFFLINE": "1",
    }
    command = [sys.executable, "-W", "error", "-c", SCORE_IN_A_PROCESS]
    processes = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for process in processes:
        out, err = process.communicate()
        assert process.returncode == 0, err
        assert json.loads(out) == {"accuracy": 1.0, "macro_f1": 1.0, "matthews_correlation": 1.0}
    assert list(home.iterdir()) == []


def test_rows_of_one_class_have_no_correlation_and_warn_of_nothing() -> None:
    logits = np.tile(np.array([0.0, 2.0, 1.0, 0.0], dtype=np.float32), (5, 1))
    assert score(CLASSES, logits, np.ones(5, dtype=np.int64))["matthews_correlation"] == 0.0
