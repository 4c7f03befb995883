"""Claims about running a chain: what is done again, what goes on, what ends it."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from encoder.errors import ConfigError
from recipes.chain_record import CHAIN_FILE, read_record
from recipes.observer import Silent
from recipes.report_config import FILE_NAME
from recipes.result import read_result
from recipes.run import run
from recipes.run_config import RunConfig

RECIPE = """
[chain]
description = "three steps"
latency = false

[[steps]]
command = "finetune"
learning_rate = 3e-3
layer_decay = 1.0
num_epochs = 2
batch_size = 8
max_length = 12
precision = "fp32"

[[steps]]
command = "distill"
layers = 2
learning_rate = 3e-3
num_epochs = 2
batch_size = 8
precision = "fp32"
control = false

[[steps]]
command = "export"
max_drop = 100
"""
STEPS = ("01-finetune", "02-distill", "03-export")


class Watching(Silent):
    """Keeps all stages and notes."""

    def __init__(self):
        self.said = []

    def stage(self, name):
        self.said.append(name)

    def note(self, text):
        self.said.append(text)

    def done_before(self):
        return [line.split("(")[1].split(")")[0] for line in self.said if "done before" in line]


@pytest.fixture(scope="module")
def recipe(tmp_path_factory) -> Path:
    file = tmp_path_factory.mktemp("recipe") / "three.toml"
    file.write_text(RECIPE)
    return file


@pytest.fixture(scope="module")
def options(recipe, tiny_model, reviews) -> dict:
    return {"recipe": str(recipe), "model": str(tiny_model), "data": str(reviews)}


@pytest.fixture(scope="module")
def whole(options, tmp_path_factory):
    """A chain that ran through."""
    return run(RunConfig(**options, output=tmp_path_factory.mktemp("runs") / "whole"))


def hashes(root):
    return [read_result(root / name).model.sha256 for name in STEPS]


def test_each_step_starts_from_the_model_of_the_step_before(whole):
    assert [one.command for one in whole.runs] == ["finetune", "distill", "export"]
    assert whole.failure is None
    first, second, third = hashes(whole.root)
    assert whole.runs[1].parent.sha256 == first
    assert whole.runs[2].parent.sha256 == second
    record = json.loads((whole.root / CHAIN_FILE).read_text())
    assert [step["status"] for step in record["steps"]] == ["done"] * 3
    assert (whole.root / "03-export" / "model.onnx").is_file() and third


def test_a_step_makes_the_model_that_its_command_makes(whole, finetuned):
    assert hashes(whole.root)[0] == finetuned.model.sha256


def test_what_is_done_is_not_done_again(options, whole):
    watching = Watching()
    again = run(RunConfig(**options, output=whole.root), watching)
    assert watching.done_before() == ["finetune", "distill", "export"]
    assert again.runs == whole.runs


@pytest.fixture
def copied(whole, tmp_path):
    """A copy of the finished chain, to be changed."""
    root = tmp_path / "copy"
    subprocess.run(["cp", "-r", str(whole.root), str(root)], check=True)
    return root


def test_a_changed_step_and_those_that_start_from_it_are_done_anew(options, copied, whole):
    watching = Watching()
    settings = ("distill.layers=1",)
    run(RunConfig(**options, output=copied, set=settings), watching)
    assert watching.done_before() == ["finetune"]
    assert "Done anew: layers 2, now 1." in watching.said
    assert "Done anew: what it starts from has changed." in watching.said
    assert read_result(copied / "02-distill").model.num_hidden_layers == 1


def test_a_step_whose_weights_were_touched_is_done_anew_and_what_follows_is_not(options, copied, whole):
    (copied / "02-distill" / "model.safetensors").write_bytes(b"broken")
    watching = Watching()
    run(RunConfig(**options, output=copied), watching)
    assert watching.done_before() == ["finetune", "export"]
    assert "Done anew: its folder is not whole." in watching.said
    assert hashes(copied) == hashes(whole.root)


def test_a_failed_gate_ends_the_chain_with_what_there_is(options, copied):
    untaught = ("distill.layers=1", "distill.init_layers=first", "distill.learning_rate=1e-8")
    outcome = run(RunConfig(**options, output=copied, set=("max_drop=0", *untaught)))
    assert outcome.failure.startswith(
        "step 2 (distill) ended the chain: the accuracy of the validation rows is worse by"
    )
    assert "after step 1 (finetune); max_drop allows 0" in outcome.failure
    assert len(outcome.runs) == 2
    assert read_record(copied).failure == outcome.failure
    assert (copied / "02-distill" / "model.safetensors").is_file()
    again = Watching()
    assert run(RunConfig(**options, output=copied, set=("max_drop=0", *untaught)), again).failure
    assert again.done_before() == ["finetune", "distill"]


# Kills its own process, without a word to anybody, at the first stage or training step that is told with TEXT
# in step NUMBER of the chain.
KILLED = """
import os, signal, sys
import encoder.training
from recipes.observer import Silent
from recipes.run import run
from recipes.run_config import RunConfig

model, data, recipe, output, where, text = sys.argv[1:]

class Killing(Silent):
    there = False
    def stage(self, name):
        self.there = self.there or name.lower().startswith(where)
        self.strike(name)
    def training(self, progress):
        self.strike(f"training {progress.step}")
    def strike(self, name):
        if self.there and name.startswith(text):
            os.kill(os.getpid(), signal.SIGKILL)

