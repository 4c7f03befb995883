"""Candidates made in earnest: exported, proven on validation rows, and measured beside the original."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from compress.latency import Latency
from compress.latency_probing import FORM
from compress.size import bytes_on_disk
from encoder.files import OutputFolder
from encoder.metrics import main_metric
from recipes.compress_candidates import Maker, Plan, find_fall
from recipes.compress_config import CompressConfig
from recipes.compress_result import Candidate, Goal
from recipes.compress_training import Teaching, emptied
from recipes.export import Written, find_failures, write_graph
from recipes.export_config import ExportConfig
from recipes.export_inputs import ExportedFrom, ExportInputs
from recipes.observer import Observer
from recipes.pruning_search import ONE_POINT
from recipes.result import TrainingResult
from recipes.scoring import score_split
from recipes.side_by_side import BothLatencies, measure_in_turns

if TYPE_CHECKING:
    from encoder.model import Classifier

EXPORT_FOLDER = "export"
DECIDES = "validation"


@dataclass(frozen=True)
class Attempt:
    """A candidate with its model in torch; with its ``export`` where it was good enough to be exported."""

    candidate: Candidate
    plan: Plan
    model: "Classifier"
    training: TrainingResult | None = None
    export: "Exported | None" = None


@dataclass(frozen=True)
class Exported:
    """A candidate that was exported to ``folder``, proven and measured."""

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
        return self._export(plan, self.maker.make(plan), None)

    def trained(self, plan: Plan) -> Attempt:
        """``plan`` after its training; exported only where its score in torch is good enough."""
        self.observer.stage(f"Teaching a candidate: {plan.name}")
        return self._export(plan, *self.teaching.train(plan))

    def _export(self, plan: Plan, model: "Classifier", training: TrainingResult | None) -> Attempt:
        inputs, device = self.maker.inputs, self.maker.inputs.start.device
        name = plan.name if training is None else f"{plan.name}, trained"
        self.observer.stage(f"Scoring the {DECIDES} rows in torch: {name}")
        scored = score_split(model, inputs.splits.rows[DECIDES], device=device, observer=self.observer)
        score = scored.scores[main_metric(inputs.data.task)]
        candidate = self.maker.describe(plan, None).model_copy(
            update={
                "name": name,
                "trained": training is not None,
                "score": score,
                "drop": self._drop(score),
                "rows": len(inputs.splits.rows[DECIDES]),
            }
        )
        left = self.goal.max_drop * ONE_POINT
        left -= float("inf") if candidate.drop is None else candidate.drop
        if left < -ROUNDING:
            return Attempt(candidate, plan, model, training)
        folder = emptied(self.teaching.folder / plan.key / EXPORT_FOLDER)
        options = ExportConfig(
            model=self.config.model,
            data=self.config.data,
            output=folder,
            precision=plan.precision,
            graph=FORM,
            max_drop=max(0.0, left / ONE_POINT),
            threads=self.config.threads,
            latency=False,
            **self.config.reading,
        )
        start = ExportedFrom(inputs.start.found, OutputFolder(folder), None)
        model = model.to("cpu")
        given = ExportInputs(
            start, inputs.data, inputs.splits, model, inputs.start.found.tokenizer, {DECIDES: scored}
        )
        written = write_graph(options, given, folder, self.observer)
        failures = tuple(find_failures(options, written.proven, main_metric(inputs.data.task)))
        latency = self._measure(folder)
        made = Exported(folder, options, given, written, failures, latency)
        proven = candidate.model_copy(update=dict(self._measured(made)))
        return Attempt(proven, plan, model, training, made)

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
        yield "latency_ms", single_ms(made.latency)
        yield (
            "speedup",
            next(
                one.speedup.ratio
                for one in made.latency.speedups
                if one.device == "cpu" and one.shape.batch_size == 1
            ),
        )

    def _drop(self, score: float | None) -> float | None:
        """Against the original on all validation rows."""
        inputs = self.maker.inputs
        return find_fall(inputs, inputs.before[DECIDES].scores[main_metric(inputs.data.task)], score)


# Scores of a few rows are sums of few fractions; this much is their rounding and no loss.
ROUNDING = 1e-9


def single_ms(latency: BothLatencies) -> float:
    """The p50 of one row on the CPU, which the goal is about."""
    return next(
        one.p50_ms
        for one in latency.after
        if isinstance(one, Latency) and one.device == "cpu" and one.shape.batch_size == 1
    )
