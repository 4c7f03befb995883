"""The report on a folder of runs, as plain data: the same for a page, for Markdown and for JSON."""

import shlex
from collections.abc import Iterator
from datetime import datetime

from encoder.errors import ConfigError
from recipes.ledger import make_tree, read_named_folder
from recipes.observer import Observer, Silent
from recipes.part import Part
from recipes.report_config import ReportConfig
from recipes.report_headline import Headline, make_headline
from recipes.report_models import find_models
from recipes.report_parts import (
    CandidatesPart,
    ClassPart,
    DepthPart,
    LatencyPart,
    MachinePart,
    ProbePart,
    ProfilePart,
    RemovalPart,
    RunPart,
    SweepPart,
    TrainingPart,
    find_candidates,
    find_classes,
    find_depths,
    find_latencies,
    find_machines,
    find_probes,
    find_profiles,
    find_removals,
    find_runs,
    find_sweeps,
    find_trainings,
)
from recipes.report_scores import Rows
from recipes.report_speed import Circumstances, Speeds
from recipes.report_steps import Step, make_steps
from recipes.result import now


class Timed(Part):
    """The circumstances in which the latencies of the steps are compared."""

    device: str
    device_name: str
    threads: int
    batch_size: int
    sequence_length: int | None
    mean_tokens: float


class Missing(Part):
    """A chart without data: ``what`` is missing, and the ``command`` that would fill it."""

    what: str
    command: str


class Report(Part):
    """All that the runs below ``folder`` say together. Steps are called by their number."""

    folder: str
    created: datetime
    headline: Headline | None
    rows: Rows | None
    timed: Timed | None
    steps: tuple[Step, ...]
    sweeps: tuple[SweepPart, ...]
    removals: tuple[RemovalPart, ...]
    profiles: tuple[ProfilePart, ...]
    classes: tuple[ClassPart, ...]
    latencies: tuple[LatencyPart, ...]
    candidates: tuple[CandidatesPart, ...]
    trainings: tuple[TrainingPart, ...]
    probes: tuple[ProbePart, ...]
    depths: tuple[DepthPart, ...]
    runs: tuple[RunPart, ...]
    machines: tuple[MachinePart, ...]
    missing: tuple[Missing, ...]
    left_out: tuple[str, ...]

    def to_json(self) -> str:
        """What `enc report --json` prints."""
        return self.model_dump_json(indent=2) + "\n"

    def step(self, number: int) -> Step:
        """The step that is called ``number``."""
        return self.steps[number - 1]


def report(config: ReportConfig, observer: Observer | None = None) -> Report:
    """The report on ``config.folder``; notes say which files were left out.

    Raises:
        ConfigError: no such folder, or no run in it.
    """
    folder, entries, problems = read_named_folder(config.folder, observer or Silent())
    if not entries:
        left_out = f"; {len(problems)} left out, see above" if problems else ""
        raise ConfigError(
            f"{config.folder}: no run.json that could be read in it or below{left_out}; "
            f"enc finetune --output {shlex.quote(str(config.folder / 'NAME'))} … makes one"
        )
    speeds = Speeds(entries)
    found = find_models(make_tree(entries))
    steps, reference = make_steps(found, folder, speeds)
    rows = None if reference is None else reference.describe()
    names = {step.sha256: step.name for step in reversed(steps)}
    made = Report(
        folder=str(config.folder),
        created=now(),
        headline=make_headline(found, steps, rows),
        rows=rows,
        timed=_describe_timed(speeds.usual([step.sha256 for step in steps])),
        steps=tuple(steps),
        sweeps=tuple(find_sweeps(entries, folder)),
        removals=tuple(find_removals(found, steps)),
        profiles=tuple(find_profiles(entries, names, folder)),
        classes=tuple(find_classes(found, steps, reference)),
        latencies=tuple(find_latencies(entries, steps)),
        candidates=tuple(find_candidates(entries, folder)),
        trainings=tuple(find_trainings(found, steps)),
        probes=tuple(find_probes(entries, folder)),
        depths=tuple(find_depths(entries, folder)),
        runs=tuple(find_runs(entries, folder)),
        machines=tuple(find_machines(entries, folder)),
        missing=(),
        left_out=tuple(problems),
    )
    return made.model_copy(update={"missing": tuple(_missing(made))})


