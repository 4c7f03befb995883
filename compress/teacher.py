"""What a teacher makes of the training rows: computed in one pass, kept packed, in memory or in a file."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from compress.watching import Points, watched
from encoder.activations import Activations, open_store
from encoder.batches import BATCH_TOKENS, Batch, batches_of_tokens, filling_multiple
from encoder.config import EncoderConfig
from encoder.model import Classifier
from encoder.prediction import Precision, autocast
from encoder.rows import TokenizedRows, offsets_of

# Vectors are kept in what they were computed in: bf16 is exact to 0.4 %, and half as big.
STORED: Mapping[Precision, torch.dtype] = {"fp32": torch.float32, "bf16": torch.bfloat16}


@dataclass(frozen=True)
class Targets:
    """Of R rows: ``logits`` float32 [R, C], and what else was asked for, as ``compress.watching`` has it.

    ``variances`` says how much each hidden state varies: the mean square, over the numbers of all tokens, of
    what is left without the mean vector.
    """

    logits: Tensor
    hidden: Mapping[int, Activations]
    projections: Mapping[int, Activations]
    variances: Mapping[int, float]

    def close(self) -> None:
        """Let go of memory and disk."""
        for one in (*self.hidden.values(), *self.projections.values()):
            one.store.close()


def target_bytes(rows: TokenizedRows, config: EncoderConfig, points: Points, precision: Precision) -> int:
    """What the targets of ``rows`` take."""
    tokens = int(rows.offsets[-1])
    hidden = sum(len(rows) if _only_first(config, one) else tokens for one in points.hidden)
    hidden *= config.hidden_size
    projected = sum(tokens * _projected_width(config, layer) for layer in points.projections)
    return (hidden + projected) * STORED[precision].itemsize


def compute_targets(
    teacher: Classifier,
    rows: TokenizedRows,
    points: Points,
    *,
    precision: Precision,
    device: str = "cpu",
    folder: Path | None = None,
    on_rows: Callable[[int], None] = lambda count: None,
) -> Targets:
    """One pass of ``teacher``, in evaluation mode, over ``rows``; vectors go to files in ``folder``, if any.

    ``on_rows`` is told how many rows each batch added. The caller closes what is returned.
    """
    made = _make_room(teacher, rows, points, STORED[precision], folder)
    moments = {number: _Moments(teacher.config.hidden_size) for number in points.hidden}
    multiple_of = filling_multiple(teacher.config.max_tokens) if precision == "bf16" else 1
    teacher.to(device).eval()
    try:
        with watched(teacher, points) as seen, torch.no_grad(), autocast(device, precision):
            for index in batches_of_tokens(rows.lengths, BATCH_TOKENS):
                batch = Batch.from_rows(rows.select(index), multiple_of=multiple_of).to(device)
                made.logits[torch.from_numpy(index)] = teacher(batch).float().cpu()
                for number, one in made.hidden.items():
                    state = seen.hidden[number]
                    if _only_first(teacher.config, number):  # a vector a row, where the row has a token
                        state = state[batch.packing.lengths > 0]
                    state = state[: int(one.lengths[index].sum())]  # what fills the batch up comes last
                    moments[number].add(state)
                    one.write_rows(index, state)
                for layer, one in made.projections.items():
                    one.write_rows(index, seen.projections[layer][: int(one.lengths[index].sum())])
                on_rows(len(index))
    except BaseException:
        made.close()
        raise
    return replace(made, variances={number: one.variance for number, one in moments.items()})


def _make_room(
    teacher: Classifier, rows: TokenizedRows, points: Points, dtype: torch.dtype, folder: Path | None
) -> Targets:
    """Targets with nothing in them yet. After the last layer a row has one token, see ``Points``."""
    config = teacher.config
    first_only = offsets_of(np.minimum(rows.lengths, 1))

    def room(place: int, width: int, offsets: NDArray[np.int64]) -> Activations:
        return Activations(place, offsets, open_store(int(offsets[-1]), width, dtype, folder))

    return Targets(
        logits=torch.empty(len(rows), teacher.task.num_outputs),
        hidden={
            number: room(
                number, config.hidden_size, first_only if _only_first(config, number) else rows.offsets
            )
            for number in sorted(points.hidden)
        },
        projections={
            layer: room(layer, _projected_width(config, layer), rows.offsets)
            for layer in sorted(points.projections)
        },
        variances={},
    )


def _only_first(config: EncoderConfig, number: int) -> bool:
    """Whether hidden state ``number`` is there for each row's first token alone, see ``Points``."""
    return number == config.num_hidden_layers and config.reads_first_token_only


def _projected_width(config: EncoderConfig, layer: int) -> int:
    shape = config.layers[layer]
    return 3 * shape.num_attention_heads * shape.head_size


class _Moments:
    """Mean and mean square of the vectors that are added."""

    def __init__(self, width: int) -> None:
        self._sum, self._squares, self._count = torch.zeros(width, dtype=torch.float64), 0.0, 0

    def add(self, values: Tensor) -> None:
        """Add ``values`` [n, D]."""
        values = values.float()
        self._sum += values.sum(0).double().cpu()
        self._squares += float(values.square().sum())
        self._count += len(values)

    @property
    def variance(self) -> float:
        """See ``Targets``; 1 where nothing varies, so that it can be divided by."""
        count = max(1, self._count)
        mean = self._sum / count
        left = (self._squares / count - float(mean.square().sum())) / len(mean)
        return left if left > 0 else 1.0
