"""Candidates made in earnest: exported, proven on validation rows, and measured beside the original."""

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from compress.latency import Latency, Unavailable
from compress.latency_probing import FORM
from compress.size import bytes_on_disk
from encoder.files import OutputFolder
from encoder.metrics import main_metric
from recipes.compress_candidates import Maker, Plan, find_fall
from recipes.compress_config import CompressConfig
from recipes.compress_result import Candidate, Goal
from recipes.compress_training import Teaching, emptied
from recipes.compress_verdict import keeps_score
from recipes.export import Written, find_failures, write_graph
from recipes.export_config import ExportConfig
from recipes.export_inputs import ExportedFrom, ExportInputs
from recipes.fields import MOST_POINTS
from recipes.observer import Observer
from recipes.pruning_search import ONE_POINT
from recipes.result import TrainingResult
from recipes.scoring import Scored, score_split
from recipes.side_by_side import BothLatencies, measure_in_turns

if TYPE_CHECKING:
    from encoder.model import Classifier

EXPORT_FOLDER = "export"
DECIDES = "validation"


@dataclass(frozen=True)
class Attempt:
    """A candidate with its ``export``, where it was good enough to be exported.

    ``folder`` is that of its model in torch; ``None`` where that is the original.
    """

    candidate: Candidate
    plan: Plan
    folder: Path | None
    training: TrainingResult | None = None
    export: "Exported | None" = None


@dataclass(frozen=True)
class Exported:
    """A candidate that was exported to ``folder``, proven and measured.

    ``inputs`` are what it was proven with, but for the model: not all of them are to stay in memory.
    """

    folder: Path
    config: ExportConfig
    inputs: ExportInputs
    written: Written
    failures: tuple[str, ...]
    latency: BothLatencies


@dataclass(frozen=True)
class Attempts:
    """Makes candidates in earnest, trained or not; each has a folder below that of ``teaching``."""

    config: CompressConfig
    maker: Maker
    teaching: Teaching
    goal: Goal
    observer: Observer

    def untrained(self, plan: Plan) -> Attempt:
        """``plan`` as it is when units and layers have gone."""
        as_it_is = plan.whole and len(plan.layers) == self.maker.inputs.start.config.num_hidden_layers
        return self._attempt(plan, None if as_it_is else self.teaching.save_untrained(plan), None)

    def trained(self, plan: Plan) -> Attempt:
        """``plan`` after its training; exported only where its score in torch is good enough."""
        self.observer.stage(f"Teaching a candidate: {plan.name}")
        return self._attempt(plan, *self.teaching.train(plan))

    def _attempt(self, plan: Plan, torch: Path | None, training: TrainingResult | None) -> Attempt:
        from encoder.checkpoint import load_classifier

        inputs, device = self.maker.inputs, self.maker.inputs.start.device
        model = inputs.model if torch is None else load_classifier(torch).to(device)
        name = plan.name if training is None else f"{plan.name}, trained"
        self.observer.stage(f"Scoring the {DECIDES} rows in torch: {name}")
        rows = inputs.splits.rows[DECIDES]
        scored = score_split(model, rows, device=device, observer=self.observer)
        score = scored.scores[main_metric(inputs.data.task)]
        known = {"name": name, "trained": training is not None, "score": score, "rows": len(rows)}
        candidate = self.maker.describe(plan, None).model_copy(update=known | {"drop": self._drop(score)})
        if not keeps_score(candidate, self.goal):
            return Attempt(candidate, plan, torch, training)
        made = self._export(plan, model, candidate, scored)
        return Attempt(candidate.model_copy(update=dict(self._measured(made))), plan, torch, training, made)

    def _export(self, plan: Plan, model: "Classifier", candidate: Candidate, scored: Scored) -> Exported:
        """What is lost in 8 bits may be as much as is left of what is allowed."""
        from compress.onnx_graph import possible_form

        inputs = self.maker.inputs
        assert candidate.drop is not None
        how = f"{plan.precision}-trained" if candidate.trained else plan.precision
        folder = emptied(self.teaching.folder / plan.model_key / f"{EXPORT_FOLDER}-{how}")
        options = ExportConfig(
            model=self.config.model,
            data=self.config.data,
            output=folder,
            precision=plan.precision,
            graph=possible_form(plan.config, FORM),
            max_drop=min(MOST_POINTS, max(0.0, self.goal.max_drop - candidate.drop / ONE_POINT)),
            threads=self.config.threads,
            latency=False,
            **self.config.reading,
        )
        found = inputs.start.found
        start = ExportedFrom(found, OutputFolder(folder), None)
        if inputs.start.device != "cpu":  # a copy: the original goes on teaching where it is
            model = copy.deepcopy(model).to("cpu")
        given = ExportInputs(start, inputs.data, inputs.splits, model, found.tokenizer, {DECIDES: scored})
        written = write_graph(options, given, folder, self.observer)
        failures = tuple(find_failures(options, written.proven, main_metric(inputs.data.task)))
        given = replace(given, model=inputs.model)
        return Exported(folder, options, given, written, failures, self._measure(folder))

    def _measure(self, folder: Path) -> BothLatencies:
        self.observer.stage("Measuring latency, in turns with the original")
        inputs = self.maker.inputs
        return measure_in_turns(
            inputs.start.found.folder,
            folder,
            inputs.splits.rows[DECIDES],
            threads=self.config.threads,
            observer=self.observer,
        )

    def _measured(self, made: Exported) -> Iterator[tuple[str, object]]:
        """What the export and its measurement change of what is known of a candidate."""
        score = made.written.proven.scored[DECIDES].scores[main_metric(self.maker.inputs.data.task)]
        yield from {"score": score, "drop": self._drop(score), "proven": True}.items()
        yield from {"failures": made.failures, "size_bytes": bytes_on_disk(made.folder)}.items()
        yield from self._speed(made).items()

    def _speed(self, made: Exported) -> dict[str, float | bool]:
        """How long one row takes, and how many times as fast that is, in turns with the original."""
        turns = next(
            one.speedup for one in made.latency.speedups if one.device == "cpu" and one.shape.batch_size == 1
        )
        before, after = single(made.latency.before), single(made.latency.after)
        return {
            "latency_ms": after.p50_ms,
            "speedup": turns.ratio,
            "speedup_low": turns.low,
            "speedup_high": turns.high,
            "disturbed": not (before.is_reliable and after.is_reliable),
        }

    def _drop(self, score: float | None) -> float | None:
        """Against the original on all validation rows."""
        inputs = self.maker.inputs
        return find_fall(inputs, inputs.before[DECIDES].scores[main_metric(inputs.data.task)], score)


def single(latencies: Sequence[Latency | Unavailable]) -> Latency:
    """That of one row on the CPU, which the goal is about."""
    return next(
        one
        for one in latencies
        if isinstance(one, Latency) and one.device == "cpu" and one.shape.batch_size == 1
    )
