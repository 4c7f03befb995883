"""Claims about how fast models are beside each other."""

import math

import pytest

from recipes.ledger import LedgerRun
from recipes.measurements import BenchRow
from recipes.report_speed import Speeds, multiply
from tests.results import (
    make_bench,
    make_latency,
    make_pruning,
    make_ratio,
    make_result,
    make_shape,
    make_speedup,
)


def pruned(name, parent, ratio, before=15.0, after=12.5, **changes):
    """A run that made ``name`` of ``parent`` and timed both in turns."""
    pruning = make_pruning(latency_before=(make_latency(before, **changes),), speedups=(ratio,))
    return make_result(name, name, parent=parent, pruning=pruning, latency=(make_latency(after, **changes),))


def gain(first, other, *runs):
    speeds = Speeds([LedgerRun(folder=None, run=run) for run in runs])
    return speeds.gain(first, other, speeds.usual([first, other]))


def test_two_models_timed_in_turns_have_the_interval_of_that():
    found = gain("a", "b", pruned("b", "a", make_speedup(1.2, 1.1, 1.3)))
    assert (found.ratio, found.low, found.high, found.how) == (1.2, 1.1, 1.3, "in turns")


def test_ratios_of_a_chain_multiply_and_their_intervals_widen():
    one, two = make_speedup(2.0, 1.6, 2.5), make_speedup(3.0, 2.0, 4.5)
    found = gain("a", "c", pruned("b", "a", one), pruned("c", "b", two))
    assert found.ratio == pytest.approx(6.0) and found.how == "step by step"
    width = math.hypot(math.log(2.5 / 2.0), math.log(4.5 / 3.0))
    assert found.high == pytest.approx(6.0 * math.exp(width))
    assert multiply([one.speedup, two.speedup]).launches == 4


def test_chain_of_one_ratio_and_its_inverse_is_no_gain():
    one = make_speedup(2.0, 1.6, 2.5)
    backwards = gain("b", "a", pruned("b", "a", one))
    assert (backwards.ratio, backwards.low, backwards.high) == pytest.approx((0.5, 0.4, 0.625))


def test_latencies_of_separate_runs_have_no_interval():
    runs = [make_result("a", "a", latency=(make_latency(12.0),))]
    runs.append(make_result("b", "b", parent="a", latency=(make_latency(6.0),)))
    found = gain("a", "b", *runs)
    assert (found.ratio, found.low, found.high, found.how) == (2.0, None, None, "apart")


@pytest.mark.parametrize(
    "change", [{"threads": 1}, {"device_name": "another"}, {"shape": make_shape(1, None)}]
)
def test_latencies_of_other_circumstances_are_not_divided(change):
    runs = [make_result("a", "a", latency=(make_latency(12.0),))]
    runs.append(make_result("b", "b", parent="a", latency=(make_latency(6.0, **change),)))
    assert gain("a", "b", *runs) is None


def test_ratio_in_turns_elsewhere_is_worth_more_than_separate_runs_here():
    runs = [make_result(name, name, latency=(make_latency(9.0),)) for name in "abd"]
    found = gain("a", "b", *runs, pruned("b", "a", make_speedup(1.2, 1.1, 1.3), threads=1))
    assert (found.ratio, found.how, found.threads) == (1.2, "in turns", 1)


def test_bench_of_several_models_connects_them():
    rows = [BenchRow(model=number, latency=make_latency(12.0 - 4 * number)) for number in (0, 1)]
    found = gain("a", "b", make_bench((("a", "a"), ("b", "b")), rows, [make_ratio(1.5, 1.4, 1.6)]))
    assert (found.ratio, found.how) == (1.5, "in turns")


def test_of_two_ratios_the_one_that_is_known_better_counts():
    wide = pruned("b", "a", make_speedup(1.9, 0.9, 4.0))
    rows = [BenchRow(model=number, latency=make_latency(12.0 - 4 * number)) for number in (0, 1)]
    bench = make_bench((("a", "a"), ("b", "b")), rows, [make_ratio(1.5, 1.4, 1.6)])
    assert gain("a", "b", wide, bench).ratio == gain("a", "b", bench, wide).ratio == 1.5
