"""Which layers to keep when whole layers go (Sajjad et al. 2023, arXiv 2004.03844)."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from encoder.rows import TokenizedRows

if TYPE_CHECKING:
    from encoder.model import Classifier


def bottom_layers(keep: int) -> list[int]:
    """The ``keep`` lowest: the top ones go."""
    return list(range(keep))


def alternate_layers(num_layers: int, keep: int) -> list[int]:
    """``keep`` layers at even steps, the last among them."""
    return [num_layers * (place + 1) // keep - 1 for place in range(keep)]


def important_layers(
    model: "Classifier",
    rows: TokenizedRows,
    keep: int,
    *,
    device: str = "cpu",
    on_done: Callable[[int, int], None] = lambda done, total: None,
) -> tuple[list[int], list[float]]:
    """One layer goes after another, each time the one without which the mean loss of ``rows`` is lowest.

    Returned with them is, for each of all layers, by how much the loss rises without it alone; nothing of the
    only layer there is.
    """
    from compress.importance import mean_loss  # torch: which layers stay by their place is known without
    from compress.removal import keep_layers

    kept = list(range(model.config.num_hidden_layers))
    if len(kept) == 1:
        return kept, []
    total = sum(range(keep + 1, len(kept) + 1)) if keep < len(kept) else 0
    first: list[float] = []
    before, done = mean_loss(model, rows, device=device), 0
    while len(kept) > keep or not first:
        losses = []
        for layer in kept:
            rest = [other for other in kept if other != layer]
            losses.append(mean_loss(keep_layers(model, rest), rows, device=device))
            done += 1
            on_done(done, max(total, len(kept)))
        first = first or [loss - before for loss in losses]
        if len(kept) > keep:
            kept.pop(losses.index(min(losses)))
    return kept, first
