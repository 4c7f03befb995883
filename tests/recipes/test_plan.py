"""Claims about what `enc run --dry-run` tells beforehand."""

import json
from pathlib import Path

import pytest

from compress.size import bytes_on_disk
from encoder.checkpoint import save_classifier
from encoder.model import Classifier, initialise_
from encoder.model_folder import read_config, read_tokenizer
from encoder.task import Task
from recipes.plan import make_plan
from recipes.recipe_files import preset_names
from recipes.run import run
from recipes.run_config import RunConfig

RECIPE = """
[chain]
description = "all that makes a model"
latency = false

[[steps]]
command = "freeze-sweep"
points = [1, 3]
num_epochs = 1
batch_size = 8
max_length = 12

[[steps]]
command = "drop-layers"
keep = [0, 2]

[[steps]]
command = "prune-neurons"
sparsity = 0.3
scope = "layer"
repair = false

[[steps]]
command = "prune-heads"
sparsity = 0.4
repair = false

[[steps]]
command = "export"
max_drop = 100

[[steps]]
name = "small"
command = "export"
precision = "int8"
graph = "fused"
max_drop = 100

[[steps]]
command = "distill"
layers = 1
num_epochs = 1
control = false

[[steps]]
command = "evaluate"
"""


@pytest.fixture
def quick_process(monkeypatch):
    """A trial without its fresh process, which takes seconds."""
    monkeypatch.setattr("recipes.row_times._time_process", lambda *_: 1.0)


@pytest.fixture
def options(tmp_path, tiny_model, reviews) -> dict:
    (tmp_path / "all.toml").write_text(RECIPE)
    return {
        "recipe": str(tmp_path / "all.toml"), "model": str(tiny_model), "data": str(reviews),
        "output": tmp_path / "out",
    }  # fmt: skip


def test_sizes_told_beforehand_are_those_of_what_is_written(options, quick_process, no_fresh_process):
    plan = make_plan(RunConfig(**options))
    assert not options["output"].exists()
    assert all(step.seconds > 0 and not step.done for step in plan.steps)
    outcome = run(RunConfig(**options))
    assert outcome.failure is None
    told = {step.name: step for step in plan.steps}
    assert [told[name].size for name in ("freeze-sweep", "drop-layers", "prune-neurons")] == ["exact"] * 3
    assert [told[name].size for name in ("prune-heads", "distill")] == ["uneven", "roughly"]
    assert [told[name].size for name in ("export", "small")] == ["uneven", "at least"]
    for step, result in zip(plan.steps, outcome.runs, strict=True):
        if step.size in (None, "roughly"):
            continue
        written = bytes_on_disk(options["output"] / step.folder)
        assert step.layers == result.model.num_hidden_layers
        assert step.parameters == result.size.parameters
        if step.command == "export":
            assert abs(step.bytes_on_disk - written) <= max(4000, written / 1000)
        else:
            assert abs(step.bytes_on_disk - written) <= (0 if step.size == "exact" else 500)
    again = make_plan(RunConfig(**options))
    assert all(step.done for step in again.steps)
    assert again.seconds == again.disk_bytes == again.trial_seconds == 0


COMPRESS = (
    '\n[[steps]]\ncommand = "compress"\nmodel = "@freeze-sweep"\ntarget_speedup = 2\nmax_candidates = 0\n'
)


def test_what_a_gate_decides_is_a_bound(options, quick_process):
    Path(options["recipe"]).write_text(RECIPE + COMPRESS)
    settings = ("prune-heads.sparsity=", "prune-heads.max_drop=1")
    plan = make_plan(RunConfig(**options, set=settings))
    sizes = {step.name: step.size for step in plan.steps}
    assert (sizes["prune-neurons"], sizes["prune-heads"], sizes["distill"]) == ("exact", "at most", "at most")
    whole = plan.steps[-1]  # seven candidates at most, a model and an export of each, and the chosen one
    assert (whole.size, whole.disk_bytes) == ("at most", 16 * whole.bytes_on_disk)
    assert json.loads(plan.to_json())["steps"][3]["options"] == {
        "max_drop": 1.0,
        "repair": False,
        "latency": False,
    }


@pytest.fixture(scope="module")
def tall_model(tiny_model, tmp_path_factory):
    """A random encoder of 12 layers that holds 128 tokens."""
    folder = tmp_path_factory.mktemp("models") / "tall"
    config = read_config(tiny_model)
    config = config.model_copy(update={"layers": config.layers[:1] * 12, "max_position_embeddings": 128})
    model = Classifier(config, Task(kind="single_label", labels=("a", "b")))
    initialise_(model, config, 0)
    save_classifier(model, read_tokenizer(tiny_model), folder)
    settings = json.loads((folder / "tokenizer_config.json").read_text()) | {"model_max_length": 128}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_dry_runs(name, tall_model, reviews, quick_process):
    plan = make_plan(RunConfig(recipe=name, model=str(tall_model), data=str(reviews)))
    assert plan.recipe == name
    assert plan.seconds > 0
    assert plan.steps[0].command == "finetune"
