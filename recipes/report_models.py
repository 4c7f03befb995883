"""The models of a report, found in the tree of runs, with what the runs around each say of it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from compress.size import Size
from compress.uncertainty import ScoreInterval
from encoder.wording import counted
from recipes.class_scores import PerClass
from recipes.ledger import LedgerRun, Node
from recipes.measurements import BenchResult
from recipes.result import DataResult, Result


class Scoring(NamedTuple):
    """Scores, intervals and scores by class of a model by split, and the data they are from."""

    data: DataResult
    metric: str
    scores: Mapping[str, Mapping[str, float | None]]
    intervals: Mapping[str, ScoreInterval]
    per_class: Mapping[str, PerClass]


@dataclass(frozen=True)
class Found:
    """A model in the tree, with what is known of it, before it is compared with others.

    ``parent`` and ``first`` are places in the list of all. ``results`` are of the run that made it, then of
    those that scored it; ``made_of_it`` of those that started from it.
    """

    node: Node
    sha256: str
    parent: int | None
    first: int | None
    depth: int
    results: tuple[Result, ...]
    made_of_it: tuple[Result, ...]
    benches: tuple[LedgerRun, ...]

    @property
    def run(self) -> Result | None:
        """The run that made it, if it is here and made a classifier."""
        entry = self.node.entry
        return entry.run if entry is not None and isinstance(entry.run, Result) else None

    @property
    def scorings(self) -> Iterator[Scoring]:
        """All scores there are of it, the best known first."""
        for run in self.results:
            yield Scoring(run.data, run.main_metric, run.scores, run.intervals, run.per_class)
        for run in self.made_of_it:
            if run.distillation is not None:
                teacher = run.distillation.teacher
                yield Scoring(run.data, run.main_metric, teacher.scores, teacher.intervals, {})
            elif part := run.pruning or run.export:
                yield Scoring(run.data, run.main_metric, part.before, {}, {})

    @property
    def size(self) -> Size | None:
        """How big it is."""
        sizes = [run.size for run in self.results]
        sizes += [
            entry.run.models[entry.number].size
            for entry in self.benches
            if isinstance(entry.run, BenchResult)
        ]
        for run in self.made_of_it:
            if part := run.pruning or run.export:
                sizes.append(part.size_before)
            elif run.distillation is not None:
                sizes.append(run.distillation.teacher.size)
        return next((one for one in sizes if one is not None), None)

    @property
    def bytes_on_disk(self) -> int | None:
        """Its size on disk, also of an encoder."""
        entry = self.node.entry
        if self.size is None:
            return None if entry is None else entry.bytes_on_disk
        return self.size.bytes_on_disk

    @property
    def num_hidden_layers(self) -> int | None:
        """Its layers, where they are known."""
        models = [run.model for run in self.results] + [entry.model for entry in self.benches]
        known = [model.num_hidden_layers for model in models if model is not None]
        known += [run.distillation.teacher.num_hidden_layers for run in self.made_of_it if run.distillation]
        return known[0] if known else None


def find_models(roots: Sequence[Node]) -> list[Found]:
    """The models in the trees below ``roots``, each after the one it was made of."""
    found: list[Found] = []

    def visit(node: Node, parent: int | None, depth: int) -> None:
        entry = node.entry
        sha256 = entry.made if entry else _sha256_of(node)
        if sha256 is None:  # only measured something that is not here, such as an encoder that was probed
            return
        below = [child.entry for child in node.children if child.entry is not None]
        own = [entry] if entry else []
        one = Found(
            node=node,
            sha256=sha256,
            parent=parent,
            first=None,
            depth=depth,
            results=_results([*own, *(child for child in below if child.made is None)]),
            made_of_it=_results(child for child in below if child.made is not None),
            benches=tuple(child for child in below if isinstance(child.run, BenchResult)),
        )
        before = None if parent is None else found[parent].first
        # A line starts with its first classifier: an encoder from elsewhere has no score.
        first = len(found) if before is None and next(one.scorings, None) is not None else before
        found.append(replace(one, first=first))
        place = len(found) - 1
        for child in node.children:
            if child.entry is None or child.entry.made is not None:
                visit(child, place, depth + 1)

    for root in roots:
        visit(root, None, 0)
    return found


def _results(entries: Iterable[LedgerRun]) -> tuple[Result, ...]:
    return tuple(entry.run for entry in entries if isinstance(entry.run, Result))


def _sha256_of(node: Node) -> str | None:
    """Of a model from elsewhere; ``None`` where nothing was made of it and nobody scored it."""
    for child in node.children:
        if child.entry is None:  # its own origin is known only because of what came of it
            return node.source
        if child.entry.parent is not None and isinstance(child.entry.run, (Result, BenchResult)):
            return child.entry.parent.sha256
    return None


def describe(one: Found) -> str:
    """What was done to make it, in a word or two."""
    run = one.run
    if run is None:
        made = one.node.entry
        return "from elsewhere" if made is None else made.run.command
    if run.command == "compress":
        precision = "" if run.export is None else f", {run.export.precision}"
        return f"compressed to {counted(run.model.num_hidden_layers, 'layer')}{precision}"
    if run.sweep is not None:
        frozen = run.sweep.verdict.chosen
        gone = ", not kept" if run.config.get("keep") == "none" else ""
        return f"fine-tuned, {frozen} layer{'' if frozen == 1 else 's'} frozen{gone}"
    if run.pruning is not None:
        return f"{run.pruning.units_after:,} of {run.pruning.units_before:,} {run.pruning.unit} left"
    if run.distillation is not None:
        return f"distilled to {counted(run.model.num_hidden_layers, 'layer')}"
    if run.export is not None:
        return f"{run.export.format}, {run.export.precision}"
    return {"finetune": "fine-tuned"}.get(run.command, run.command)
