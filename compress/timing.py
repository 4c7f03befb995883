"""How a duration is measured: warm up until it is steady, run often enough, and say how much it wavers.

Nothing here knows what is timed, and the clock is an argument, so all of it is tested without waiting.

Some words. A *workload* is a number of inputs; a *run* is one call on one input; a *pass* is one run of every
input. Passes are the unit of repetition: two passes see the same inputs, so what differs between them is
noise and not the inputs' own variety, while the percentiles over all runs hold both, as a user meets them.
"""

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

Run = Callable[[int], object]
Clock = Callable[[], float]

BLOCKS = 5
STEADY_PASSES = 3
STEADY_TOLERANCE = 0.05
# A slow model on long rows is timed no longer than this, if it was run twice.
MAX_SECONDS = 30.0


class Timing(BaseModel):
    """The distribution of a run's duration.

    ``runs`` timed runs after ``warm_up_runs`` others; ``steady`` is whether the warm-up ended because the
    runs had become steady (else because its limit was reached). ``noise`` is the noise floor, a fraction; see
    ``noise_floor``.
    """

    model_config = ConfigDict(frozen=True)

    p50_ms: float
    p95_ms: float
    p99_ms: float
    mean_ms: float
    noise: float
    runs: int
    warm_up_runs: int
    steady: bool


@dataclass(frozen=True)
class WarmUp:
    """What the warm-up did: how many runs, and whether they became steady."""

    runs: int
    steady: bool


def _nothing() -> None:
    pass


def warm_up(
    run: Run,
    inputs: int,
    *,
    max_seconds: float = 5.0,
    max_passes: int = 50,
    min_runs: int = 5,
    clock: Clock = time.perf_counter,
    synchronize: Callable[[], object] = _nothing,
) -> WarmUp:
    """Call ``run`` on every input, pass after pass, until the passes are steady.

    Steady: the medians of the last ``STEADY_PASSES`` passes lie within ``STEADY_TOLERANCE`` of each other. A
    pass repeats the inputs until it has at least ``min_runs`` runs, so that one input alone has a median too.
    Ends in any case after ``max_seconds`` or ``max_passes``, but not before every input was run once: kernels
    are chosen and memory is allocated for each shape at its first run.
    """
    repeats = -(-min_runs // inputs)
    medians: list[float] = []
    runs, started = 0, clock()
    for _ in range(max_passes):
        durations = []
        for index in list(range(inputs)) * repeats:
            durations.append(_time_one(run, index, clock, synchronize))
            runs += 1
            if runs >= inputs and clock() - started >= max_seconds:
                return WarmUp(runs, steady=False)
        medians.append(float(np.median(durations)))
        last = medians[-STEADY_PASSES:]
        if len(last) == STEADY_PASSES and max(last) <= min(last) * (1 + STEADY_TOLERANCE):
            return WarmUp(runs, steady=True)
    return WarmUp(runs, steady=False)


def time_passes(
    run: Run,
    inputs: int,
    *,
    min_runs: int,
    min_seconds: float,
    min_passes: int = BLOCKS,
    max_seconds: float = MAX_SECONDS,
    clock: Clock = time.perf_counter,
    synchronize: Callable[[], object] = _nothing,
) -> NDArray[np.float64]:
    """Durations in seconds, float64 [passes, inputs].

    As many passes as ``min_runs`` runs and ``min_seconds`` of running need, and at least ``min_passes``:
    without repetition there is no noise to state. After ``max_seconds`` two passes are enough (one, if
    ``min_passes`` is 1). ``synchronize`` is called before and inside each timed run,
    for devices that work asynchronously. The garbage collector rests meanwhile.
    """
    passes: list[list[float]] = []
    total = 0.0
    with _without_garbage_collection():
        while len(passes) < min(min_passes, 2) or (
            total < max_seconds
            and (len(passes) < min_passes or len(passes) * inputs < min_runs or total < min_seconds)
        ):
            passes.append([_time_one(run, index, clock, synchronize) for index in range(inputs)])
            total += sum(passes[-1])
    return np.array(passes)


def summarize(durations: NDArray[np.float64], warm: WarmUp) -> Timing:
    """Percentiles (linear interpolation) and noise floor of ``durations``, in seconds [passes, inputs]."""
    p50, p95, p99 = np.percentile(durations, [50, 95, 99]) * 1e3
    return Timing(
        p50_ms=float(p50),
        p95_ms=float(p95),
        p99_ms=float(p99),
        mean_ms=float(durations.mean() * 1e3),
        noise=noise_floor(durations),
        runs=durations.size,
        warm_up_runs=warm.runs,
        steady=warm.steady,
    )


def noise_floor(durations: NDArray[np.float64]) -> float:
    """How far repeated medians lie apart, as a fraction of their middle.

    The passes are cut into ``BLOCKS`` blocks, one after the other; each has a median over all its runs; the
    noise floor is (largest − smallest) / middle of these medians. Always of five, so that two floors are
    comparable: the range of more medians would be wider. A difference smaller than this is not to be
    believed.
    """
    medians = block_medians(durations)
    return float((medians.max() - medians.min()) / np.median(medians))


def block_medians(durations: NDArray[np.float64], blocks: int = BLOCKS) -> NDArray[np.float64]:
    """Medians of ``blocks`` consecutive groups of passes (fewer where there are fewer passes)."""
    groups: Sequence[NDArray[np.float64]] = np.array_split(durations, min(blocks, len(durations)))
    return np.array([np.median(group) for group in groups])


def _time_one(run: Run, index: int, clock: Clock, synchronize: Callable[[], object]) -> float:
    synchronize()
    started = clock()
    run(index)
    synchronize()
    return clock() - started


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
