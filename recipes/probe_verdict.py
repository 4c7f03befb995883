"""From which layer on the information is there, told from noise; and what that may be a hint to."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from recipes.encoders import EncoderResult
from recipes.part import Part
from recipes.result import DataResult, Run

# Which rows a probe has right, bool [R].
Right = NDArray[np.bool_]
# Differences within so many standard errors are what other rows could turn round.
SURE = 1.96


class LayerProbe(Part):
    """The probes of a layer (0 is the embeddings): means over the seeds, each with its standard deviation.

    ``selectivity`` is the accuracy less that with random weights (Hewitt and Liang 2019 subtract another
    control); ``strength`` is sklearn's C.
    """

    layer: int
    accuracy: float
    accuracy_spread: float
    random_weights: float
    random_weights_spread: float
    shuffled_labels: float
    shuffled_labels_spread: float
    selectivity: float
    selectivity_spread: float
    strength: float


class ProbeVerdict(Part):
    """What the accuracies allow to say; layers are counted as in ``LayerProbe``.

    ``present_from`` is the first layer that the rows cannot tell from the ``best``; ``learned_from`` the
    first that is better than random weights by more than chance, ``None`` where none is.
    """

    best: int
    present_from: int
    learned_from: int | None
    sentences: tuple[str, ...]
    hints: tuple[str, ...]


class ProbeResult(Run):
    """One run of `enc probe`. ``most_frequent`` is the share of the most frequent class of the rows."""

    encoder: EncoderResult
    data: DataResult
    pooling: str
    seeds: int
    train_rows: int
    split: str
    rows: int
    most_frequent: float
    layers: tuple[LayerProbe, ...]
    verdict: ProbeVerdict


def summarize(
    layer: int,
    real: Sequence[Right],
    random: Sequence[Right],
    shuffled: Sequence[Right],
    *,
    strength: float,
) -> LayerProbe:
    """The numbers of a layer, from which rows were right with each seed."""
    accuracy, by_random, by_shuffled = (
        np.array([right.mean() for right in one]) for one in (real, random, shuffled)
    )
    named = {
        "accuracy": accuracy,
        "random_weights": by_random,
        "shuffled_labels": by_shuffled,
        "selectivity": accuracy - by_random,
    }
    numbers = {name: float(values.mean()) for name, values in named.items()}
    spreads = {f"{name}_spread": float(values.std(ddof=1)) for name, values in named.items()}
    return LayerProbe(layer=layer, strength=strength, **numbers, **spreads)


def judge_probes(real: Sequence[Sequence[Right]], random: Sequence[Sequence[Right]]) -> ProbeVerdict:
    """The verdict, from which rows were right by layer and seed, with the model's weights and random ones.

    Two layers are compared row by row, on the same rows, each row's share over the seeds.
    """
    known = [np.mean(one, axis=0) for one in real]  # [R] for each layer
    control = [np.mean(one, axis=0) for one in random]
    best = int(np.argmax([shares.mean() for shares in known]))
    present = next(layer for layer, shares in enumerate(known) if not _is_better(known[best], shares))
    learned = next(
        (layer for layer, (a, b) in enumerate(zip(known, control, strict=True)) if _is_better(a, b)), None
    )
    last = len(known) - 1
    return ProbeVerdict(
        best=best,
        present_from=present,
        learned_from=learned,
        sentences=tuple(_sentences(known, control, best, present, learned)),
        hints=tuple(_hints(present, last)),
    )


def _is_better(first: NDArray[np.float64], second: NDArray[np.float64]) -> bool:
    """Whether ``first`` has more rows right than chance explains; shares [R] both."""
    apart = first - second
    error = apart.std(ddof=1) / np.sqrt(len(apart)) if len(apart) > 1 else np.inf
    return bool(apart.mean() > SURE * error)


def _sentences(
    known: Sequence[NDArray[np.float64]],
    control: Sequence[NDArray[np.float64]],
    best: int,
    present: int,
    learned: int | None,
) -> list[str]:
    rows = f"{len(known[0]):,} rows"
    score = known[best].mean()
    if present == best:
        found = f"The information is all there after {_called(best)}, the best with {score:.4f}; not before."
    else:
        found = (
            f"The information is there from {_called(present)} on: {rows} cannot tell its "
            f"{known[present].mean():.4f} from the {score:.4f} of {_called(best)}, the best."
        )
    most = int(np.argmax([shares.mean() for shares in control]))
    random = f"Random weights reach {control[most].mean():.4f}: so much lies in the words alone"
    if learned is None:
        return [found, f"{random}, and no layer has more than chance explains."]
    return [found, f"{random}; from {_called(learned)} on there is more, and training put it there."]


def _hints(present: int, last: int) -> list[str]:
    """What to try, worded as what it is."""
    if present == last:
        return ["No hint at freezing or dropping layers: what is asked for is complete only after the last."]
    hints = []
    if present > 0:
        hints.append(f"enc finetune --freeze-layers {present} may lose little (enc freeze-sweep measures it)")
    kept = max(1, present)
    if kept < last:
        gone = f"layer {kept} adds" if kept == last - 1 else f"layers {kept} to {last - 1} add"
        hints.append(
            f"enc drop-layers --strategy top --layers {kept} may do: {gone} nothing that a linear classifier "
            "needs (layers counted from 0, as that command does)"
        )
    return [
        "Hints, not results; a probe shows what is there, not what the model uses:",
        *hints,
    ]


def _called(layer: int) -> str:
    return "the embeddings" if layer == 0 else f"layer {layer}"
