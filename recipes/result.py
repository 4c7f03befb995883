"""What a run leaves behind: the numbers, and all that is needed to know where they come from.

``run.json`` is a ``Result``; docs/run-json.md describes its keys. They are stable: a key is added or, with a
new ``schema_version``, changed; never silently.
"""

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from pydantic import Field, ValidationError

from compress.latency import Latency, Unavailable
from compress.machine import Machine
from compress.size import Size, model_files
from compress.uncertainty import McNemar, ScoreDifference, ScoreInterval
from encoder.config import EncoderConfig
from encoder.data_report import DataReport
from encoder.errors import CheckpointError, ConfigError
from encoder.files import RUN_FILE as RUN_FILE
from encoder.files import OutputFolder, write_atomic
from encoder.task import Task, TaskKind
from recipes.class_scores import PerClass
from recipes.compress_result import CompressResult
from recipes.distill_result import DistillResult
from recipes.export_result import ExportResult
from recipes.freeze_verdict import Point, Verdict
from recipes.part import Part
from recipes.pruning_result import PruningResult
from recipes.variant import Variant, describe_variant

if TYPE_CHECKING:
    from encoder.data import TaskData

# Makes a model too, but none that labels anything: its run.json is no `Result`.
PRETRAINING = "pretrain"
SCHEMA_VERSION = 1


class ModelResult(Part):
    """The model of a run. ``sha256`` is over its config and weights: equal models, equal hash."""

    source: str
    sha256: str
    family: str
    task: TaskKind
    labels: tuple[str, ...]
    pair: bool
    num_hidden_layers: int
    hidden_size: int
    max_length: int
    variant: Variant | None = None


class Parent(Part):
    """The model that a run started from; ``run`` is the head of its own run.json, where it has one."""

    source: str
    sha256: str
    run: dict[str, Any] | None = None


class Encoded(Part):
    """What tokenizing did to a split: the tokens that are kept, and what was cut at ``max_length``."""

    rows: int
    rows_cut: int
    tokens: int
    tokens_lost: int
    tokens_unknown: int


class DataResult(Part):
    """The data of a run. ``fingerprint`` is a hash of its content, wherever it lies.

    ``report`` is what reading found; ``encoded`` says, by split, what tokenizing did;
    ``validation_fraction``, which share of the training rows was cut off, if any was.
    """

    source: str
    fingerprint: str
    report: DataReport
    encoded: dict[str, Encoded]
    validation_fraction: float | None = None


class Epoch(Part):
    """One epoch: mean training loss, and the validation scores after it."""

    epoch: int
    loss: float | None
    validation: dict[str, float | None] | None = None


class TrainingResult(Part):
    """How training went. ``precision`` is what was computed in; ``best_epoch`` is the one that was kept.

    ``frozen_seconds`` is what computing the frozen layers took, once and before the updates that ``seconds``
    counts; ``None`` where they were computed at every update, or nothing was frozen.
    """

    trainable_parameters: int
    total_parameters: int
    frozen: str
    new_parameters: tuple[str, ...]
    epochs: tuple[Epoch, ...]
    best_epoch: int
    best_metric: str
    seconds: float
    frozen_seconds: float | None = None
    rows_per_s: float
    peak_memory_bytes: int | None
    device_memory_bytes: int | None
    precision: Literal["fp32", "bf16"]
    learning_rate: float | None = None
    device: str
    threads: int
    resumed_from_step: int | None = None


class Against(Part):
    """Another model on the same rows, those of ``split``.

    ``difference`` is the main metric of the run's model less that of the other; ``mcnemar`` has the run's
    model first, and is ``None`` for regression. ``verdict`` says in words what both allow to claim.
    """

    source: str
    sha256: str
    split: str
    scores: dict[str, float | None]
    difference: ScoreDifference | None
    mcnemar: McNemar | None
    verdict: str


class SweepPoint(Point):
    """A point of a sweep with what it cost: the mean over the seeds of ``seconds``, the most of memory.

    ``seconds`` are those of the updates. ``peak_memory_bytes`` is of the process while the point was trained,
    ``added_memory_bytes`` that beyond what was there before: both ``None`` where the system does not tell.
    ``device_memory_bytes`` is of the GPU.
    """

    trainable_parameters: int
    seconds: float
    peak_memory_bytes: int | None
    added_memory_bytes: int | None = None
    device_memory_bytes: int | None


class FreezeSweep(Part):
    """A score against the number k of frozen layers, on ``split``, and what follows from it.

    ``frozen_seconds`` is what computing the frozen layers took, once for all points; ``kept_seed`` the seed
    of the chosen k whose model this run is about: that with the best score.
    """

    metric: str
    split: str
    rows: int
    seeds: tuple[int, ...]
    max_drop: float | None
    total_parameters: int
    points: tuple[SweepPoint, ...]
    verdict: Verdict
    kept_seed: int
    frozen_seconds: float


class Run(Part):
    """What every run.json holds. ``notes`` are the sentences that were shown while it ran.

    ``parent`` is the model that was trained further, changed or measured.
    """

    schema_version: int = SCHEMA_VERSION
    command: str
    created: datetime
    seconds: float
    output: str | None
    config: dict[str, Any]
    seed: int | None
    machine: Machine
    parent: Parent | None
    notes: tuple[str, ...]

    def to_json(self) -> str:
        """The text of run.json: two spaces of indentation, a line feed at the end, no NaN."""
        return self.model_dump_json(indent=2) + "\n"


