"""What was exported, run by a fresh process on the evaluation rows and compared with the model before."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from compress.parity import Parity, find_parity
from encoder.metrics import main_metric
from encoder.rows import TokenizedRows
from recipes.export_inputs import ExportInputs
from recipes.observer import Observer, counting
from recipes.scoring import Scored, judge_logits

# Rows that the proof computes at once, in the order of the data: of any lengths, so that there is padding.
BATCH_ROWS = 32
# Runtime → where it is proven, if not on the CPU.
DEVICE_OF = {"onnx-fp16": "cuda"}


@dataclass(frozen=True)
class Proven:
    """What a fresh process made of the evaluation rows with what was written, by split.

    ``drop`` is the largest loss of the main score over the splits, a fraction; ``None`` where that is not
    defined. ``rows`` are the rows as the tokenizer that was written makes them.
    """

    rows: Mapping[str, TokenizedRows]
    scored: Mapping[str, Scored]
    parity: Mapping[str, Parity]
    drop: float | None


def prove(
    runtime: str, folder: Path, inputs: ExportInputs, *, threads: int | None, observer: Observer
) -> Proven:
    """Score what a fresh process loads from ``folder``, and compare its logits with those of before.

    Texts are tokenized by the tokenizer that ``folder`` holds.

    Raises:
        EncError: it cannot be loaded.
    """
    from compress.process import default_threads
    from compress.sessions import fresh_logits
    from encoder.model_folder import read_tokenizer

    data = inputs.data
    tokenizer = read_tokenizer(folder)
    encoded, scored, parity = {}, {}, {}
    for name, before in inputs.before.items():
        observer.stage(f"Running the {name} rows in a fresh process, {runtime}")
        max_length = inputs.start.found.max_length
        rows, _ = tokenizer.encode(data.texts(name), data.pairs(name), max_length=max_length)
        batches = np.split(np.arange(len(rows)), range(BATCH_ROWS, len(rows), BATCH_ROWS))
        logits = fresh_logits(
            runtime,
            folder,
            rows,
            batches,
            device=DEVICE_OF.get(runtime, "cpu"),
            threads=default_threads(threads),
            on_rows=counting(len(rows), observer),
        )
        parity[name] = find_parity(data.task, before.logits, logits, padding=_padding(rows, batches))
        scored[name], encoded[name] = _judge(inputs, name, logits), rows
    return Proven(encoded, scored, parity, find_drop(inputs, scored))


def find_drop(inputs: ExportInputs, scored: Mapping[str, Scored]) -> float | None:
    """See ``Proven.drop``."""
    metric = main_metric(inputs.data.task)
    drops = []
    for name, one in scored.items():
        before, after = inputs.before[name].scores[metric], one.scores[metric]
        if before is None:  # nothing there to be lost
            continue
        if after is None:
            return None
        drops.append(before - after)
    return max(drops, default=0.0)


def _judge(inputs: ExportInputs, name: str, logits: NDArray[np.float32]) -> Scored:
    """The scores of ``logits``; none are defined where some are not finite."""
    if not np.isfinite(logits).all():
        return Scored(logits, dict.fromkeys(inputs.before[name].scores), None)
    return judge_logits(inputs.data.task, logits, inputs.data.labels(name))


def _padding(rows: TokenizedRows, batches: list[NDArray[np.int64]]) -> float:
    """The share of padding where each batch is as wide as its longest row."""
    cells = sum(len(index) * int(rows.lengths[index].max(initial=1)) for index in batches)
    return 1 - float(rows.lengths.sum()) / cells
