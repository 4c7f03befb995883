"""A stopwatch for the sublayers of a classifier while it runs."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from compress.contention import core_time, waiting_share
from compress.timing import Clock, time_passes, warm_up

if TYPE_CHECKING:
    from encoder.model import Classifier

# "scores and mixing" is all of attention but its projections, "rest" all outside embeddings and layers.
PARTS = ("embeddings", "projections", "scores and mixing", "feed-forward", "add & norm", "rest")


@dataclass(frozen=True)
class PartTimes:
    """Seconds a run for each of ``PARTS``; ``steady`` and ``cpu_wait`` as in ``Latency``."""

    seconds: dict[str, float]
    steady: bool
    cpu_wait: float | None


def time_parts(
    model: "Classifier",
    run: Callable[[int], Any],
    inputs: int,
    *,
    min_runs: int,
    min_seconds: float,
    clock: Clock = time.perf_counter,
    synchronize: Callable[[], object] = lambda: None,
) -> PartTimes:
    """What each of ``PARTS`` takes: the mean over the inputs of the medians over the passes.

    On a device that works asynchronously every sublayer is waited for, so that the sum is more than an
    undisturbed run takes. The stopwatch itself adds about a microsecond a sublayer.
    """
    watch = _Stopwatch(clock, synchronize)
    seen: list[list[float]] = []

    def run_and_note(index: int) -> None:
        watch.seconds.clear()
        started = clock()
        run(index)
        synchronize()
        seen.append(split_times(watch.seconds, clock() - started))

    with _watched(model, watch):
        warm = warm_up(run, inputs, clock=clock, synchronize=synchronize)
        before = core_time()
        time_passes(
            run_and_note,
            inputs,
            min_runs=min_runs,
            min_seconds=min_seconds,
            clock=clock,
            synchronize=synchronize,
        )
        cpu_wait = waiting_share(before, core_time())
    parts: NDArray[np.float64] = np.array(seen).reshape(-1, inputs, len(PARTS))
    seconds = dict(zip(PARTS, np.median(parts, axis=0).mean(axis=0).tolist(), strict=True))
    return PartTimes(seconds, warm.steady, cpu_wait)


def split_times(seconds: dict[str, float], total: float) -> list[float]:
    """What each of ``PARTS`` took, from what the modules took that contain each other."""
    layers, attention = seconds.get("layers", 0.0), seconds.get("attention", 0.0)
    projections, feed_forward = seconds.get("projections", 0.0), seconds.get("feed-forward", 0.0)
    embeddings = seconds.get("embeddings", 0.0)
    return [
        embeddings,
        projections,
        attention - projections,
        feed_forward,
        layers - attention - feed_forward,
        total - embeddings - layers,
    ]


@dataclass
class _Stopwatch:
    """Adds up what happens inside named calls."""

    clock: Clock
    synchronize: Callable[[], object]
    seconds: dict[str, float] = field(default_factory=dict)

    def wrap(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """``call``, its duration added to ``name``."""

        def timed(*arguments: Any, **options: Any) -> Any:
            self.synchronize()
            started = self.clock()
            result = call(*arguments, **options)
            self.synchronize()
            self.seconds[name] = self.seconds.get(name, 0.0) + self.clock() - started
            return result

        return timed


@contextmanager
def _watched(model: "Classifier", watch: _Stopwatch) -> Iterator[None]:
    """Put the stopwatch around the sublayers of ``model``; afterwards it is as before."""
    encoder = model.encoder
    modules: list[tuple[str, Any]] = [("embeddings", encoder.embeddings)]
    for layer in encoder.layers:
        attention: Any = layer.attention
        modules += [
            ("layers", layer),
            ("attention", attention),
            ("projections", attention.qkv),
            ("projections", attention.output),
            ("feed-forward", layer.feed_forward),
        ]
    before = [(module, module.__dict__.get("forward")) for _, module in modules]
    try:
        for name, module in modules:
            module.forward = watch.wrap(name, module.forward)
        yield
    finally:
        for module, forward in before:
            if forward is None:
                del module.forward
            else:
                module.forward = forward
