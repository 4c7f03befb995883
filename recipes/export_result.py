"""What an export leaves behind: the part of run.json that only it has."""

from pydantic import Field

from compress.latency import Latency, Unavailable
from compress.parity import Parity
from compress.size import Size
from recipes.part import Part
from recipes.pruning_result import SpeedupResult


class RankedPart(Part):
    """What 8 bits do to the logits where only ``part`` is in them.

    ``effect`` is the root of the mean squared change of a logit, ``labels_changed`` the share of rows of
    which another logit is the largest.
    """

    part: str
    effect: float
    labels_changed: float


class ExportTrial(Part):
    """One int8 graph that was tried: how many parts stayed in float, and what that cost.

    ``drop`` is the largest loss of the main score over the splits, ``None`` where that is not defined.
    """

    kept_in_float: int
    drop: float | None


class ExportResult(Part):
    """What was written, and the proof.

    ``form``, ``opset``, ``inputs`` and ``activation`` are ``None`` or empty where no graph was written.
    ``parity`` compares, by split, what a fresh process loaded from the folder with the model before;
    ``before`` are the scores of that. ``drop`` is the largest loss of the main score over these splits, a
    fraction.
    ``kept_in_float`` names the parts that int8 would have hurt most, by the ``ranking`` of all, the worst
    first; there is none where nothing had to stay in float. ``fused`` counts the fused operators
    of the graph, ``fused_expected`` what the shape of the model calls for. ``failures`` say why the folder
    must not be used; empty is proven.
    """

    format: str
    precision: str
    form: str | None = None
    opset: int | None = None
    inputs: tuple[str, ...] = ()
    activation: str | None = None
    fused: dict[str, int] = Field(default_factory=dict)
    fused_expected: dict[str, int] = Field(default_factory=dict)
    tolerance: float | None
    max_drop: float
    batch_size: int
    parity: dict[str, Parity]
    before: dict[str, dict[str, float | None]]
    drop: float | None
    trials: tuple[ExportTrial, ...] = ()
    kept_in_float: tuple[str, ...] = ()
    ranking: tuple[RankedPart, ...] = ()
    failures: tuple[str, ...]
    size_before: Size
    latency_before: tuple[Latency | Unavailable, ...]
    speedups: tuple[SpeedupResult, ...]
