"""What happens to one text inside a classifier, and what the answer owes to it.

Where each head looks; and, with attention residuals, what each sublayer takes of those before it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from compress.gates import gated, without_source
from compress.units import unit_counts
from encoder.batches import BATCH_TOKENS, Batch
from encoder.model import Classifier, Encoder
from encoder.rows import TokenizedRows


@dataclass(frozen=True)
class Gaze:
    """Where the H heads of a layer look, float64 [H] each, means over the tokens that look.

    ``entropy_bits``: of the weights; 0 is one token, log2 T all alike. ``distance_tokens``: how far away what
    it looks at stands. ``special_share``: the weight on special tokens, where a head with nothing to find
    rests (Clark et al. 2019, section 3.2).
    """

    entropy_bits: NDArray[np.float64]
    distance_tokens: NDArray[np.float64]
    special_share: NDArray[np.float64]


def find_weights(encoder: Encoder, row: TokenizedRows) -> list[NDArray[np.float32]]:
    """The attention weights of the only row of ``row``: for each layer float32 [H, T, T], H as it has it.

    Line i are the weights of token i; they sum to 1. They are computed again from queries and keys; the
    output comes from the path that everything else takes.
    """
    device = next(encoder.parameters()).device
    with torch.inference_mode():
        found = encoder.eval()(Batch.from_rows(row).to(device), output_attentions=True).attentions
    return [weights[0].float().cpu().numpy() for weights in found]


def describe_gaze(weights: NDArray[np.float32], is_special: Sequence[bool]) -> Gaze:
    """The numbers of a layer's ``weights`` [H, T, T]; ``is_special`` of each of the T tokens."""
    _, T, _ = weights.shape
    exact = weights.astype(np.float64)
    logs = np.log2(np.where(exact > 0, exact, 1.0))
    apart = np.abs(np.arange(T)[:, None] - np.arange(T))
    return Gaze(
        entropy_bits=-(exact * logs).sum(-1).mean(-1),
        distance_tokens=(exact * apart).sum(-1).mean(-1),
        special_share=exact[:, :, np.asarray(is_special, dtype=bool)].sum(-1).mean(-1),
    )


def head_effects(model: Classifier, row: TokenizedRows, output: int) -> list[NDArray[np.float64]]:
    """What each head adds to logit number ``output`` of the only row of ``row``: float64 [H] for each layer.

    That is the logit less what it is when the head alone is silenced (its contribution 0, the output bias
    stays). The effects of two heads do not add up: one can stand in for the other.
    """
    counts = unit_counts(model.config, "heads")
    heads = [(layer, head) for layer, count in enumerate(counts) for head in range(count)]
    device = next(model.parameters()).device
    at_once = max(1, BATCH_TOKENS // max(1, int(row.lengths[0])))
    effects = [np.empty(count) for count in counts]
    model.eval()
    with torch.inference_mode():
        whole = float(model(Batch.from_rows(row).to(device))[0, output])
        for start in range(0, len(heads), at_once):
            silent = heads[start : start + at_once]
            batch = Batch.from_rows(row.select([0] * len(silent))).to(device)
            gates = [torch.ones(len(silent), count, device=device) for count in counts]
            for place, (layer, head) in enumerate(silent):
                gates[layer][place, head] = 0.0
            with gated(model, "heads", gates, batch.packing):
                logits = model(batch)[:, output].double().cpu().numpy()
            for (layer, head), logit in zip(silent, logits, strict=True):
                effects[layer][head] = whole - logit
    return effects


def find_mixes(encoder: Encoder, row: TokenizedRows) -> list[NDArray[np.float64]]:
    """What each sublayer takes of each source of the only row of ``row``: 2·L+1 of [sources], the end last.

    Means over the tokens that read; at the end that is the first one where a classifier looks at no other.
    """
    device = next(encoder.parameters()).device
    with torch.inference_mode():
        batch = Batch.from_rows(row).to(device)
        found = encoder.eval()(batch, output_residual_weights=True).residual_weights
    mixes = [weights.double().mean(0).cpu().numpy() for weights in found]
    if encoder.config.reads_first_token_only and len(row.input_ids):
        mixes[-1] = found[-1][0].double().cpu().numpy()
    return mixes


def source_effects(model: Classifier, row: TokenizedRows, output: int) -> NDArray[np.float64]:
    """What each source adds to logit number ``output`` of the only row of ``row``: float64 [sources].

    That is the logit less what it is when nobody reads this source, the others being weighed anew.
    """
    config, device = model.config, next(model.parameters()).device
    batch = Batch.from_rows(row).to(device)
    model.eval()
    with torch.inference_mode():
        whole = float(model(batch)[0, output])
        effects = []
        for number in range(config.num_sources(2 * config.num_hidden_layers)):
            with without_source(model, number):
                effects.append(whole - float(model(batch)[0, output]))
    return np.array(effects)
