"""What a compression leaves behind: the part of run.json that only it has."""

from compress.latency import Latency, Unavailable
from compress.latency_table import LatencyTable
from compress.size import Size
from recipes.part import Part
from recipes.pruning_result import SpeedupResult


class Goal(Part):
    """What is asked for. ``max_drop`` in points; one of the other two is ``None``.

    ``baseline_ms`` is what the model took before anything was done, in torch in fp32, by its shortest runs,
    as the table has times, and ``limit_ms`` what follows of it for what is planned. Neither judges whether
    the goal is met: that does what was timed in turns.
    """

    max_drop: float
    target_speedup: float | None
    target_ms: float | None
    baseline_ms: float
    limit_ms: float


class Candidate(Part):
    """A model that was looked at: its layers, and its heads and neurons in all of them together.

    ``kept_layers`` are those of the original. ``score`` and ``drop`` (a fraction, against the original on the
    same rows) are of ``rows`` validation rows, in torch or, where ``proven``, of the exported folder.
    ``predicted_ms`` is by the table; ``latency_ms`` (p50) and ``speedup``, with its interval ``speedup_low``
    to ``speedup_high``, were measured in turns with the original, ``None`` where it was not exported;
    ``disturbed``: other work was in the way of that.
    ``size_bytes`` is that of the exported folder, otherwise of its weights as they would be. ``trained``:
    taught by the original. ``pareto``: no other one loses as little and takes as little time. ``failures``:
    why its export must not be used.
    """

    name: str
    layers: int
    heads: int
    neurons: int
    precision: str
    kept_layers: tuple[int, ...]
    trained: bool = False
    score: float | None
    drop: float | None
    rows: int
    predicted_ms: float
    latency_ms: float | None = None
    speedup: float | None = None
    speedup_low: float | None = None
    speedup_high: float | None = None
    disturbed: bool = False
    size_bytes: int
    proven: bool = False
    failures: tuple[str, ...] = ()
    pareto: bool = False
    chosen: bool = False


class CompressResult(Part):
    """The goal, whether it is met, and all that was looked at on the way.

    ``failure`` says which part of the goal is not met; ``None``: it is. ``verdict`` are sentences.
    ``folder`` is where the model in torch is, below the output; ``None`` where that is the original.
    ``before`` are the scores of the original by split.
    """

    goal: Goal
    met: bool
    failure: str | None
    verdict: tuple[str, ...]
    table: LatencyTable
    candidates: tuple[Candidate, ...]
    importance_rows: int
    trained: int
    num_epochs: int
    folder: str | None
    before: dict[str, dict[str, float | None]]
    size_before: Size
    latency_before: tuple[Latency | Unavailable, ...]
    speedups: tuple[SpeedupResult, ...]
