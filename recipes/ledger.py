"""The runs in a folder and how they descend from each other, read from their run.json files."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from compress.latency import Latency, Unavailable
from encoder.errors import ConfigError
from encoder.files import FAILED_SUFFIX, UNFINISHED_SUFFIX
from recipes.depth_result import DepthResult
from recipes.measurements import BenchResult, ProfileResult
from recipes.observer import Observer
from recipes.pretrain_result import PretrainResult
from recipes.probe_verdict import ProbeResult
from recipes.result import RUN_FILE, SCHEMA_VERSION, ModelResult, Parent, Result, Run

# What `enc` may have written; a command not in here makes or scores a model and writes a `Result`.
KINDS: Mapping[str, type[Run]] = {
    "bench": BenchResult,
    "profile": ProfileResult,
    "probe": ProbeResult,
    "pretrain": PretrainResult,
    "depth": DepthResult,
}


@dataclass(frozen=True)
class LedgerRun:
    """A run.json that was read, and the folder it is in.

    A run of `enc bench` on several models stands in the tree under each of them, as so many of these;
    ``number`` says which model is meant.
    """

    folder: Path
    run: Run
    number: int = 0

    @property
    def made(self) -> str | None:
        """The SHA-256 of the model that the run made; ``None`` where it only measured one."""
        run = self.run
        if isinstance(run, PretrainResult):
            return run.encoder.sha256
        if not isinstance(run, Result) or run.command == "evaluate":
            return None
        return None if run.parent and run.parent.sha256 == run.model.sha256 else run.model.sha256

    @property
    def model(self) -> ModelResult | None:
        """The model that was made or measured."""
        if isinstance(self.run, BenchResult):
            return self.run.models[self.number].model
        return self.run.model if isinstance(self.run, (Result, ProfileResult)) else None

    @property
    def parent(self) -> Parent | None:
        """The model that the run stands under."""
        model = self.model
        if self.number == 0 or model is None:
            return self.run.parent
        return Parent(source=model.source, sha256=model.sha256)

    @property
    def latencies(self) -> list[Latency]:
        """What the run says of the model at batch size 1, the CPU first."""
        found: list[Latency | Unavailable] = []
        if isinstance(self.run, Result):
            found = list(self.run.latency)
        elif isinstance(self.run, BenchResult):
            found = [row.latency for row in self.run.rows if row.model == self.number]
        single = [one for one in found if isinstance(one, Latency) and one.shape.batch_size == 1]
        return sorted(single, key=lambda one: one.device != "cpu")

    @property
    def bytes_on_disk(self) -> int | None:
        """The size of the model."""
        if isinstance(self.run, BenchResult):
            return self.run.models[self.number].size.bytes_on_disk
        if isinstance(self.run, PretrainResult):
            return self.run.bytes_on_disk
        size = self.run.size if isinstance(self.run, Result) else None
        return None if size is None else size.bytes_on_disk

    def each_model(self) -> Iterator["LedgerRun"]:
        """This run for each different model that it measured."""
        models = self.run.models if isinstance(self.run, BenchResult) else ()
        numbers = {one.model.sha256: number for number, one in reversed(list(enumerate(models)))}
        for number in sorted(numbers.values()) or [0]:
            yield replace(self, number=number)


@dataclass(eq=False)
class Node:
    """A run with all that came of its model; ``entry`` is ``None`` for a model from outside.

    ``source`` is how the model was called, where it is from outside, else the folder.
    """

    source: str
    entry: LedgerRun | None
    children: list["Node"] = field(default_factory=list)

    def walk(self, depth: int = 0) -> Iterator[tuple[int, "Node"]]:
        """This node and all below, depth first."""
        yield depth, self
        for child in self.children:
            yield from child.walk(depth + 1)


def read_named_folder(named: Path, observer: Observer) -> tuple[Path, list[LedgerRun], list[str]]:
    """The folder that the user ``named``, and ``read_runs`` of it; the observer is told what is left out.

    Raises:
        ConfigError: no such folder.
    """
    folder = named.expanduser()
    if not folder.is_dir():
        what = "a file, not a folder" if folder.exists() else "no such folder"
        raise ConfigError(f"{named}: {what}; expected one with the folders of runs in it")
    entries, problems = read_runs(folder)
    for problem in problems:
        observer.note(problem)
    return folder, entries, problems


def read_runs(folder: Path) -> tuple[list[LedgerRun], list[str]]:
    """All runs in ``folder`` and the folders below, oldest first; and what is wrong with the others.

    Folders of unfinished runs and of failed exports are passed over.
    """
    entries, problems = [], []
    for path in sorted(folder.rglob(RUN_FILE)):
        if any(part.endswith((UNFINISHED_SUFFIX, FAILED_SUFFIX)) for part in path.relative_to(folder).parts):
            continue
        try:
            entries.append(LedgerRun(path.parent, read_run(path)))
        except ValueError as error:
            problems.append(f"{path}: {error}; left out")
    return sorted(entries, key=lambda entry: (entry.run.created.timestamp(), str(entry.folder))), problems


def read_run(path: Path) -> Run:
    """The run in a run.json.

    Raises:
        ValueError: it cannot be read, or is not one; the message says why.
    """
    try:
        values: Any = json.loads(path.read_bytes())
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ValueError("not JSON") from error
    if not isinstance(values, dict) or not {"schema_version", "command"} <= values.keys():
        raise ValueError("not a run of enc")
    version = values["schema_version"]
    if not isinstance(version, int) or version > SCHEMA_VERSION:
        raise ValueError(f"by another enc: its schema_version is {version}, this one reads {SCHEMA_VERSION}")
    try:
        return KINDS.get(str(values["command"]), Result).model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"not a run of enc: {where}: {first['msg'].lower()}") from error


def make_tree(entries: Sequence[LedgerRun]) -> list[Node]:
    """The runs under the model that each started from, by the SHA-256 of the models.

    A model that no run made stands at a root of its own; where its own origin is known and is here, under
    that. Of several runs that made the same model, the one in the folder that a child names is its parent,
    otherwise the oldest.
    """
    nodes = [Node(str(one.folder), one) for entry in entries for one in entry.each_model()]
    made: dict[str, list[Node]] = {}
    for node in nodes:
        if node.entry is not None and (sha256 := node.entry.made):
            made.setdefault(sha256, []).append(node)
    roots: list[Node] = []
    outer: dict[str, Node] = {}

    def parent_of(parent: Parent) -> Node:
        if candidates := made.get(parent.sha256):
            source = Path(parent.source)
            named = (node for node in candidates if node.entry and _same_folder(node.entry.folder, source))
            return next(named, candidates[0])
        if parent.sha256 not in outer:
            outer[parent.sha256] = node = Node(parent.source, None)
            before = _parent_in(parent.run)
            (roots if before is None else parent_of(before).children).append(node)
        return outer[parent.sha256]

    for node in nodes:
        assert node.entry is not None
        parent = node.entry.parent
        above = None if parent is None else parent_of(parent)
        if above is None or _is_below(above, node):
            roots.append(node)
        else:
            above.children.append(node)
    return roots


def _parent_in(run: Mapping[str, Any] | None) -> Parent | None:
    """The parent in the head of a run.json, which any program may have written."""
    try:
        return Parent.model_validate(run["parent"]) if run and run.get("parent") else None
    except ValidationError:
        return None


def _same_folder(one: Path, other: Path) -> bool:
    return one.resolve() == other.expanduser().resolve()


def _is_below(node: Node, top: Node) -> bool:
    """Whether ``node`` is ``top`` or descends from it: only forged files can make a circle."""
    return any(one is node for _, one in top.walk())
