"""A latency table: what each part of an encoder takes on this machine, so that the time of others adds up.

As in ZipLM (Kurtić et al. 2023, arXiv 2302.04089, its "inference-aware" pruning): a sublayer is measured with
some numbers of heads or neurons, and the time of a model is the sum over its sublayers. Here the last layer
counts for itself, because only the first token of a row is computed in it.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from compress.units import Unit, count_units
from encoder.config import EncoderConfig


class LayerTimes(BaseModel):
    """What the parts of an encoder take in one precision, in ms, for one row.

    ``rest_ms``: all but the layers. ``base_ms``: a layer without heads and neurons. ``heads``, ``neurons``:
    how many stay → what they add to that, from (0, 0) up, never falling. ``last_heads_ms`` and
    ``last_neurons_ms``: what all heads, and all neurons, of a last layer take.
    """

    model_config = ConfigDict(frozen=True)

    rest_ms: float
    base_ms: float
    heads: tuple[tuple[int, float], ...]
    neurons: tuple[tuple[int, float], ...]
    last_heads_ms: float
    last_neurons_ms: float

    def units_ms(self, unit: Unit, number: float | NDArray[np.int64], *, last: bool) -> NDArray[np.float64]:
        """What ``number`` heads or neurons of a layer take; between measured numbers on a straight line."""
        points = self.heads if unit == "heads" else self.neurons
        most = points[-1][0]
        if last:
            whole = self.last_heads_ms if unit == "heads" else self.last_neurons_ms
            return np.asarray(number, dtype=np.float64) * (whole / max(1, most))
        numbers, times = zip(*points, strict=True)
        between: NDArray[np.float64] = np.interp(np.asarray(number, dtype=np.float64), numbers, times)
        return between


class LatencyTable(BaseModel):
    """The times of parts, by precision, for one row of ``tokens`` tokens on ``threads`` threads of a CPU.

    Measured with ``depth`` layers alike; ``form`` is that of the graphs. ``reliable`` is False where other
    processes were in the way.
    """

    model_config = ConfigDict(frozen=True)

    tokens: int
    threads: int
    device_name: str
    form: str
    depth: int
    times: dict[str, LayerTimes]
    reliable: bool

    def predict(self, config: EncoderConfig, precision: str) -> float:
        """How long a model of this shape takes, in ms: what its parts take together."""
        times = self.times[precision]
        total = times.rest_ms + times.base_ms * (config.num_hidden_layers - 1)
        for number, shape in enumerate(config.layers):
            last = number == config.num_hidden_layers - 1
            for unit in UNITS:
                total += float(times.units_ms(unit, count_units(shape, unit), last=last))
        return total


UNITS: tuple[Unit, ...] = ("heads", "neurons")


def solve_times(
    measured: Mapping[tuple[int, int, int], float], *, last_share: float, depth: int
) -> LayerTimes:
    """The times of the parts, from those of whole models with layers alike.

    ``measured``: (layers, heads, neurons) → ms, of models with ``depth`` layers: one with all heads and
    neurons, and others with fewer of one kind, 0 among them; with one layer: all units, and none.
    ``last_share``: of what the units of a last layer do, what its heads do. Times below 0, and those that
    fall where units are added, are noise and are set to what they cannot be less than.
    """
    H = max(heads for _, heads, _ in measured)
    F = max(neurons for _, _, neurons in measured)
    between = depth - 1
    rest, one = measured[1, 0, 0], max(measured[1, 0, 0], measured[1, H, F])
    last_heads, last_neurons = (one - rest) * last_share, (one - rest) * (1 - last_share)
    heads = {h: ms for (layers, h, f), ms in measured.items() if (layers, f) == (depth, F)}
    neurons = {f: ms for (layers, h, f), ms in measured.items() if (layers, h) == (depth, H)}
    each_head = _of_one_layer(heads, last_heads, between)
    each_neuron = _of_one_layer(neurons, last_neurons, between)
    layer = max(0.0, measured[depth, H, F] - one) / between
    return LayerTimes(
        rest_ms=rest,
        base_ms=max(0.0, layer - each_head[-1][1] - each_neuron[-1][1]),
        heads=each_head,
        neurons=each_neuron,
        last_heads_ms=last_heads,
        last_neurons_ms=last_neurons,
    )


def _of_one_layer(times: Mapping[int, float], last_ms: float, between: int) -> tuple[tuple[int, float], ...]:
    """By number of units, rising, what they add to one layer; never falling.

    ``times`` are of models with ``between`` layers and a last one, in which all units take ``last_ms``.
    """
    numbers = np.array(sorted(times))
    above = np.array([times[number] - times[numbers[0]] for number in numbers.tolist()])
    above -= last_ms * numbers / max(1, numbers[-1])
    each = np.maximum.accumulate(np.maximum(above, 0)) / between
    return tuple(zip(numbers.tolist(), each.tolist(), strict=True))
