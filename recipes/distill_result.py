"""What a distillation leaves behind: the part of run.json that only it has."""

from compress.latency import Latency, Unavailable
from compress.size import Size
from compress.uncertainty import McNemar, ScoreDifference, ScoreInterval
from recipes.part import Part
from recipes.pruning_result import SpeedupResult


class TeacherResult(Part):
    """The teacher on the same rows, by split, and what it costs."""

    scores: dict[str, dict[str, float | None]]
    intervals: dict[str, ScoreInterval]
    num_hidden_layers: int
    size: Size
    latency: tuple[Latency | Unavailable, ...]


class ControlResult(Part):
    """The same student, started and trained alike, from the labels alone.

    ``agreement`` as in ``DistillResult``. ``difference`` is the student's main score less the control's on
    ``split``, ``mcnemar`` has the student first; ``verdict`` says what both allow to claim. ``seconds`` are
    those of its updates.
    """

    scores: dict[str, dict[str, float | None]]
    intervals: dict[str, ScoreInterval]
    agreement: dict[str, float | None]
    split: str
    difference: ScoreDifference | None
    mcnemar: McNemar | None
    verdict: str
    seconds: float


class DistillResult(Part):
    """How a student was made.

    ``init_layers``: the teacher's layers it started from, or ``None``; ``sizes``: its layers after each step.
    ``weights``: by loss, only those that count. ``states``: for each of the student's hidden states the
    teacher's that it was compared with (0 are the embeddings). ``agreement``: by split, the share of rows
    that get the teacher's labels; of a regression the correlation with its numbers. ``target_seconds``: the
    teacher's one pass over the training rows; ``target_bytes``: what was kept of it, ``on_disk`` or not.
    ``speedups`` compare the student with the teacher; the control has the student's shape.
    """

    init_layers: tuple[int, ...] | None
    sizes: tuple[int, ...]
    weights: dict[str, float]
    temperature: float
    hidden_loss: str
    states: dict[int, int]
    relation_heads: int | None
    unlabeled_rows: int
    target_seconds: float
    target_bytes: int
    on_disk: bool
    teacher: TeacherResult
    agreement: dict[str, float | None]
    control: ControlResult | None
    speedups: tuple[SpeedupResult, ...]
