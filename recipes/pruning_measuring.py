"""A pruned model beside the one it is made of: how big, how fast, and whether it is what it should be."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from compress.latency import Latency, Unavailable
from compress.size import Size
from recipes.bench import judge
from recipes.observer import Observer
from recipes.pruning_inputs import PruningInputs
from recipes.pruning_options import PruningOptions
from recipes.pruning_result import SpeedupResult
from recipes.trained import LATENCY_BATCH_SIZES

if TYPE_CHECKING:
    from encoder.model import Classifier

PROOF_ROWS = 64
# Enough to tell a gain of a few per cent from none; `enc bench` measures longer.
LAUNCHES, SECONDS, RUNS = 4, 1.0, 20


@dataclass(frozen=True)
class BothLatencies:
    """The latency of the parent and of the pruned model, measured in turns, and the ratios."""

    before: tuple[Latency | Unavailable, ...] = ()
    after: tuple[Latency | Unavailable, ...] = ()
    speedups: tuple[SpeedupResult, ...] = ()


def measure_both(
    options: PruningOptions, inputs: PruningInputs, folder: Path, observer: Observer
) -> BothLatencies:
    """How long the model in ``folder`` takes on the reported rows, and how long its parent."""
    from compress.comparison import compare_latency
    from compress.runtimes import why_unavailable
    from compress.workload import from_rows

    if not options.latency:
        return BothLatencies()
    observer.stage("Measuring latency, in turns with the model before")
    parent = inputs.start.found.folder
    devices = [device for device in ("cpu", "cuda") if why_unavailable("torch-fp32", device) is None]
    comparison = compare_latency(
        [parent, folder],
        from_rows(inputs.splits.rows[inputs.reported], LATENCY_BATCH_SIZES),
        devices=devices,
        threads=options.threads,
        min_runs=RUNS,
        min_seconds=SECONDS,
        launches=LAUNCHES,
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


def measure_sizes(inputs: PruningInputs, pruned: "Classifier", folder: Path) -> tuple[Size, Size]:
    """The size of the parent, and that of ``pruned`` as saved in ``folder``; MACs at the mean length."""
    from compress.size import measure_size

    lengths = inputs.splits.rows[inputs.reported].lengths
    mean = [max(1, round(float(lengths.mean())))]
    before = measure_size(inputs.model, inputs.start.found.folder, sequence_lengths=mean)
    return before, measure_size(pruned, folder, sequence_lengths=mean)


def prove_reloaded(
    options: PruningOptions, inputs: PruningInputs, pruned: "Classifier", folder: Path
) -> float:
    """The largest difference of logits between ``pruned`` and what a fresh process loads from ``folder``.

    Raises:
        CompressionError: it is more than rounding.
    """
    from compress.proof import reloaded_difference

    rows = inputs.splits.rows[inputs.reported]
    some = rows.select(np.arange(min(len(rows), PROOF_ROWS)))
    return reloaded_difference(pruned, folder, some, threads=options.threads)