class Result(Run):
    """One run of a command that makes or scores a model.

    ``intervals`` are those of the main metric, by split; a split whose interval is not known is not in it.
    ``per_class`` is by split too, and empty for regression.
    ``sweep``: of `enc freeze-sweep`, which makes the model of one of its points. ``pruning``: of a command
    that removes something from its parent. ``distillation``: of `enc distill`, whose parent is the teacher.
    ``export``: of `enc export`. ``compress``: of `enc compress`, which exports too.
    """

    model: ModelResult
    data: DataResult
    training: TrainingResult | None
    main_metric: str
    scores: dict[str, dict[str, float | None]]
    intervals: dict[str, ScoreInterval] = Field(default_factory=dict)
    per_class: dict[str, PerClass] = Field(default_factory=dict)
    against: Against | None = None
    latency: tuple[Latency | Unavailable, ...]
    size: Size | None
    sweep: FreezeSweep | None = None
    pruning: PruningResult | None = None
    distillation: DistillResult | None = None
    export: ExportResult | None = None
    compress: CompressResult | None = None


def read_result(folder: Path) -> Result | None:
    """The result in ``folder``/run.json, or ``None`` where there is none, as beside a pretrained encoder.

    Raises:
        CheckpointError: run.json is there and is not a result.
    """
    path = folder / RUN_FILE
    if not path.is_file():
        return None
    content = path.read_bytes()
    if _is_pretraining(content):
        return None
    try:
        return Result.model_validate_json(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise CheckpointError(
            f"{path}: not a result of enc: {where}: {first['msg'].lower()}; "
            "delete it if the model beside it is to be used without it"
        ) from error


def _is_pretraining(content: bytes) -> bool:
    try:
        return bool(json.loads(content)["command"] == PRETRAINING)
    except (ValueError, KeyError, TypeError):
        return False


def check_output(output: Path | None, *, overwrite: bool) -> OutputFolder | None:
    """The folder of a run that makes no model, checked before anything is computed.

    Raises:
        ConfigError: it cannot be made; or it holds a model, which must not be replaced by a measurement.
    """
    if output is None:
        return None
    if (output / "config.json").exists():
        raise ConfigError(f"--output {output}: a model is in that folder; choose another name")
    folder = OutputFolder(output, overwrite=overwrite)
    folder.check()
    return folder


def save_run(run: Run, folder: OutputFolder | None) -> None:
    """Write run.json into ``folder``, which appears with it."""
    if folder is not None:
        write_atomic(folder.open() / RUN_FILE, run.to_json())
        folder.finish()


def hash_model(folder: Path) -> str:
    """SHA-256 over the names and bytes of the files that decide a model's output, in lower-case hex."""
    digest = hashlib.sha256()
    for path in model_files(folder):
        if path.name == "config.json" or path.suffix in (".safetensors", ".bin", ".onnx", ".data"):
            digest.update(f"{path.relative_to(folder).as_posix()}\0{path.stat().st_size}\0".encode())
            with path.open("rb") as file:
                while block := file.read(1 << 20):
                    digest.update(block)
    return digest.hexdigest()


class _Described(Protocol):
    """A classifier, or what a folder says of one."""

    @property
    def config(self) -> EncoderConfig: ...

    @property
    def task(self) -> Task: ...


def describe_model(source: str, folder: Path, model: _Described, max_length: int) -> ModelResult:
    """``model`` as it is saved in ``folder``, which is or will be called ``source``."""
    return ModelResult(
        source=source,
        sha256=hash_model(folder),
        family=model.config.family,
        task=model.task.kind,
        labels=model.task.labels,
        pair=model.task.pair,
        num_hidden_layers=model.config.num_hidden_layers,
        hidden_size=model.config.hidden_size,
        max_length=max_length,
        variant=describe_variant(model.config),
    )


def describe_data(data: "TaskData", encoded: Mapping[str, Encoded]) -> DataResult:
    """``data`` as it was read; ``encoded`` is by split."""
    return DataResult(
        source=data.source,
        fingerprint=data.fingerprint,
        report=data.report,
        encoded=dict(encoded),
        validation_fraction=data.validation_fraction,
    )


def describe_parent(source: str, folder: Path) -> Parent:
    """Where a run starts from, with the head of the run that made it."""
    try:
        run = json.loads((folder / RUN_FILE).read_bytes())
    except (OSError, ValueError):
        run = None
    head = None
    if isinstance(run, dict):
        head = {key: run[key] for key in ("command", "created", "parent", "scores") if key in run}
    return Parent(source=source, sha256=hash_model(folder), run=head)


def without_nan(scores: Mapping[str, float]) -> dict[str, float | None]:
    """``scores`` with ``None`` for what is not a number, which JSON cannot say."""
    return {name: value if value == value else None for name, value in scores.items()}


def now() -> datetime:
    """The time in UTC, to the second."""
    return datetime.now(UTC).replace(microsecond=0)
