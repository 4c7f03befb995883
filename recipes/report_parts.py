"""What the runs of a report hold beside scores, speed and size, each part with the name of its run."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from compress.latency import Latency
from compress.machine import Machine
from compress.profile import Profile
from recipes.class_scores import PerClass
from recipes.command_line import command_line
from recipes.compress_result import Candidate, Goal
from recipes.depth_result import DepthPoint, DepthResult
from recipes.ledger import LedgerRun
from recipes.measurements import ProfileResult
from recipes.part import Part
from recipes.probe_verdict import LayerProbe, ProbeResult
from recipes.pruning_result import PrunedLayer
from recipes.report_models import Found
from recipes.report_scores import Reference
from recipes.report_speed import all_latencies
from recipes.report_steps import Step, short_name
from recipes.result import Epoch, FreezeSweep, Result


class SweepPart(Part):
    """A score against the number of frozen layers."""

    name: str
    sweep: FreezeSweep


class RemovalPart(Part):
    """What was removed of a model, layer by layer."""

    name: str
    parent: str
    unit: str
    method: str
    units_before: int
    units_after: int
    layers: tuple[PrunedLayer, ...]


class ProfilePart(Part):
    """Where the time of a model goes; ``model`` is its name."""

    name: str
    model: str
    profile: Profile
    advice: str


class ClassPart(Part):
    """How each class fares with the model of a step, on the rows of the report where ``here``."""

    step: int
    name: str
    split: str
    here: bool
    per_class: PerClass


class LatencyPart(Part):
    """A latency that some run measured of the model ``name``."""

    name: str
    latency: Latency


class TrainingPart(Part):
    """The epochs of a training: the loss, and the validation scores after each."""

    name: str
    metric: str
    best_epoch: int
    epochs: tuple[Epoch, ...]


class ProbePart(Part):
    """What each layer of ``encoder`` knows of the labels."""

    name: str
    encoder: str
    layers: tuple[LayerProbe, ...]
    sentences: tuple[str, ...]


class DepthLine(Part):
    """An encoder at every depth."""

    name: str
    points: tuple[DepthPoint, ...]


class DepthPart(Part):
    """What one `enc depth` found of its encoders; gradients are those of ``learns``."""

    name: str
    learns: str
    rows: int
    lines: tuple[DepthLine, ...]


class CandidatesPart(Part):
    """What one `enc compress` looked at, by ``metric`` on validation rows, and what it was to meet."""

    name: str
    metric: str
    goal: Goal
    candidates: tuple[Candidate, ...]
    verdict: tuple[str, ...]


class RunPart(Part):
    """A run as it can be repeated."""

    name: str
    command: str
    line: str
    created: datetime
    seconds: float
    seed: int | None


class MachinePart(Part):
    """A machine, with its library versions, and the runs that were made on it."""

    runs: tuple[str, ...]
    machine: Machine


def find_sweeps(entries: Iterable[LedgerRun], folder: Path) -> list[SweepPart]:
    """Those of all runs of `enc freeze-sweep`."""
    return [
        SweepPart(name=_name(entry, folder), sweep=entry.run.sweep)
        for entry in entries
        if isinstance(entry.run, Result) and entry.run.sweep is not None
    ]


def find_removals(found: Sequence[Found], steps: Sequence[Step]) -> list[RemovalPart]:
    """Those of all runs that removed something, in the order of the steps."""
    parts = []
    for one, step in zip(found, steps, strict=True):
        run = one.run
        if run is None or run.pruning is None:
            continue
        pruning = run.pruning
        parts.append(
            RemovalPart(
                name=step.name,
                parent=steps[one.parent].name if one.parent is not None else "",
                unit=pruning.unit,
                method=pruning.method,
                units_before=pruning.units_before,
                units_after=pruning.units_after,
                layers=pruning.layers,
            )
        )
    return parts


def find_profiles(entries: Iterable[LedgerRun], names: Mapping[str, str], folder: Path) -> list[ProfilePart]:
    """Those of all runs of `enc profile`; ``names`` of models are by SHA-256."""
    return [
        ProfilePart(
            name=_name(entry, folder),
            model=names.get(entry.run.model.sha256, short_name(entry.run.model.source, folder)),
            profile=entry.run.profile,
            advice=entry.run.advice,
        )
        for entry in entries
        if isinstance(entry.run, ProfileResult)
    ]


def find_classes(
    found: Sequence[Found], steps: Sequence[Step], reference: Reference | None
) -> list[ClassPart]:
    """Of each step the scores by class: of the rows of ``reference``, otherwise of another data's split."""
    parts = []
    for one, step in zip(found, steps, strict=True):
        split = None if step.score is None else step.score.split
        known = [
            (reference is not None and reference.is_of(scoring, split), scoring.per_class[split])
            for scoring in one.scorings
            if split is not None and split in scoring.per_class
        ]
        if known and split is not None:
            here, per_class = max(known, key=lambda one: one[0])  # of several the first
            parts.append(
                ClassPart(step=step.number, name=step.name, split=split, here=here, per_class=per_class)
            )
    return parts


