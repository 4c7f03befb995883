"""The ledger: all runs in a folder, in a row and as a tree, each beside the first of its line."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from compress.latency import Latency
from compress.workload import Shape
from recipes.ledger import Node, make_tree, read_named_folder
from recipes.measurements import BenchResult, ProfileResult
from recipes.observer import Observer, Silent
from recipes.part import Part
from recipes.pretrain_result import PretrainResult
from recipes.probe_verdict import ProbeResult
from recipes.report_models import find_models
from recipes.report_speed import Gain, Speeds
from recipes.report_steps import make_steps
from recipes.result import Result, Run
from recipes.runs_config import RunsConfig

SPLITS = ("test", "validation", "train")


class Score(Part):
    """The main score of a run, on the split that says most; its interval where that is known."""

    metric: str
    split: str
    value: float | None
    low: float | None
    high: float | None


class SingleLatency(Part):
    """The latency at batch size 1, with what it must have in common with another to be comparable.

    ``disturbed``: other processes had the cores too much of the time, or the runs were not steady.
    """

    p50_ms: float
    disturbed: bool
    runtime: str
    device: str
    device_name: str
    threads: int
    shape: Shape


class Entry(Part):
    """A line of the ledger.

    ``folder`` is ``None`` for a model from outside, whose ``name`` is how it was called; else both are the
    folder. ``parent`` is the name of the line above it in the tree, ``depth`` how deep it is in there.
    ``model`` and ``parent_model`` are SHA-256. ``speedup`` and ``size_ratio`` compare it with the first run
    of its line that has the number: twice as fast is 2, half the size is 0.5. They are ``None`` where
    nothing is comparable: other machine, threads, runtime or shapes. ``speedup_how`` as in ``Gain``, whose
    ratio it is: that of `enc report`.
    """

    name: str
    folder: str | None = None
    parent: str | None
    depth: int
    command: str | None = None
    created: datetime | None = None
    model: str | None = None
    parent_model: str | None = None
    data: str | None = None
    score: Score | None = None
    latency: SingleLatency | None
    speedup: float | None
    speedup_how: str | None = None
    bytes_on_disk: int | None
    size_ratio: float | None


class Ledger(Part):
    """All runs below ``folder``, in the order of the tree; and the files that were left out, with the why."""

    folder: str
    runs: tuple[Entry, ...]
    left_out: tuple[str, ...]

    def to_json(self) -> str:
        """What `enc runs --json` prints."""
        return self.model_dump_json(indent=2) + "\n"

    def newest_first(self) -> list[Entry]:
        """The runs without the models from outside."""
        runs = {entry.folder: entry for entry in reversed(self.runs) if entry.folder is not None}
        return sorted(runs.values(), key=_age)


def _age(entry: Entry) -> tuple[float, str]:
    return -(entry.created.timestamp() if entry.created else 0.0), entry.name


def runs(config: RunsConfig, observer: Observer | None = None) -> Ledger:
    """The ledger of ``config.folder``; notes say which files were left out.

    Raises:
        ConfigError: no such folder.
    """
    folder, entries, problems = read_named_folder(config.folder, observer or Silent())
    roots = make_tree(entries)
    steps, _ = make_steps(find_models(roots), folder, Speeds(entries))
    gains = {step.folder: step.gain for step in steps if step.folder is not None and step.gain is not None}
    lines = [line for root in roots for line in _lines(root, None, 0, [], None, gains)]
    return Ledger(folder=str(config.folder), runs=tuple(lines), left_out=tuple(problems))


def _lines(
    node: Node,
    parent: str | None,
    depth: int,
    above: Sequence[Latency],
    size: int | None,
    gains: Mapping[str, Gain],
) -> Iterator[Entry]:
    """The line of ``node`` and those below; ``above`` and ``size`` are the first ones of its line.

    ``gains`` are of the runs that made a model, by folder.
    """
    entry = node.entry
    own = entry.latencies if entry else []
    own_size = entry.bytes_on_disk if entry else None
    known: dict[str, Any] = {}
    speedup = _speedup(own[0], above) if own else None
    how = None if speedup is None else "apart"
    if own and entry is not None and entry.made and (gain := gains.get(str(entry.folder))):
        speedup, how = gain.ratio, gain.how
    if entry is not None:
        known = {
            "folder": str(entry.folder),
            "command": entry.run.command,
            "created": entry.run.created,
            "model": entry.model.sha256 if entry.model else None,
            "parent_model": entry.parent.sha256 if entry.parent else None,
            "data": _data(entry.run),
            "score": _find_score(entry.run),
        }
    yield Entry(
        name=node.source,
        parent=parent,
        depth=depth,
        latency=_single(own[0]) if own else None,
        speedup=speedup,
        speedup_how=how,
        bytes_on_disk=own_size,
        size_ratio=own_size / size if own_size and size else None,
        **known,
    )
    # Of a model whose own run did not measure it, what a measurement of it found.
    measured = [child.entry for child in node.children if child.entry and child.entry.made is None]
    first = [*above, *own, *(latency for one in measured for latency in one.latencies)]
    for child in node.children:
        before = [*above, *own] if child.entry in measured else first
        yield from _lines(child, node.source, depth + 1, before, size or own_size, gains)


def _find_score(run: Run) -> Score | None:
    """The main metric on test, otherwise validation, otherwise train."""
    if not isinstance(run, Result):
        return None
    for split in SPLITS:
        if run.main_metric in run.scores.get(split, {}):
            interval = run.intervals.get(split)
            return Score(
                metric=run.main_metric,
                split=split,
                value=run.scores[split][run.main_metric],
                low=None if interval is None else interval.low,
                high=None if interval is None else interval.high,
            )
    return None


def _data(run: Run) -> str | None:
    if isinstance(run, PretrainResult):
        return ", ".join(run.corpus.sources)
    if isinstance(run, (Result, BenchResult, ProfileResult, ProbeResult)) and run.data is not None:
        return run.data.source
    return None


def _single(latency: Latency) -> SingleLatency:
    known = {name: getattr(latency, name) for name in SingleLatency.model_fields if name != "disturbed"}
    return SingleLatency(**known, disturbed=not latency.is_reliable)


def _speedup(own: Latency, above: Sequence[Latency]) -> float | None:
    """How much faster than the first of ``above`` with the same circumstances, best the same runtime too."""
    same = [
        one
        for one in above
        if all(getattr(one, name) == getattr(own, name) for name in ("device_name", "threads", "shape"))
    ]
    first = min(same, key=lambda one: one.runtime != own.runtime, default=None)
    return None if first is None else first.p50_ms / own.p50_ms
