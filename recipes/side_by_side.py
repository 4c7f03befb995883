"""How long a model takes, in turns with the one it is made of."""

from dataclasses import dataclass
from pathlib import Path

from compress.latency import Latency, Unavailable
from encoder.rows import TokenizedRows
from recipes.bench import judge
from recipes.observer import Observer
from recipes.pruning_result import SpeedupResult
from recipes.trained import make_latency_workload

# Enough to tell a gain of some per cent from none; `enc bench` measures longer.
LAUNCHES, ROUNDS, SECONDS, RUNS, WARM_UP_SECONDS = 4, 1, 1.0, 20, 0.5


@dataclass(frozen=True)
class BothLatencies:
    """The latency of a parent and of the model made of it, measured in turns, and the ratios."""

    before: tuple[Latency | Unavailable, ...] = ()
    after: tuple[Latency | Unavailable, ...] = ()
    speedups: tuple[SpeedupResult, ...] = ()


def measure_in_turns(
    parent: Path,
    folder: Path,
    rows: TokenizedRows,
    *,
    threads: int | None,
    observer: Observer,
) -> BothLatencies:
    """How long the model in ``folder`` takes on ``rows``, and how long that in ``parent``.

    Both run in torch, but for an exported one, which runs as it is, on the devices where it can.
    """
    from compress.comparison import compare_latency
    from compress.deployed import runtimes_of
    from compress.runtimes import why_unavailable

    (runtime,) = runtimes_of(folder, ("torch-fp32",))
    devices = [device for device in ("cpu", "cuda") if why_unavailable(runtime, device) is None]
    comparison = compare_latency(
        [parent, folder],
        make_latency_workload(rows),
        devices=devices,
        threads=threads,
        min_runs=RUNS,
        min_seconds=SECONDS,
        launches=LAUNCHES,
        rounds=ROUNDS,
        warm_up_seconds=WARM_UP_SECONDS,
        progress=lambda done, total, what: observer.working(done, total),
    )
    found: dict[str, list[Latency | Unavailable]] = {str(parent): [], str(folder): []}
    for one in comparison.measured:
        found[one.contestant.model].append(one.latency)
    speedups = [
        SpeedupResult(
            device=one.contestant.device, shape=one.shape, speedup=one.speedup, verdict=judge(one.speedup)
        )
        for one in comparison.compared
    ]
    return BothLatencies(tuple(found[str(parent)]), tuple(found[str(folder)]), tuple(speedups))
