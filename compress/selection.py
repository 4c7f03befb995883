"""Which units stay: whole numbers out of shares, the highest scores, or what the user names."""

import re
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from encoder.errors import CompressionError

Scope = Literal["global", "layer"]

# A range is spelt out, so what nobody can mean must not be read as one.
NUMBER = "[0-9]{1,6}"


def count_kept(total: int, sparsity: float) -> int:
    """How many of ``total`` units stay when the share ``sparsity`` goes: to the nearest whole unit.

    Half a unit stays: nothing more is removed than was asked for.
    """
    return total - int(np.ceil(total * sparsity - 0.5))


def select_units(
    scores: Sequence[NDArray[np.float64]], keep: int, *, scope: Scope = "global", min_per_layer: int = 0
) -> list[list[int]]:
    """The places of the ``keep`` units that stay, for each layer, increasing.

    ``global``: the highest scores of all; ``layer``: of each layer the same share (to whole units, in all
    exactly ``keep``). In each layer at least ``min_per_layer`` stay, or as many as it has. Of equal scores
    the earlier unit stays.

    Raises:
        CompressionError: fewer are to stay than ``min_per_layer`` demands.
    """
    counts = [len(one) for one in scores]
    least = [min(count, min_per_layer) for count in counts]
    if keep < sum(least):
        raise CompressionError(
            f"{keep} of {sum(counts)} would stay, but at least {min_per_layer} in each of {len(counts)} "
            f"layers are to; ask for {sum(least)} or more, or a smaller minimum per layer"
        )
    if scope == "layer":
        shares = _divide(keep, counts, least)
    else:
        shares = _highest(scores, keep, least)
    return [sorted(_ranked(one)[:share]) for one, share in zip(scores, shares, strict=True)]


def _ranked(scores: NDArray[np.float64]) -> list[int]:
    order: list[int] = np.argsort(-scores, kind="stable").tolist()
    return order


def _highest(scores: Sequence[NDArray[np.float64]], keep: int, least: Sequence[int]) -> list[int]:
    """How many each layer keeps when, above its least, the highest scores of all stay."""
    shares = list(least)
    rest = [
        (-float(one[place]), layer, place)
        for layer, one in enumerate(scores)
        for place in _ranked(one)[least[layer] :]
    ]
    for _, layer, _ in sorted(rest)[: keep - sum(least)]:
        shares[layer] += 1
    return shares


def _divide(keep: int, counts: Sequence[int], least: Sequence[int]) -> list[int]:
    """``keep`` divided among layers by their ``counts``: always to the one furthest below its share."""
    shares = list(least)
    wanted = [keep * count / max(1, sum(counts)) for count in counts]
    for _ in range(keep - sum(least)):
        open_layers = [layer for layer, count in enumerate(counts) if shares[layer] < count]
        shares[max(open_layers, key=lambda layer: wanted[layer] - shares[layer])] += 1
    return shares


def parse_kept(text: str, present: Sequence[Sequence[int]], option: str = "--keep") -> list[list[int]]:
    """``"0:1,3-5;2:"`` → the units that stay, by number: of layer 0 1, 3, 4 and 5, of layer 2 none.

    ``present`` are the numbers that each layer has; a layer that is not named keeps all of its own.

    Raises:
        CompressionError: what cannot be read, and layers and units that are not there; all of them.
    """
    kept = [list(numbers) for numbers in present]
    problems, seen = [], set()
    for part in filter(None, (piece.strip() for piece in text.split(";"))):
        named = re.fullmatch(rf"({NUMBER})\s*:(.*)", part)
        numbers = None if named is None else _numbers(named[2])
        if named is None or numbers is None:
            problems.append(f"{option}: {part!r} is not LAYER:NUMBERS, as in '0:1,3;1:0-5;2:'")
            continue
        layer = int(named[1])
        if layer >= len(present):
            problems.append(f"{option}: no layer {layer}; the model has {len(present)}, counted from 0")
            continue
        if layer in seen:
            problems.append(f"{option}: layer {layer} is named twice")
        seen.add(layer)
        if missing := sorted(numbers - set(present[layer])):
            has = present[layer]
            first = "" if list(has) == list(range(len(has))) else " (numbered as before any pruning)"
            problems.append(f"{option}: layer {layer} has no {_short(missing)}; it has {_short(has)}{first}")
        kept[layer] = sorted(numbers)
    if not seen and not problems:
        problems.append(f"{option}: names no layer; expected as in '0:1,3;1:0-5;2:'")
    if problems:
        raise CompressionError.from_problems(problems)
    return kept


def _numbers(text: str) -> set[int] | None:
    """``"1, 3-5"`` → 1, 3, 4, 5; ``None`` for what cannot be read, and for a range that is empty."""
    numbers: set[int] = set()
    for piece in filter(None, (one.strip() for one in text.split(","))):
        found = re.fullmatch(rf"({NUMBER})(?:\s*-\s*({NUMBER}))?", piece)
        if found is None or int(found[1]) > int(found[2] or found[1]):
            return None
        numbers.update(range(int(found[1]), int(found[2] or found[1]) + 1))
    return numbers


def _short(numbers: Sequence[int]) -> str:
    """``0–3, 5, 7``; ``none``."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"{run[0]}–{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs) or "none"
