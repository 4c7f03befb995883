"""What each kind of step in a chain is: its options, its recipe, the models it takes and makes. A table."""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from recipes.bench_config import BenchConfig
from recipes.compress_config import CompressConfig
from recipes.distill_config import DistillConfig
from recipes.drop_layers_config import DropLayersConfig
from recipes.evaluate_config import EvaluateConfig
from recipes.export_config import ExportConfig
from recipes.finetune_config import FinetuneConfig
from recipes.freeze_sweep_config import FreezeSweepConfig
from recipes.observer import Observer
from recipes.options import Options
from recipes.probe_config import ProbeConfig
from recipes.profile_config import ProfileConfig
from recipes.prune_heads_config import PruneHeadsConfig
from recipes.prune_neurons_config import PruneNeuronsConfig
from recipes.result import Run

# encoder: pretrained, without a classifier. graph: runs as it is and cannot be changed.
Made = Literal["encoder", "classifier", "graph"]


@dataclass(frozen=True)
class StepKind:
    """``recipe`` is where its function is, ``module:name``; it is imported when it is called.

    ``takes`` are the models it can start from, ``makes`` what it leaves behind, by its options; ``None``: it
    only measures. ``model_field`` holds its model, or a list of them; ``other_models`` further ones by name.
    """

    options: type[Options]
    recipe: str
    takes: tuple[Made, ...] = ("classifier",)
    makes: Callable[[Any], Made | None] = lambda options: None
    model_field: str = "model"
    other_models: tuple[str, ...] = ()

    @property
    def resumes(self) -> bool:
        """Whether an interrupted run of it can go on."""
        return "resume" in self.options.model_fields

    def run(self, options: Options, observer: Observer) -> Run:
        """Do it."""
        module, name = self.recipe.split(":")
        made: Run = getattr(importlib.import_module(module), name)(options, observer)
        return made


def _always(made: Made) -> Callable[[Any], Made]:
    return lambda options: made


ANY: tuple[Made, ...] = ("encoder", "classifier")
RUNNABLE: tuple[Made, ...] = ("classifier", "graph")

KINDS: Mapping[str, StepKind] = {
    "finetune": StepKind(FinetuneConfig, "recipes.finetune:finetune", ANY, _always("classifier")),
    "freeze-sweep": StepKind(
        FreezeSweepConfig,
        "recipes.freeze_sweep:freeze_sweep",
        ANY,
        lambda options: None if options.keep == "none" else "classifier",
    ),
    "prune-heads": StepKind(PruneHeadsConfig, "recipes.prune_heads:prune_heads", makes=_always("classifier")),
    "prune-neurons": StepKind(
        PruneNeuronsConfig, "recipes.prune_neurons:prune_neurons", makes=_always("classifier")
    ),
    "drop-layers": StepKind(DropLayersConfig, "recipes.drop_layers:drop_layers", makes=_always("classifier")),
    "distill": StepKind(
        DistillConfig, "recipes.distill:distill", makes=_always("classifier"), other_models=("student",)
    ),
    "compress": StepKind(CompressConfig, "recipes.compress:compress", makes=_always("graph")),
    "export": StepKind(
        ExportConfig,
        "recipes.export:export",
        makes=lambda options: "graph" if options.format == "onnx" else "classifier",
    ),
    "evaluate": StepKind(EvaluateConfig, "recipes.evaluate:evaluate", RUNNABLE, other_models=("against",)),
    "bench": StepKind(BenchConfig, "recipes.bench:bench", RUNNABLE, model_field="models"),
    "profile": StepKind(ProfileConfig, "recipes.profile:profile"),
    "probe": StepKind(ProbeConfig, "recipes.probe:probe", ANY),
}
