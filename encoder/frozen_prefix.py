"""A frozen prefix is computed once: the embeddings and the bottom layers, where they do not train.

Dropout is off in what is frozen, so a row's activations above it are the same in every epoch. They are
computed once and stored; training goes on from there (as in AutoFreeze, Liu et al. 2021, arXiv 2102.01386).
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from encoder.activations import Activations, Store, open_store
from encoder.batches import BATCH_TOKENS, Batch, batches_of_tokens, filling_multiple
from encoder.config import EncoderConfig
from encoder.language_model import MaskedLanguageModel
from encoder.model import Classifier
from encoder.prediction import Precision, autocast
from encoder.rows import TokenizedRows, offsets_of


def frozen_depth(model: Classifier | MaskedLanguageModel) -> int:
    """How many layers, from the bottom, never change; 0 as well where the embeddings do."""
    depth = 0
    for part in (model.encoder.embeddings, *model.encoder.layers):
        if any(parameter.requires_grad for parameter in part.parameters()):
            break
        depth += 1
    return max(0, depth - 1)


def stored_bytes(rows: TokenizedRows, config: EncoderConfig, depth: int) -> int:
    """What the activations of ``rows`` above ``depth`` layers take in float32; none are kept at depth 0."""
    if depth == 0:
        return 0
    only_first = depth == config.num_hidden_layers and config.reads_first_token_only
    return 4 * config.stream_width(depth) * (len(rows) if only_first else int(rows.offsets[-1]))


class FrozenPrefix:
    """``rows`` with what a model's bottom ``depth`` layers make of them, at one depth at a time.

    Values are stored as they are computed in ``precision`` (float32 as a rule), so that going on from them is
    what one pass computes; in files in ``folder`` or, where that is ``None``, in memory. They depend on the
    layers and the rows alone, not on the depths that were visited before. Above the last layer only each
    row's first token is kept: a classifier looks at no other.
    """

    def __init__(
        self, rows: TokenizedRows, *, precision: Precision, device: str = "cpu", folder: Path | None = None
    ) -> None:
        self.rows = replace(rows, activations=None)
        self.depth = 0
        self._precision, self._device, self._folder = precision, device, folder

    def __enter__(self) -> "FrozenPrefix":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Back to depth 0, where nothing is stored."""
        if self.rows.activations is not None:
            self.rows.activations.store.close()
        self.rows = replace(self.rows, activations=None)
        self.depth = 0

    def go_to(self, model: Classifier, depth: int, on_rows: Callable[[int], None] | None = None) -> None:
        """Let ``rows`` hold what the bottom ``depth`` layers of ``model`` make of them.

        Upwards only the layers between are computed; downwards it begins at the embeddings again. ``model``
        is moved to the device and left in evaluation mode; its layers below ``depth`` have to be the same at
        every call. ``on_rows`` is told how many rows each batch added.
        """
        if depth < self.depth:
            self.close()
        if depth == self.depth:
            return
        try:
            self._advance(model, depth, on_rows or (lambda count: None))
        except BaseException:  # what is stored is of two depths
            self.close()
            raise

    def _advance(self, model: Classifier, depth: int, on_rows: Callable[[int], None]) -> None:
        layers = list(model.encoder.layers)
        only_first = depth == len(layers) and model.config.reads_first_token_only
        lengths = np.minimum(self.rows.lengths, 1) if only_first else self.rows.lengths
        offsets = offsets_of(lengths)
        before = self.rows.activations
        widths = {model.config.stream_width(one) for one in (self.depth, depth)}
        in_place = before is not None and not only_first and len(widths) == 1
        store: Store | None = before.store if before is not None and in_place else None
        multiple_of = filling_multiple(model.config.max_tokens) if self._precision == "bf16" else 1
        model.to(self._device).eval()
        try:
            with torch.no_grad(), autocast(self._device, self._precision):
                for index in batches_of_tokens(self.rows.lengths, BATCH_TOKENS):
                    rows = self.rows.select(index)
                    batch = Batch.from_rows(rows, multiple_of=multiple_of).to(self._device)
                    stream = model.encoder.embed(batch)
                    for layer in layers[self.depth : depth]:
                        stream = layer(stream, batch.packing, first_only=only_first and layer is layers[-1])
                    x = stream.packed()  # [N, sources·D]
                    if only_first:
                        x = x[batch.packing.lengths > 0]
                    if store is None:
                        store = open_store(int(offsets[-1]), x.shape[1], x.dtype, self._folder)
                    x = x[: int(lengths[index].sum())]  # what fills the batch up comes last
                    store.write(offsets[:-1][index], lengths[index], x.to("cpu", store.dtype))
                    on_rows(len(index))
        except BaseException:
            if store is not None:
                store.close()
            raise
        if before is not None and before.store is not store:
            before.store.close()
        if store is not None:
            self.rows = replace(self.rows, activations=Activations(depth, offsets, store))
        self.depth = depth