def _describe_timed(where: Circumstances | None) -> Timed | None:
    if where is None:
        return None
    return Timed(
        device=where.device,
        device_name=where.device_name,
        threads=where.threads,
        batch_size=where.shape.batch_size,
        sequence_length=where.shape.sequence_length,
        mean_tokens=where.shape.mean_tokens,
    )


def _missing(made: Report) -> Iterator[Missing]:
    """What could be in the report and is not, each with a command that can be typed as it stands."""
    classifiers = [step for step in made.steps if step.score is not None and step.kept]
    first = shlex.quote(classifiers[0].source) if classifiers else "MODEL"
    last = shlex.quote(classifiers[-1].source) if classifiers else "MODEL"
    source = next((step.source for step in made.steps if step.score is None), None)
    encoder = shlex.quote(source) if source else "MODEL"
    data = shlex.quote(made.rows.data) if made.rows else "DATA"

    def out(name: str) -> str:
        return shlex.quote(f"{made.folder.rstrip('/')}/{name}")

    if made.headline is not None and not made.headline.compared:
        ends = [made.step(number) for number in (made.headline.step, made.headline.first)]
        new, old = (shlex.quote(step.source) for step in ends)
        command = f"enc evaluate {new} --data {data} --against {old} --output {out('evaluate')}"
        yield Missing(what=f"{ends[0].name} and {ends[1].name} were not compared row by row", command=command)
    if made.headline is not None and (gain := made.step(made.headline.step).gain) and gain.disturbed:
        old, new = (
            shlex.quote(made.step(number).source) for number in (made.headline.first, made.headline.step)
        )
        command = f"enc bench {old} {new} --data {data} --output {out('bench')}"
        yield Missing(what="no timing of a machine that was quiet", command=command)
    if len(classifiers) == 1:
        command = f"enc distill {first} --data {data} --output {out('distill')} --layers 3"
        yield Missing(what="there is one model only, and nothing beside it", command=command)
    elif sum(step.placed_ms is not None for step in classifiers) < 2:
        what = "fewer than two models here were timed under the same circumstances"
        yield Missing(what=what, command=f"enc bench {first} {last} --data {data} --output {out('bench')}")
    if not made.sweeps:
        command = f"enc freeze-sweep --model {encoder} --data {data} --output {out('freeze-sweep')}"
        yield Missing(what="no freeze-sweep among these runs", command=command)
    if not any(part.unit == "heads" for part in made.removals):
        command = f"enc prune-heads {first} --data {data} --output {out('prune-heads')} --sparsity 0.4"
        yield Missing(what="no heads were removed in these runs", command=command)
    if not made.profiles:
        command = f"enc profile {first} --sequence-lengths 16,64,256 --output {out('profile')}"
        yield Missing(what="no profile of where the time goes among these runs", command=command)
    if not made.classes and not (made.rows and made.rows.metric in ("pearson", "spearman", "mse")):
        command = f"enc evaluate {last} --data {data} --output {out('evaluate')}"
        yield Missing(what="no scores by class in these runs", command=command)
    if not made.latencies:
        yield Missing(what="nothing was timed", command=f"enc bench {first} --output {out('bench')}")
    if not made.candidates:
        command = f"enc compress {first} --data {data} --output {out('compress')} --target-speedup 4"
        yield Missing(what="no search for the best compression among these runs", command=command)
    if not made.trainings:
        command = f"enc finetune --model {encoder} --data {data} --output {out('finetune')}"
        yield Missing(what="nothing was trained in these runs", command=command)
