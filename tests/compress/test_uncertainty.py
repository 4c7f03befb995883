from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from compress import uncertainty
from compress.uncertainty import mcnemar, rows_right, score_difference, score_interval
from encoder.task import Task

TWO = Task(kind="single_label", labels=("no", "yes"))
MANY = Task(kind="multi_label", labels=("a", "b"))
NUMBER = Task(kind="regression")


def logits_of(classes: NDArray[Any]) -> NDArray[np.float32]:
    return np.eye(2, dtype=np.float32)[classes]


def classes_with(accuracy: float, rows: int, seed: int = 0) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Logits of which about ``accuracy`` are right, and the labels."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 2, rows)
    right = random.random(rows) < accuracy
    return logits_of(np.where(right, labels, 1 - labels)), labels


def test_the_interval_of_an_accuracy_is_about_the_binomials() -> None:
    logits, labels = classes_with(0.9, 500)
    interval = score_interval(TWO, logits, labels, metric="accuracy")
    exact = stats.binomtest(round(interval.score * 500), 500).proportion_ci(0.95)
    assert (interval.low, interval.high) == pytest.approx((exact.low, exact.high), abs=0.006)
    assert interval.low < interval.score < interval.high


def test_the_interval_holds_the_truth_in_19_of_20_test_sets() -> None:
    held = 0
    for seed in range(300):
        logits, labels = classes_with(0.8, 300, seed)
        interval = score_interval(TWO, logits, labels, metric="accuracy", resamples=300, seed=seed)
        held += interval.low <= 0.8 <= interval.high
    assert held / 300 == pytest.approx(0.95, abs=0.03)


def test_four_times_the_rows_halve_the_interval() -> None:
    widths = []
    for rows in (500, 2000):
        interval = score_interval(TWO, *classes_with(0.8, rows), metric="macro_f1")
        widths.append(interval.high - interval.low)
    assert widths[0] / widths[1] == pytest.approx(2, rel=0.15)


@pytest.mark.parametrize("right", [True, False])
def test_an_accuracy_without_any_variation_is_not_called_certain(right: bool) -> None:
    labels = np.zeros(100, np.int64)
    interval = score_interval(TWO, logits_of(labels if right else 1 - labels), labels, metric="accuracy")
    exact = stats.binomtest(100 if right else 0, 100).proportion_ci(0.95, method="exact")
    assert (interval.low, interval.high) == pytest.approx((exact.low, exact.high))


def test_the_same_seed_gives_the_same_interval_whatever_fits_into_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    logits, labels = classes_with(0.8, 100)
    whole = score_interval(TWO, logits, labels, metric="accuracy", resamples=50)
    assert whole == score_interval(TWO, logits, labels, metric="accuracy", resamples=50)
    monkeypatch.setattr(uncertainty, "_CHUNK", 250)
    assert whole == score_interval(TWO, logits, labels, metric="accuracy", resamples=50)


def test_the_interval_of_a_correlation_is_about_fishers() -> None:
    random = np.random.default_rng(0)
    x, y = random.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], 800).T
    interval = score_interval(NUMBER, x[:, None], y, metric="pearson")
    fisher = stats.pearsonr(x, y).confidence_interval(0.95)
    assert (interval.low, interval.high) == pytest.approx((fisher.low, fisher.high), abs=0.01)


def test_models_that_fail_on_the_same_rows_differ_less_than_their_own_intervals_say() -> None:
    logits, labels = classes_with(0.8, 1000)
    better = logits.copy()
    wrong = np.flatnonzero(~rows_right(TWO, logits, labels))[:12]
    better[wrong] = logits_of(labels[wrong])
    difference = score_difference(TWO, logits, better, labels, metric="accuracy")
    alone = score_interval(TWO, logits, labels, metric="accuracy")
    assert difference.difference == pytest.approx(0.012)
    assert not difference.is_noise
    assert difference.high - difference.low < (alone.high - alone.low) / 2


def test_a_model_does_not_differ_from_itself() -> None:
    logits, labels = classes_with(0.8, 100)
    difference = score_difference(TWO, logits, logits, labels, metric="macro_f1")
    assert (difference.low, difference.difference, difference.high) == (0, 0, 0)
    assert difference.is_noise
    assert mcnemar(*[rows_right(TWO, logits, labels)] * 2).p_value == 1


def pair(only_first: int, only_second: int, both: int = 7) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    first = [True] * only_first + [False] * only_second + [True] * both
    second = [False] * only_first + [True] * only_second + [True] * both
    return np.array(first), np.array(second)


@pytest.mark.parametrize(
    ("only_first", "only_second"), [(0, 0), (1, 0), (5, 5), (3, 12), (40, 20), (0, 30), (2000, 2100)]
)
def test_mcnemar_is_the_binomial_test_of_the_rows_that_differ(only_first: int, only_second: int) -> None:
    result = mcnemar(*pair(only_first, only_second))
    rows = only_first + only_second
    expected = stats.binomtest(only_first, rows, 0.5).pvalue if rows else 1.0
    assert (result.only_first, result.only_second) == (only_first, only_second)
    assert result.p_value == pytest.approx(expected, rel=1e-9)


def test_mcnemar_by_hand() -> None:
    # 1 against 7 of 8: (1 + 8) of 2⁸ divisions are as uneven on this side, and as many on the other
    assert mcnemar(*pair(1, 7)).p_value == 2 * 9 / 256


def test_mcnemar_does_not_count_rows_that_both_have_right_or_wrong() -> None:
    assert mcnemar(*pair(3, 9, both=0)).p_value == mcnemar(*pair(3, 9, both=1000)).p_value


def test_mcnemar_of_different_rows_is_refused() -> None:
    with pytest.raises(ValueError, match="expected the same"):
        mcnemar(np.ones(3, bool), np.ones(4, bool))


def test_a_multi_label_row_is_right_if_all_its_labels_are() -> None:
    labels = np.array([[1, 0], [1, 1], [0, 0]], np.float32)
    logits = np.array([[2.0, -2], [2, -2], [-1, -1]])
    assert rows_right(MANY, logits, labels).tolist() == [True, False, True]


def test_no_row_of_a_regression_is_right_or_wrong() -> None:
    with pytest.raises(ValueError, match="regression"):
        rows_right(NUMBER, np.ones((3, 1)), np.ones(3))
