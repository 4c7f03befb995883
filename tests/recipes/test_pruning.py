"""Claims about prunings as runs: resumed, trained between steps, passed on to other commands."""

import pytest
import torch
from safetensors.torch import load_file

from compress.distillation import Distillation
from encoder.checkpoint import load_classifier
from encoder.errors import ConfigError
from recipes.bench import bench
from recipes.bench_config import BenchConfig
from recipes.drop_layers import drop_layers
from recipes.drop_layers_config import DropLayersConfig
from recipes.finetune import finetune
from recipes.finetune_config import FinetuneConfig
from recipes.freeze_sweep import freeze_sweep
from recipes.freeze_sweep_config import FreezeSweepConfig
from recipes.observer import Silent
from recipes.prune_heads import prune_heads
from recipes.prune_heads_config import PruneHeadsConfig
from recipes.prune_neurons import prune_neurons
from recipes.prune_neurons_config import PruneNeuronsConfig
from recipes.result import hash_model
from recipes.runs import runs
from recipes.runs_config import RunsConfig

STEPS_AN_EPOCH = 10


@pytest.fixture
def options(finetuned, reviews, tmp_path, no_fresh_process):
    """Half of the 12 heads go, then two epochs of ten steps each."""
    return {
        "model": finetuned.output,
        "data": str(reviews),
        "output": tmp_path / "out",
        "repair_rows": 40,
        "latency": False,
        "heads": 6,
        "recover_epochs": 2,
        "batch_size": 8,
        "learning_rate": 1e-3,
    }


class Watching(Silent):
    """An observer that remembers stages and training steps, and presses Ctrl-C after so many of them."""

    def __init__(self, stop_after=0):
        self.stages, self.steps, self.stop_after = [], 0, stop_after

    def stage(self, name):
        self.stages.append(name)

    def training(self, progress):
        self.steps += 1
        if self.steps == self.stop_after:
            raise KeyboardInterrupt


EACH_STEP = {"steps": 2, "recover_each_step": True, "recover_epochs": 1}


@pytest.mark.parametrize(
    ("changes", "after", "left"),
    [({}, 4, 20), ({}, 14, 10), (EACH_STEP | {"recover_teacher": True}, 14, 10)],
    ids=["early", "late", "steps"],
)
def test_interrupted_training_continues_to_the_same_model(options, tmp_path, changes, after, left):
    whole = prune_heads(PruneHeadsConfig(**options | changes))
    cut = options | changes | {"output": tmp_path / "cut"}
    with pytest.raises(KeyboardInterrupt):
        prune_heads(PruneHeadsConfig(**cut), Watching(stop_after=after))
    assert not cut["output"].exists()
    assert cut["output"].with_name("cut.unfinished").exists() == (after > STEPS_AN_EPOCH)
    watching = Watching()
    resumed = prune_heads(PruneHeadsConfig(**cut, resume=True), watching)
    assert watching.steps == left
    assert resumed.model.sha256 == whole.model.sha256
    assert resumed.scores == whole.scores
    assert [layer.heads_after for layer in resumed.pruning.layers] == [
        layer.heads_after for layer in whole.pruning.layers
    ]
    assert {p.name for p in cut["output"].iterdir()} == {p.name for p in options["output"].iterdir()}


def test_parent_is_the_teacher_of_the_recovery(options, tmp_path, finetuned):
    seen = []

    def watch(self, logits, batch, index):
        seen.append(self)
        return real(self, logits, batch, index)

    real = Distillation.summed_loss
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Distillation, "summed_loss", watch)
        taught = prune_heads(PruneHeadsConfig(**options, recover_teacher=True))
    assert len(seen) == 2 * STEPS_AN_EPOCH
    (objective,) = set(seen)
    answers = objective.targets.logits
    assert answers.shape == (80, 2)
    right = (answers.argmax(-1) == torch.arange(1, 81) % 2).double().mean()  # pos, neg, pos, …
    assert right > finetuned.scores["validation"]["accuracy"] - 0.15
    alone = prune_heads(PruneHeadsConfig(**options | {"output": tmp_path / "alone"}))
    assert taught.pruning.recover_teacher and not alone.pruning.recover_teacher
    assert taught.model.sha256 != alone.model.sha256


