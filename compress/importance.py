"""How much each head or neuron matters, from rows that nothing is reported on.

Every score is what the loss loses with the unit, or stands for it; larger is more important. Rows are packed,
so padding has no part in it.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from compress.gates import gated, silenced
from compress.units import Unit, output_projection, unit_counts, unit_width, why_not_ablated
from encoder.batches import BATCH_TOKENS, Batch, batches_of_tokens
from encoder.config import EncoderConfig
from encoder.errors import CompressionError
from encoder.frozen_prefix import FrozenPrefix
from encoder.losses import summed_loss
from encoder.metrics import activate
from encoder.model import Classifier
from encoder.prediction import Precision, autocast, predict_logits
from encoder.rows import TokenizedRows

Method = Literal["fisher", "gradient", "ablation", "magnitude", "random"]
# float64 [units] for each layer.
Scores = list[NDArray[np.float64]]
# Told how many units of how many are done; for gradients a unit is a row.
OnDone = Callable[[int, int], None]


def score_units(
    model: Classifier,
    rows: TokenizedRows,
    unit: Unit,
    method: Method,
    *,
    normalize: bool = False,
    seed: int = 0,
    precision: Precision = "fp32",
    device: str = "cpu",
    on_done: OnDone = lambda done, total: None,
) -> Scores:
    """The importance of each unit of each layer, by ``method``; ``rows`` have labels.

    ``precision`` is that of the gradients' matrix products.

    ``gradient``: the mean over rows of |∂L/∂ξ|, ξ the unit's gate (Michel et al. 2019, equation 2).
    ``fisher``: of its square, the diagonal of the empirical Fisher information (Kwon et al. 2022, section
    4.1). ``ablation``: how much the mean loss rises without the unit alone. ``magnitude``: the norm of its
    columns of the output projection; looks at no row. ``random``: numbers by ``seed``, the control.
    ``normalize`` divides by the norm of a layer's scores (Molchanov et al. 2017, section 2.2).

    Raises:
        CompressionError: an ablation of so many units that it would not end.
    """
    if method == "random":
        return random_scores(model.config, unit, seed)
    if method == "magnitude":
        scores = _magnitudes(model, unit)
    elif method == "ablation":
        scores = _ablate(model, rows, unit, device, on_done)
    else:
        gradients = gate_gradients(model, rows, unit, precision=precision, device=device, on_done=on_done)
        power = 1 if method == "gradient" else 2
        scores = [(np.abs(one).astype(np.float64) ** power).mean(0) for one in gradients]
    return [_normalized(one) for one in scores] if normalize else scores


def random_scores(config: EncoderConfig, unit: Unit, seed: int) -> Scores:
    """Numbers without a meaning, by ``seed``."""
    random = np.random.default_rng(seed)
    return [random.random(count) for count in unit_counts(config, unit)]


def gate_gradients(
    model: Classifier,
    rows: TokenizedRows,
    unit: Unit,
    *,
    precision: Precision = "fp32",
    device: str = "cpu",
    on_done: OnDone = lambda done, total: None,
) -> list[NDArray[np.float32]]:
    """∂L/∂ξ of each row at a gate a unit, float32 [R, units] for each layer.

    The gate is the row's, over all its tokens. In the last layer, of which only the first token is computed,
    that is this token's: rows, not tokens, are averaged, so that its units are not rated low for having
    one token to show.
    """
    counts = unit_counts(model.config, unit)
    found = [np.empty((len(rows), count), dtype=np.float32) for count in counts]
    model.to(device).eval()
    done = 0
    with _fixed(model), torch.enable_grad():
        for index in batches_of_tokens(rows.lengths, BATCH_TOKENS):
            batch = Batch.from_rows(rows.select(index)).to(device)
            assert batch.labels is not None
            gates = [torch.ones(len(index), count, device=device, requires_grad=True) for count in counts]
            with gated(model, unit, gates, batch.packing), autocast(device, precision):
                loss = summed_loss(model.task, model(batch).float(), batch.labels)
            used = [gate for gate in gates if gate.shape[1]]
            gradients = iter(torch.autograd.grad(loss, used) if used else ())
            for one in found:
                if one.shape[1]:
                    one[index] = next(gradients).cpu().numpy()
            done += len(index)
            on_done(done, len(rows))
    return found


def own_answers(model: Classifier, rows: TokenizedRows, *, seed: int, device: str = "cpu") -> TokenizedRows:
    """``rows`` with labels drawn from what ``model`` itself holds probable, for data without labels.

    With them ``fisher`` is the Fisher information of the model, not the empirical one (Kunstner et al. 2019,
    arXiv 1905.12558). A regression's are its values with noise of variance 1.
    """
    task, random = model.task, np.random.default_rng(seed)
    likely = activate(task, predict_logits(model, rows, device=device))  # [R, C]
    labels: NDArray[Any]
    if task.kind == "regression":
        labels = (likely[:, 0] + random.standard_normal(len(rows))).astype(np.float32)
    elif task.kind == "multi_label":
        labels = (random.random(likely.shape) < likely).astype(np.float32)
    else:
        labels = (likely.cumsum(1) < random.random((len(rows), 1))).sum(1)
        labels = labels.clip(max=task.num_outputs - 1).astype(np.int64)
    return replace(rows, labels=labels)


def mean_loss(model: Classifier, rows: TokenizedRows, *, device: str = "cpu") -> float:
    """The mean loss of ``rows``, which have labels."""
    logits = torch.from_numpy(predict_logits(model, rows, device=device))
    assert rows.labels is not None
    return float(summed_loss(model.task, logits, torch.from_numpy(rows.labels))) / len(rows)


def _ablate(model: Classifier, rows: TokenizedRows, unit: Unit, device: str, on_done: OnDone) -> Scores:
    """One pass a unit, from the unit's own layer on: what is below stays as it was."""
    counts = unit_counts(model.config, unit)
    if why := why_not_ablated(sum(counts), unit):
        raise CompressionError(why)
    whole = [list(range(count)) for count in counts]
    before, done, scores = mean_loss(model, rows, device=device), 0, []
    with FrozenPrefix(rows, precision="fp32", device=device) as prefix:
        for number, count in enumerate(counts):
            prefix.go_to(model, number)
            rises = np.empty(count)
            for place in range(count):
                kept = [*whole[:number], [p for p in whole[number] if p != place], *whole[number + 1 :]]
                with silenced(model, unit, kept):
                    rises[place] = mean_loss(model, prefix.rows, device=device) - before
                done += 1
                on_done(done, sum(counts))
            scores.append(rises)
    return scores


def _magnitudes(model: Classifier, unit: Unit) -> Scores:
    scores = []
    for layer, shape in zip(model.encoder.layers, model.config.layers, strict=True):
        weight = output_projection(layer, unit).weight.detach().double()  # [D, units·width]
        columns = weight.unflatten(1, (-1, unit_width(shape, unit))) if weight.shape[1] else weight[..., None]
        scores.append(columns.square().sum((0, 2)).sqrt().cpu().numpy())
    return scores


def _normalized(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    norm = float(np.linalg.norm(scores))
    return scores / norm if norm > 0 else scores


@contextmanager
def _fixed(model: Classifier) -> Iterator[None]:
    """No parameter gets a gradient: only gates are asked for theirs, and the rest would cost a third."""
    trained: Sequence[torch.nn.Parameter] = [p for p in model.parameters() if p.requires_grad]
    try:
        model.requires_grad_(False)
        yield
    finally:
        for parameter in trained:
            parameter.requires_grad_(True)
