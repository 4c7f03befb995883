"""Claims about fine-tuning runs that were interrupted, and about outputs that are there already."""

from pathlib import Path

import pytest

from encoder.errors import ConfigError
from recipes.finetune import finetune
from recipes.finetune_config import FinetuneConfig
from recipes.observer import Silent
from recipes.result import read_result


@pytest.fixture
def options(finetuning):
    return finetuning


class Interrupting(Silent):
    """An observer that presses Ctrl-C after so many training steps."""

    def __init__(self, after: int) -> None:
        self.left = after

    def training(self, progress):
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


def test_interrupted_run_continues_to_the_same_weights(options, tmp_path):
    whole = finetune(FinetuneConfig(**options))
    config = options | {"output": tmp_path / "cut"}
    with pytest.raises(KeyboardInterrupt):
        finetune(FinetuneConfig(**config), Interrupting(after=25))
    assert not config["output"].exists()
    resumed = finetune(FinetuneConfig(**config | {"resume": True}))
    assert resumed.training.resumed_from_step is not None
    (told,) = (note for note in resumed.notes if note.startswith("Going on after "))
    assert told.endswith(", with the weights as they were then.")
    assert resumed.model.sha256 == whole.model.sha256
    assert resumed.scores == whole.scores


@pytest.mark.parametrize(
    "last_thing",
    [
        "trained.score_split",
        "trained._save_and_measure",
        "trained.describe_model",
        "finetune.write_atomic",
        "finetune.finish",
        "resuming.OutputFolder.finish",
    ],
)
def test_run_killed_after_training_continues_without_training_again(
    options, tmp_path, monkeypatch, last_thing
):
    whole = finetune(FinetuneConfig(**options))
    config = options | {"output": tmp_path / "cut"}

    def interrupt(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(f"recipes.{last_thing}", interrupt)
        finetune(FinetuneConfig(**config))
    assert not config["output"].exists()

    steps = Interrupting(after=1)  # pressed at the first training step, should there be one
    resumed = finetune(FinetuneConfig(**config | {"resume": True}), steps)
    assert resumed.model.sha256 == whole.model.sha256 and resumed.scores == whole.scores
    assert sorted(p.name for p in config["output"].iterdir()) == sorted(
        p.name for p in options["output"].iterdir()
    )


def test_interrupted_run_is_not_started_over_by_accident(options):
    with pytest.raises(KeyboardInterrupt):
        finetune(FinetuneConfig(**options), Interrupting(after=2))
    with pytest.raises(ConfigError, match=r"interrupted run.*--resume continues it, --overwrite"):
        finetune(FinetuneConfig(**options))


def test_resuming_with_other_options_names_all_that_differ(options):
    with pytest.raises(KeyboardInterrupt):
        finetune(FinetuneConfig(**options), Interrupting(after=2))
    changed = options | {"resume": True, "learning_rate": 1e-3, "seed": 7, "threads": 1}
    with pytest.raises(ConfigError) as caught:
        finetune(FinetuneConfig(**changed))
    assert "learning_rate: 0.003 then, 0.001 now" in str(caught.value)
    assert "seed: 0 then, 7 now" in str(caught.value)
    assert "threads" not in str(caught.value)


def test_resuming_with_other_data_is_refused(options, reviews, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        finetune(FinetuneConfig(**options), Interrupting(after=2))
    with pytest.raises(ConfigError, match=r"data: .* then, .* now"):
        finetune(FinetuneConfig(**options | {"resume": True, "data": str(reviews / "train.csv")}))


def test_resuming_a_finished_run_returns_it(options):
    result = finetune(FinetuneConfig(**options | {"num_epochs": 1}))
    assert finetune(FinetuneConfig(**options | {"num_epochs": 1, "resume": True})) == result


def test_existing_output_is_refused_and_kept(options):
    options["output"].mkdir()
    (options["output"] / "thesis.txt").write_text("mine")
    with pytest.raises(ConfigError, match=r"is not empty; .*--overwrite"):
        finetune(FinetuneConfig(**options))
    assert (options["output"] / "thesis.txt").read_text() == "mine"


def test_a_finished_run_is_not_taken_for_one_of_other_options(finetuned, reviews):
    same = FinetuneConfig(**finetuned.config | {"resume": True})
    assert finetune(same).scores == finetuned.scores
    with pytest.raises(ConfigError, match=r"made with other options.*\n.*seed: 0 then, 3 now"):
        finetune(same.model_copy(update={"seed": 3}))
    with pytest.raises(ConfigError, match=r"data: .* then, .* now"):
        finetune(same.model_copy(update={"data": str(reviews / "train.csv")}))


def test_a_model_is_not_replaced_by_what_is_made_of_it(finetuned):
    same = FinetuneConfig(**finetuned.config | {"overwrite": True, "model": str(finetuned.output)})
    with pytest.raises(ConfigError, match="is that folder, and would be lost"):
        finetune(same)
    with pytest.raises(ConfigError, match="is in that folder, and would be lost"):
        finetune(same.model_copy(update={"output": Path(finetuned.output).parent}))


def test_overwrite_replaces_the_old_folder_only_when_the_run_is_finished(options):
    first = finetune(FinetuneConfig(**options | {"num_epochs": 1}))
    again = options | {"overwrite": True, "seed": 1}
    with pytest.raises(KeyboardInterrupt):
        finetune(FinetuneConfig(**again), Interrupting(after=2))
    assert read_result(options["output"]) == first
    second = finetune(FinetuneConfig(**again))
    assert read_result(options["output"]) == second
