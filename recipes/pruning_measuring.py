"""A pruned model beside the one it is made of: how big, how fast, and whether it is what it should be."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from compress.size import Size
from recipes.observer import Observer
from recipes.pruning_inputs import PruningInputs
from recipes.pruning_options import PruningOptions
from recipes.side_by_side import BothLatencies, measure_in_turns

if TYPE_CHECKING:
    from encoder.model import Classifier

PROOF_ROWS = 64


def measure_both(
    options: PruningOptions, inputs: PruningInputs, folder: Path, observer: Observer
) -> BothLatencies:
    """How long the model in ``folder`` takes on the reported rows, and how long its parent."""
    if not options.latency:
        return BothLatencies()
    observer.stage("Measuring latency, in turns with the model before")
    return measure_in_turns(
        inputs.start.found.folder,
        folder,
        inputs.splits.rows[inputs.reported],
        threads=options.threads,
        observer=observer,
    )


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