def find_latencies(entries: Iterable[LedgerRun], steps: Sequence[Step]) -> list[LatencyPart]:
    """All latencies of models that have a name, each once; what a run measured of its own has its name."""
    names = {step.sha256: step.name for step in reversed(steps)}
    by_folder = {step.folder: step.name for step in steps if step.folder is not None}
    parts = [
        LatencyPart(name=by_folder.get(str(run.folder), names[sha256]) if run else names[sha256], latency=one)
        for sha256, run, one in all_latencies(entries)
        if sha256 in names
    ]
    return list({part.model_dump_json(): part for part in parts}.values())


def find_trainings(found: Sequence[Found], steps: Sequence[Step]) -> list[TrainingPart]:
    """Of each step the epochs of its training."""
    return [
        TrainingPart(
            name=step.name,
            metric=one.run.training.best_metric,
            best_epoch=one.run.training.best_epoch,
            epochs=one.run.training.epochs,
        )
        for one, step in zip(found, steps, strict=True)
        if one.run is not None and one.run.training is not None and one.run.training.epochs
    ]


def find_probes(entries: Iterable[LedgerRun], folder: Path) -> list[ProbePart]:
    """Those of all runs of `enc probe`."""
    return [
        ProbePart(
            name=_name(entry, folder),
            encoder=short_name(entry.run.encoder.source, folder),
            layers=entry.run.layers,
            sentences=entry.run.verdict.sentences,
        )
        for entry in entries
        if isinstance(entry.run, ProbeResult)
    ]


def find_depths(entries: Iterable[LedgerRun], folder: Path) -> list[DepthPart]:
    """Those of all runs of `enc depth` that looked at encoders."""
    return [
        DepthPart(
            name=_name(entry, folder),
            learns=entry.run.learns,
            rows=entry.run.rows,
            lines=tuple(
                DepthLine(name=f"{short_name(one.source, folder)}: {one.kind}", points=one.points)
                for one in entry.run.models
            ),
        )
        for entry in entries
        if isinstance(entry.run, DepthResult) and entry.run.learns is not None
    ]


def find_candidates(entries: Iterable[LedgerRun], folder: Path) -> list[CandidatesPart]:
    """The candidates of all runs of `enc compress`."""
    return [
        CandidatesPart(
            name=_name(entry, folder),
            metric=entry.run.main_metric,
            goal=entry.run.compress.goal,
            candidates=entry.run.compress.candidates,
            verdict=entry.run.compress.verdict,
        )
        for entry in entries
        if isinstance(entry.run, Result) and entry.run.compress is not None
    ]


def find_runs(entries: Iterable[LedgerRun], folder: Path) -> list[RunPart]:
    """All runs, the oldest first."""
    return [
        RunPart(
            name=_name(entry, folder),
            command=entry.run.command,
            line=command_line(entry.run.command, entry.run.config),
            created=entry.run.created,
            seconds=entry.run.seconds,
            seed=entry.run.seed,
        )
        for entry in entries
    ]


def find_machines(entries: Iterable[LedgerRun], folder: Path) -> list[MachinePart]:
    """Each different machine, or the same with other versions, once."""
    runs: dict[str, list[str]] = {}
    machines: dict[str, Machine] = {}
    for entry in entries:
        key = entry.run.machine.model_dump_json(exclude={"memory_bytes"})  # a limit may change by a page
        machines.setdefault(key, entry.run.machine)
        runs.setdefault(key, []).append(_name(entry, folder))
    return [MachinePart(runs=tuple(runs[key]), machine=machine) for key, machine in machines.items()]


def _name(entry: LedgerRun, folder: Path) -> str:
    return short_name(str(entry.folder), folder)
