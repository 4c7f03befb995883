"""What was removed, layer by layer: heads with their rank, neurons as bars, layers with their worth."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from recipes.pruning_result import PrunedLayer, PruningResult

if TYPE_CHECKING:
    from rich.text import Text

BAR = 40
GONE, ABSENT = "×", "·"


def draw_map(pruning: PruningResult) -> "Iterator[Text]":
    """Lines of at most 80 columns for up to 16 heads a layer; readable without colour."""
    if pruning.unit == "heads":
        yield from _heads(pruning)
    elif pruning.unit == "neurons":
        yield from _neurons(pruning)
    else:
        yield from _layers(pruning)


def ranks(layers: tuple[PrunedLayer, ...]) -> dict[tuple[int, int], int]:
    """Of each (layer, place) the share of all heads that are less important, in percent: 0 to 99."""
    scores = {
        (layer.layer, place): score for layer in layers for place, score in enumerate(layer.importance or ())
    }
    order = sorted(scores, key=lambda key: scores[key])
    return {key: 100 * index // len(order) for index, key in enumerate(order)}


def _heads(pruning: PruningResult) -> "Iterator[Text]":
    from rich.text import Text

    known = ranks(pruning.layers)
    columns = 1 + max((head for layer in pruning.layers for head in layer.heads_before or ()), default=-1)
    header = Text("  layer", style="dim")
    header.append("".join(f"{head:>4}" for head in range(columns)) + "    left")
    yield header
    for layer in pruning.layers:
        line = Text(f"  {layer.layer:>5}")
        before, after = layer.heads_before or (), set(layer.heads_after or ())
        for head in range(columns):
            if head not in before:
                line.append(f"{ABSENT:>4}", style="dim")
                continue
            rank = known.get((layer.layer, before.index(head)))
            cell = "" if rank is None else str(rank)
            if head in after:
                line.append(f"{cell or '•':>4}", style=_shade(rank))
            else:
                line.append(f"{GONE + cell:>4}", style="red")
        line.append(f"{layer.after:>5}/{layer.before}")
        yield line
    meaning = f"{GONE} removed" if not known else f"percent of the heads that matter less; {GONE} removed"
    gone = any(len(layer.heads_before or ()) < columns for layer in pruning.layers)
    yield Text(f"  {meaning}{f'; {ABSENT} gone before' if gone else ''}", style="dim")


def _shade(rank: int | None) -> str:
    """The more important, the greener."""
    return "" if rank is None else ("dim" if rank < 34 else "green" if rank < 67 else "bold green")


def _neurons(pruning: PruningResult) -> "Iterator[Text]":
    from rich.text import Text

    most = max((layer.before for layer in pruning.layers), default=0) or 1
    yield Text("  layer  neurons left", style="dim")
    for layer in pruning.layers:
        kept, gone = (round(BAR * number / most) for number in (layer.after, layer.before - layer.after))
        line = Text(f"  {layer.layer:>5}  ")
        line.append("█" * kept, style="green")
        line.append("░" * gone, style="red")
        line.append(f" {layer.after:,} of {layer.before:,}")
        yield line


def _layers(pruning: PruningResult) -> "Iterator[Text]":
    from rich.text import Text

    for layer in pruning.layers:
        line = Text(f"  layer {layer.layer:>2}  ")
        line.append("stays  " if layer.after else f"{GONE} gone ", style="green" if layer.after else "red")
        if layer.importance is not None:
            line.append(f"the loss rises by {layer.importance[0]:.4f} without it alone")
        yield line
