"""Which heads and neurons stay where a model may take only so long: those that lose least importance."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compress.importance import Scores
from compress.latency_table import UNITS, LatencyTable
from compress.selection import select_units
from compress.units import Unit
from encoder.config import EncoderConfig

# Heads that stay in every layer, and the share of its neurons: below, the table says too little.
LEAST_HEADS, LEAST_NEURONS = 1, 1 / 16
# Neurons go in groups of so many: matrix products take numbers of 8 at a time.
NEURONS_AT_ONCE = 8
BISECTIONS = 60

# The places of the units that stay, by kind and layer.
Kept = Mapping[Unit, Sequence[Sequence[int]]]


@dataclass(frozen=True)
class _Choices:
    """How many units of a sublayer may stay: ``numbers``, and for each the time and the importance lost."""

    numbers: NDArray[np.int64]
    times: NDArray[np.float64]
    lost: NDArray[np.float64]

    def best(self, price: float) -> int:
        """The place of the number at which importance lost and time, at ``price`` a ms, are least."""
        return int(np.argmin(self.lost + price * self.times))


def fit_units(
    config: EncoderConfig,
    scores: Mapping[Unit, Scores],
    table: LatencyTable,
    precision: str,
    budget_ms: float,
) -> Kept | None:
    """The units of a model of this shape that stay so that ``table`` predicts at most ``budget_ms``.

    Of each layer the most important ones, ``scores`` being of one scale for both kinds: what is lost in all,
    the sum over what goes, is to be least, as in Kwon et al. 2022 (arXiv 2204.09656), who have both kinds in
    one budget too. Solved with one price of a ms for all sublayers (Lagrange), found by bisection: no other
    choice loses less and takes no longer than this one. ``None`` where even the least that may stay takes
    longer.
    """
    times = table.times[precision]
    fixed = times.rest_ms + times.base_ms * (config.num_hidden_layers - 1)
    choices = {
        (unit, layer): _choices(
            table, precision, unit, scores[unit][layer], last=layer == config.num_hidden_layers - 1
        )
        for unit in UNITS
        for layer in range(config.num_hidden_layers)
    }

    def total(price: float) -> float:
        return fixed + sum(float(one.times[one.best(price)]) for one in choices.values())

    if total(0.0) <= budget_ms:
        return _take(choices, scores, 0.0)
    low, high = _prices(list(choices.values()))
    if total(high) > budget_ms:
        return None
    for _ in range(BISECTIONS):
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if total(middle) <= budget_ms else (middle, high)
    return _take(choices, scores, high)


def _choices(
    table: LatencyTable, precision: str, unit: Unit, scores: NDArray[np.float64], *, last: bool
) -> _Choices:
    count = len(scores)
    if unit == "heads":
        numbers = np.arange(min(count, LEAST_HEADS), count + 1)
    else:
        least = -(-round(count * LEAST_NEURONS) // NEURONS_AT_ONCE) * NEURONS_AT_ONCE
        numbers = np.unique([*range(min(least, count), count, NEURONS_AT_ONCE), count])
    gone = np.concatenate([[0.0], np.cumsum(np.sort(scores))])  # [0 … count] units that go → importance
    numbers = numbers[::-1]  # of choices alike, the one with the most units
    return _Choices(numbers, table.times[precision].units_ms(unit, numbers, last=last), gone[count - numbers])


def _prices(choices: Sequence[_Choices]) -> tuple[float, float]:
    """Prices of a ms at which nothing goes, and at which all goes that may."""
    lost = max((float(one.lost.max(initial=0.0)) for one in choices), default=0.0) or 1.0
    steps = [np.abs(np.diff(one.times)) for one in choices]
    smallest = min((float(step[step > 0].min()) for step in steps if (step > 0).any()), default=1.0)
    return 1e-12 * lost, 10 * lost / smallest


def _take(
    choices: Mapping[tuple[Unit, int], _Choices], scores: Mapping[Unit, Scores], price: float
) -> dict[Unit, list[list[int]]]:
    """Of each layer as many of the most important units as ``price`` leaves."""
    kept: dict[Unit, list[list[int]]] = {unit: [] for unit in UNITS}
    for (unit, layer), one in choices.items():
        number = int(one.numbers[one.best(price)])
        kept[unit] += select_units([scores[unit][layer]], number)
    return kept
