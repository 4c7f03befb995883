import numpy as np
import pytest
from scipy import stats

from compress.paired import Speedup, log_duration, paired_speedup, t_interval


def test_the_interval_is_students() -> None:
    values = np.random.default_rng(0).normal(size=8)
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    low, mean, high = t_interval(values)
    assert (low, high) == pytest.approx(expected)
    assert mean == pytest.approx(values.mean())


def simulate(random: np.random.Generator, *, true_ratio: float, launches: int = 6) -> Speedup:
    """Launches whose processes are by luck some per cent faster or slower, with rounds that waver less."""
    logs = []
    for level in (np.log(true_ratio), 0.0):
        luck = random.normal(0, 0.015, (launches, 1))
        logs.append(level + luck + random.normal(0, 0.005, (launches, 3)))
    return paired_speedup(*logs)


@pytest.mark.parametrize("true_ratio", [1.0, 1.5])
def test_the_interval_holds_the_truth_in_19_of_20_tries_though_processes_differ(true_ratio: float) -> None:
    random = np.random.default_rng(0)
    tries = [simulate(random, true_ratio=true_ratio) for _ in range(2000)]
    held = np.mean([speedup.low <= true_ratio <= speedup.high for speedup in tries])
    assert held == pytest.approx(0.95, abs=0.015)


def test_what_disturbs_both_in_a_round_does_not_widen_the_interval() -> None:
    drift = np.random.default_rng(0).normal(0, 1, (6, 3))
    speedup = paired_speedup((drift + np.log(2)).tolist(), drift.tolist())
    assert (speedup.low, speedup.ratio, speedup.high) == pytest.approx((2, 2, 2))


def test_one_disturbed_round_of_a_launch_does_not_count() -> None:
    quiet = np.zeros((4, 3))
    disturbed = quiet.copy()
    disturbed[:, 1] = 5.0
    assert paired_speedup(disturbed.tolist(), quiet.tolist()).ratio == 1


def test_one_launch_is_not_enough_for_an_interval() -> None:
    with pytest.raises(ValueError, match="1 and 1 launches"):
        paired_speedup([[0.0]], [[0.0]])


def test_inputs_of_any_length_count_alike() -> None:
    slow = np.array([[0.001, 1.0], [0.001, 1.0], [9.0, 1.0]])
    fast = slow * [0.5, 2.0]
    assert log_duration(slow) == pytest.approx(log_duration(fast))
    assert log_duration(slow) == pytest.approx(np.log([0.001, 1.0]).mean())


@pytest.mark.parametrize(
    ("ratio", "low", "high", "words"),
    [
        (1.32, 1.29, 1.35, "faster: 1.32× (1.29–1.35)"),
        (1.03, 0.99, 1.07, "inside the noise: 1.03× (0.99–1.07)"),
        (0.8, 0.75, 0.85, "slower: 0.80× (0.75–0.85)"),
        (1.05, 1.002, 1.1, "faster: 1.05× (1.002–1.100)"),
    ],
)
def test_a_gain_inside_the_noise_is_called_so(ratio: float, low: float, high: float, words: str) -> None:
    assert str(Speedup(ratio=ratio, low=low, high=high, launches=6)) == words
