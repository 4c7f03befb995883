import gc
from collections.abc import Callable

import numpy as np
import pytest

from compress.timing import WarmUp, block_medians, noise_floor, summarize, time_passes, warm_up


class FakeClock:
    """A clock that only moves when a run says how long it took."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def run_taking(self, durations: Callable[[int, int], float]) -> Callable[[int], None]:
        """A run whose duration is ``durations(input, how many runs there were before)``."""
        count = 0

        def run(index: int) -> None:
            nonlocal count
            self.now += durations(index, count)
            count += 1

        return run


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def test_warm_up_goes_on_until_the_runs_are_steady(clock: FakeClock) -> None:
    # 15 slow runs that get faster, then steady ones: three steady passes of five are seen before it ends
    run = clock.run_taking(lambda _, count: 0.01 + max(0, 15 - count) * 0.01)
    warm = warm_up(run, 1, clock=clock)
    assert warm == WarmUp(runs=30, steady=True)


def test_a_slow_first_run_is_not_timed(clock: FakeClock) -> None:
    run = clock.run_taking(lambda _, count: 2.975 if count == 0 else 0.0025)
    warm = warm_up(run, 1, clock=clock)
    timing = summarize(time_passes(run, 1, min_runs=30, min_seconds=0, clock=clock), warm)
    assert timing.p99_ms == pytest.approx(2.5)


def test_warm_up_that_never_becomes_steady_ends_and_says_so(clock: FakeClock) -> None:
    run = clock.run_taking(lambda _, count: 0.01 * 1.2**count if count < 100 else 1.0 + count)
    warm = warm_up(run, 1, clock=clock, max_seconds=3.0)
    assert not warm.steady
    assert clock.now < 5.0


def test_warm_up_ends_after_its_passes_where_time_stands_still(clock: FakeClock) -> None:
    run = clock.run_taking(lambda _, count: (count // 5 % 2) * 1e-6 + 1e-9)
    assert warm_up(run, 1, clock=clock, max_passes=7) == WarmUp(runs=35, steady=False)


def test_warm_up_runs_every_input_however_slow(clock: FakeClock) -> None:
    seen = []
    run = clock.run_taking(lambda index, _: seen.append(index) or 100.0)
    warm_up(run, 4, clock=clock, max_seconds=1.0)
    assert seen == [0, 1, 2, 3]


def test_inputs_of_different_length_can_be_steady(clock: FakeClock) -> None:
    run = clock.run_taking(lambda index, _: (index + 1) * 0.001)
    assert warm_up(run, 20, clock=clock).steady


@pytest.mark.parametrize(
    ("min_runs", "min_seconds", "passes"),
    [
        (30, 0.0, 15),  # so many runs
        (31, 0.0, 16),  # whole passes only
        (1, 0.5, 25),  # so many seconds: a pass takes 20 ms
        (1, 0.0, 5),  # never fewer than the noise floor needs
    ],
)
def test_runs_and_seconds_are_both_at_least_what_was_asked(
    clock: FakeClock, min_runs: int, min_seconds: float, passes: int
) -> None:
    run = clock.run_taking(lambda *_: 0.01)
    durations = time_passes(run, 2, min_runs=min_runs, min_seconds=min_seconds - 1e-9, clock=clock)
    assert durations.shape == (passes, 2)


def test_slow_runs_end_after_the_time_allowed_but_not_before_two_passes(clock: FakeClock) -> None:
    run = clock.run_taking(lambda *_: 40.0)
    durations = time_passes(run, 3, min_runs=100, min_seconds=1, max_seconds=30, clock=clock)
    assert durations.shape == (2, 3)


def test_asynchronous_work_is_waited_for_inside_the_timed_run(clock: FakeClock) -> None:
    pending = 0.0

    def run(index: int) -> None:
        nonlocal pending
        clock.now += 0.001  # handing the work over
        pending += 0.1

    def synchronize() -> None:
        nonlocal pending
        clock.now += pending
        pending = 0.0

    durations = time_passes(run, 1, min_runs=5, min_seconds=0, clock=clock, synchronize=synchronize)
    assert durations == pytest.approx(np.full((5, 1), 0.101))


def test_work_left_over_from_before_is_not_counted(clock: FakeClock) -> None:
    pending = [7.0]

    def synchronize() -> None:
        clock.now += pending[0]
        pending[0] = 0.0

    run = clock.run_taking(lambda *_: 0.01)
    durations = time_passes(run, 1, min_runs=5, min_seconds=0, clock=clock, synchronize=synchronize)
    assert durations.max() == pytest.approx(0.01)


def test_the_garbage_collector_rests_while_timing_and_not_after(clock: FakeClock) -> None:
    states = []
    time_passes(lambda _: states.append(gc.isenabled()), 1, min_runs=5, min_seconds=0, clock=clock)
    assert not any(states)
    assert gc.isenabled()


def test_percentiles_are_numpys() -> None:
    durations = np.random.default_rng(0).lognormal(size=(50, 3))
    timing = summarize(durations, WarmUp(9, steady=True))
    expected = np.quantile(durations * 1e3, [0.5, 0.95, 0.99])
    assert [timing.p50_ms, timing.p95_ms, timing.p99_ms] == pytest.approx(expected)
    assert timing.mean_ms == pytest.approx(durations.mean() * 1e3)
    assert (timing.runs, timing.warm_up_runs) == (150, 9)


def test_inputs_that_differ_are_no_noise() -> None:
    durations = np.tile([0.001, 0.1, 0.02], (10, 1))
    assert noise_floor(durations) == 0


def test_noise_floor_is_the_range_of_five_block_medians() -> None:
    durations = np.repeat([1.00, 1.02, 0.98, 1.00, 1.05], 4)[:, None]
    assert block_medians(durations) == pytest.approx([1.00, 1.02, 0.98, 1.00, 1.05])
    assert noise_floor(durations) == pytest.approx(0.07)


def test_a_single_slow_run_does_not_raise_the_noise_floor() -> None:
    durations = np.ones((25, 1))
    durations[7] = 50
    assert noise_floor(durations) == 0