encoder.training.SAVE_EVERY_S = encoder.training.SAVE_SHARE = 0
run(RunConfig(recipe=recipe, model=model, data=data, output=output), Killing())
"""


def test_a_chain_killed_in_each_of_its_steps_ends_as_one_that_was_not(options, whole, tmp_path):
    root = tmp_path / "killed"
    for where, text in (("step 1", "training 15"), ("step 2", "training 12"), ("step 3", "Running the")):
        words = [options["model"], options["data"], options["recipe"], str(root), where, text]
        done = subprocess.run([sys.executable, "-c", KILLED, *words], capture_output=True, text=True)
        assert done.returncode == -signal.SIGKILL, done.stderr
    watching = Watching()
    outcome = run(RunConfig(**options, output=root), watching)
    assert outcome.failure is None
    assert watching.done_before() == ["finetune", "distill"]
    assert hashes(root) == hashes(whole.root)
    assert read_result(root / "01-finetune").training.resumed_from_step is not None
    assert read_result(root / "02-distill").training.resumed_from_step is not None


def test_a_step_of_which_nothing_was_kept_starts_again_and_says_so(options, tmp_path):
    class Stopping(Watching):
        def stage(self, name):
            super().stage(name)
            if name.startswith("Looking at ") and "done" not in name:
                raise KeyboardInterrupt

    root = tmp_path / "killed"
    words = [options["model"], options["data"], options["recipe"], str(root), "step 1", "Training on"]
    assert subprocess.run([sys.executable, "-c", KILLED, *words]).returncode == -signal.SIGKILL
    assert list(root.glob("*.unfinished"))
    watching = Stopping()
    with pytest.raises(KeyboardInterrupt):
        run(RunConfig(**options, output=root), watching)
    assert "Step 1 (finetune) of 3" in watching.said
    assert "It was interrupted, and nothing of it was kept: it starts again." in watching.said


def test_a_chain_that_starts_from_a_fine_tuned_model_counts_losses_from_that(finetuned, options, tmp_path):
    (tmp_path / "two.toml").write_text(
        '[chain]\nlatency = false\n[[steps]]\ncommand = "distill"\nlayers = 1\n'
    )
    asked = options | {"recipe": str(tmp_path / "two.toml"), "model": str(finetuned.output)}
    untaught = ("distill.init_layers=first", "distill.learning_rate=1e-8", "distill.num_epochs=1")
    settings = (*untaught, "distill.control=false", "max_drop=0")
    outcome = run(RunConfig(**asked, output=tmp_path / "out", set=settings))
    assert "than that of the model that step 1 (distill) started from; max_drop allows 0" in outcome.failure


def test_force_does_all_anew(options, tmp_path):
    (tmp_path / "one.toml").write_text(
        '[chain]\nlatency = false\n[[steps]]\ncommand = "finetune"\nnum_epochs = 1\n'
    )
    asked = options | {"recipe": str(tmp_path / "one.toml"), "output": tmp_path / "out"}
    first = run(RunConfig(**asked)).record.steps[0].begun
    watching = Watching()
    (tmp_path / "out" / "01-finetune" / "mine.txt").touch()
    again = run(RunConfig(**asked, force=True), watching)
    assert watching.done_before() == []
    assert again.record.steps[0].begun >= first
    assert not (tmp_path / "out" / "01-finetune" / "mine.txt").exists()


@pytest.mark.parametrize("more", [{"force": True}, {"set": ("distill.layers=1",)}])
def test_a_killed_run_has_nothing_of_an_earlier_one_beside_its_own(options, copied, more):
    (copied / FILE_NAME).touch()

    class Killing(Silent):
        def training(self, progress):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(RunConfig(**options, output=copied, **more), Killing())
    begun, done = ("01-finetune", []) if "force" in more else ("02-distill", ["01-finetune"])
    assert not (copied / FILE_NAME).exists()
    whole = [path.name for path in copied.iterdir() if path.is_dir() and not path.suffix]
    assert whole == done
    record = read_record(copied)
    assert [(step.folder, step.status) for step in record.steps] == [
        *((name, "done") for name in done),
        (begun, "begun"),
    ]
    assert record.finished is None


def test_the_report_of_a_chain_that_is_whole_stays(options, copied):
    (copied / FILE_NAME).touch()
    run(RunConfig(**options, output=copied))
    assert (copied / FILE_NAME).exists()


def test_the_folder_of_another_chain_or_of_something_else_is_refused(options, copied, tmp_path):
    other = tmp_path / "other.toml"
    other.write_text(RECIPE)
    with pytest.raises(ConfigError, match="a run of the recipe three is in that folder, not of other"):
        run(RunConfig(**options | {"recipe": str(other)}, output=copied))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(ConfigError, match="the folder is not empty, and no run of a recipe is in it"):
        run(RunConfig(**options, output=tmp_path / "full"))


@pytest.mark.parametrize("taken", ["", "02-distill"])
def test_a_chain_that_another_process_works_on_is_refused_and_stays(options, copied, whole, taken):
    code = (
        "import sys\nfrom pathlib import Path\nfrom encoder.output_lock import hold\n"
        "lock = hold(Path(sys.argv[1]))\nprint(flush=True)\nsys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(copied / taken)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        other.stdout.readline()
        for more in ({}, {"force": True}, {"set": ("distill.layers=1",)}):
            with pytest.raises(ConfigError, match=f"another enc .process {other.pid}. is working on it"):
                run(RunConfig(**options, output=copied, **more))
    assert hashes(copied) == hashes(whole.root)
    assert not list(copied.glob(".*")) + list(copied.parent.glob(".*"))
