"""What a pruning leaves behind: the part of run.json that only these commands have."""

from compress.latency import Latency, Unavailable
from compress.paired import Speedup
from compress.size import Size
from compress.workload import Shape
from recipes.part import Part


class PrunedLayer(Part):
    """A layer of the model that was pruned.

    ``before`` and ``after`` count its units: heads, neurons, or 1 and 0 for the layer itself.
    ``heads_before`` and ``heads_after`` are original head numbers; ``importance`` is by head, in the order of
    ``heads_before``, or of the layer as a whole; ``None`` for neurons, which are too many, and where nothing
    was scored.
    """

    layer: int
    before: int
    after: int
    heads_before: tuple[int, ...] | None = None
    heads_after: tuple[int, ...] | None = None
    importance: tuple[float, ...] | None = None


class Control(Part):
    """Random choices of as many units, treated alike but not trained: their main scores on ``split``."""

    split: str
    scores: tuple[float | None, ...]


class SearchTrial(Part):
    """A number of units that was tried; ``drop`` is the loss of main validation score,
    ``None`` where that is not defined any more."""

    units: int
    sparsity: float
    drop: float | None


class SpeedupResult(Part):
    """How much faster the pruned model is for one shape; ``verdict`` in words."""

    device: str
    shape: Shape
    speedup: Speedup
    verdict: str


class PruningResult(Part):
    """What was removed, how it was chosen, and the proof.

    ``unit``: heads, neurons or layers. ``sparsity`` is the share of ``units_before`` that went, as it came
    out in whole units. ``rows`` training rows were scored on (0: none were needed), ``repair_rows`` repaired
    on. ``before`` are the scores of the parent, by split. ``masked_difference``: the largest difference of
    logits between the model with the removed units silenced and with them gone, both without repair;
    ``reloaded_difference``: between the saved model in a fresh process and the one in memory.
    ``recover_epochs`` were trained after the last step or, with ``recover_each_step``, after each;
    with ``recover_teacher`` the parent was the teacher.
    ``failure`` says why ``max_drop`` could not be met; the model is then the best that was found.
    ``seconds`` is what choosing, removing and repairing took, ``recovery_seconds`` all training.
    """

    unit: str
    method: str
    scope: str | None
    normalize: bool
    targets: str
    steps: int
    rows: int
    rows_split: str
    repair_rows: int
    recover_epochs: int
    recover_each_step: bool = False
    recover_teacher: bool = False
    units_before: int
    units_after: int
    sparsity: float
    layers: tuple[PrunedLayer, ...]
    before: dict[str, dict[str, float | None]]
    control: Control | None
    max_drop: float | None
    trials: tuple[SearchTrial, ...]
    failure: str | None
    masked_difference: float
    reloaded_difference: float
    size_before: Size
    latency_before: tuple[Latency | Unavailable, ...]
    speedups: tuple[SpeedupResult, ...]
    seconds: float
    recovery_seconds: float = 0.0