@pytest.mark.parametrize("last_thing", ["pruning.measure_sizes", "pruning.finish"])
def test_run_killed_after_the_training_is_not_trained_again(options, tmp_path, monkeypatch, last_thing):
    whole = prune_heads(PruneHeadsConfig(**options))
    cut = options | {"output": tmp_path / "cut"}

    def interrupt(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(f"recipes.{last_thing}", interrupt)
        prune_heads(PruneHeadsConfig(**cut))
    watching = Watching()
    assert prune_heads(PruneHeadsConfig(**cut, resume=True), watching).scores == whole.scores
    assert watching.steps == 0


def test_resuming_something_else_is_refused_before_anything_is_computed(options, finetuned, monkeypatch):
    with pytest.raises(KeyboardInterrupt):
        prune_heads(PruneHeadsConfig(**options), Watching(stop_after=14))
    monkeypatch.setattr("recipes.pruning_inputs.score_split", lambda *_, **__: pytest.fail("too late"))
    with pytest.raises(ConfigError, match=r"interrupted run.*--resume continues it, --overwrite"):
        prune_heads(PruneHeadsConfig(**options))
    with pytest.raises(ConfigError, match=r"heads: 6 then, 5 now"):
        prune_heads(PruneHeadsConfig(**options | {"heads": 5, "resume": True}))
    finished = options | {"output": finetuned.output, "resume": True}
    with pytest.raises(ConfigError, match="a finished run of enc finetune is in that folder"):
        prune_heads(PruneHeadsConfig(**finished))


def test_resuming_a_finished_run_returns_it(options):
    result = prune_heads(PruneHeadsConfig(**options))
    assert prune_heads(PruneHeadsConfig(**options, resume=True)) == result


def test_training_between_steps_trains_after_each(options):
    watching = Watching()
    result = prune_heads(PruneHeadsConfig(**options | EACH_STEP), watching)
    assert watching.steps == 2 * STEPS_AN_EPOCH
    titles = [stage for stage in watching.stages if stage.startswith("Training")]
    assert titles[0].startswith("Training after step 1 of 2")
    assert titles[1].startswith("Training what is left")
    found = result.pruning
    assert (found.recover_each_step, found.units_after, len(result.training.epochs)) == (True, 6, 1)
    assert found.recovery_seconds > result.training.seconds


def test_nothing_removed_shows_no_gain(options):
    """P5. The same model is not measured against itself, so that no noise is shown as a gain."""
    changes = {"heads": 12, "recover_epochs": 0, "latency": True}
    kept = {name: value for name, value in options.items() if name not in ("batch_size", "learning_rate")}
    result = prune_heads(PruneHeadsConfig(**kept | changes))
    assert result.pruning.speedups == ()
    assert any("Nothing was removed" in note for note in result.notes)


@pytest.fixture(scope="module")
def pruned(finetuned, reviews, tmp_path_factory):
    """Without half of its heads, all of layer 1 among them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("recipes.pruning.prove_reloaded", lambda *_: 0.0)
        return prune_heads(
            PruneHeadsConfig(
                model=finetuned.output,
                data=str(reviews),
                output=tmp_path_factory.mktemp("line") / "half",
                keep="0:0,3;1:",
                latency=False,
            )
        )


@pytest.fixture
def further(pruned, reviews, tmp_path, no_fresh_process):
    """The options of any run that goes on from ``pruned``."""
    return {"model": pruned.output, "data": str(reviews), "output": tmp_path / "next", "latency": False}


def heads(folder):
    return [shape.heads for shape in load_classifier(folder).config.layers]


def test_pruned_model_is_swept(further):
    trained = {"num_epochs": 1, "points": (0, 3), "learning_rate": 1e-3, "precision": "fp32"}
    result = freeze_sweep(FreezeSweepConfig(**further | trained))
    assert [point.k for point in result.sweep.points] == [0, 3]
    assert heads(further["output"]) == [(0, 3), (), (0, 1, 2, 3)]


def test_pruned_model_is_trained_with_its_frozen_layers_as_they_were(further, pruned):
    finetune(FinetuneConfig(**further, num_epochs=1, freeze_layers=2, precision="fp32"))
    before, after = (
        load_file(f"{folder}/model.safetensors") for folder in (pruned.output, further["output"])
    )
    assert before.keys() == after.keys()
    frozen = [name for name in before if "layers.0." in name or "layers.1." in name]
    assert frozen and all(torch.equal(before[name], after[name]) for name in frozen)


def test_pruned_model_loses_neurons_and_layers_too(further, pruned):
    result = prune_neurons(PruneNeuronsConfig(**further, neurons=96, recover_epochs=1))
    assert heads(further["output"]) == [(0, 3), (), (0, 1, 2, 3)]
    assert result.parent.sha256 == pruned.model.sha256
    again = further | {"model": str(further["output"]), "output": further["output"].with_name("short")}
    result = drop_layers(DropLayersConfig(**again, drop=(1,)))
    assert heads(again["output"]) == [(0, 3), (0, 1, 2, 3)]
    assert result.pruning.masked_difference < 1e-5


def test_ledger_has_the_line_of_a_pruned_model(further, pruned):
    prune_neurons(PruneNeuronsConfig(**further, neurons=96))
    entries = {entry.model: entry for entry in runs(RunsConfig(folder=further["output"].parent)).runs}
    made = entries[hash_model(further["output"])]
    assert made.command == "prune-neurons"
    assert made.parent_model == pruned.model.sha256


@pytest.mark.slow
def test_pruned_model_is_measured_as_a_graph_too(pruned):
    config = {"batch_sizes": (1,), "sequence_lengths": (8,), "min_runs": 1, "min_seconds": 0.0}
    found = bench(BenchConfig(models=(pruned.output,), runtimes=("onnx-fp32",), threads=1, **config))
    assert [row.latency.runtime for row in found.rows] == ["onnx-fp32"]
