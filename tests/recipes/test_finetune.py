"""Claims about whole fine-tuning runs, on a tiny random encoder."""

import json
import shutil
from collections import namedtuple
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from encoder.checkpoint import load_classifier
from encoder.errors import CheckpointError, ConfigError, DataError, EncError
from encoder.model_folder import read_task
from encoder.training_config import TrainingConfig
from recipes.evaluate import evaluate
from recipes.evaluate_config import EvaluateConfig
from recipes.finetune import finetune
from recipes.finetune_config import FinetuneConfig
from recipes.observer import Silent
from recipes.result import Result, hash_model, read_result


@pytest.fixture
def options(tiny_model, reviews, tmp_path):
    """The options of a quick run that learns the task."""
    return {
        "model": str(tiny_model),
        "data": str(reviews),
        "output": tmp_path / "out",
        "learning_rate": 3e-3,
        "layer_decay": 1.0,
        "num_epochs": 4,
        "batch_size": 8,
        "precision": "fp32",
        "latency": False,
    }


class Interrupting(Silent):
    """An observer that presses Ctrl-C after so many training steps."""

    def __init__(self, after: int) -> None:
        self.left = after

    def training(self, progress):
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


def test_run_learns_the_task_and_leaves_a_whole_folder(options):
    result = finetune(FinetuneConfig(**options))
    assert result.scores["test"]["accuracy"] > 0.9
    assert {path.name for path in options["output"].iterdir()} == {
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
        "run.json",
    }
    assert not options["output"].with_name("out.unfinished").exists()
    assert read_task(options["output"]).labels == ("neg", "pos")


def test_run_json_is_the_result(options):
    result = finetune(FinetuneConfig(**options))
    assert read_result(options["output"]) == result
    stored = json.loads((options["output"] / "run.json").read_text())
    assert stored["command"] == "finetune"
    assert stored["config"]["learning_rate"] == 3e-3
    assert stored["data"]["report"]["splits"]["train"]["classes"] == {"neg": 40, "pos": 40}
    assert stored["machine"]["versions"]["torch"]
    assert stored["parent"]["sha256"] != stored["model"]["sha256"]
    assert stored["training"]["total_parameters"] == stored["size"]["parameters"]
    assert len(stored["training"]["epochs"]) == 4


def test_learning_rate_follows_the_width_unless_given(options):
    assert finetune(FinetuneConfig(**options)).training.learning_rate == 3e-3
    usual = options | {"learning_rate": None, "num_epochs": 1, "overwrite": True}
    assert finetune(FinetuneConfig(**usual)).training.learning_rate == 2e-4 * 384 / 32


def test_same_seed_same_weights(options, tmp_path):
    first = finetune(FinetuneConfig(**options))
    again = finetune(FinetuneConfig(**options | {"output": tmp_path / "again"}))
    other = finetune(FinetuneConfig(**options | {"output": tmp_path / "other", "seed": 1}))
    assert first.model.sha256 == again.model.sha256 != other.model.sha256


def test_frozen_parameters_are_bit_identical_in_the_saved_folder(options, tiny_model):
    result = finetune(FinetuneConfig(**options | {"freeze_layers": 2}))
    before, after = (
        load_file(tiny_model / "model.safetensors"),
        load_file(options["output"] / "model.safetensors"),
    )
    frozen = [name for name in after if "embeddings." in name or "layer.0." in name or "layer.1." in name]
    assert len(frozen) > 30
    assert all(torch.equal(before[name], after[name]) for name in frozen)
    assert any(not torch.equal(before[name], after[name]) for name in after if "layer.2." in name)
    assert result.training.trainable_parameters < result.training.total_parameters
    assert "layers 0–1" in result.training.frozen


@pytest.mark.parametrize("memory", [None, 0.0])
def test_frozen_layers_are_computed_once_with_the_same_result(options, tmp_path, memory):
    """Kept in memory, kept on disk, computed in every epoch: equal to rounding."""
    frozen = options | {"freeze_layers": 2}
    plain = finetune(FinetuneConfig(**frozen | {"cache_frozen": False}))
    kept = finetune(FinetuneConfig(**frozen | {"output": tmp_path / "kept", "cache_memory_gb": memory}))
    assert kept.scores == plain.scores
    one, two = (load_file(Path(run.output) / "model.safetensors") for run in (plain, kept))
    differ = {name for name in one if not torch.allclose(one[name], two[name], atol=1e-4)}
    assert {name for name in differ if not name.endswith("key.bias")} == set()  # whose gradient is rounding
    assert (plain.training.frozen_seconds, kept.training.frozen_seconds > 0) == (None, True)
    where = "of memory." if memory is None else "of disk, beside"
    assert any("computed once and takes" in note and where in note for note in kept.notes)
    assert "training" not in {path.name for path in (tmp_path / "kept").iterdir()}


@pytest.mark.parametrize(
    ("room", "given", "message"),
    [
        ((0, 10**12), None, None),
        ((10**12, 0), None, None),
        ((10**5, 10**5), None, r"takes \d+\.\d MB; there are 0\.1 MB on the disk of .*--no-cache-frozen"),
        ((10**5, 10**12), 1.0, r"--cache-memory-gb 1: what the frozen layers .* 0\.1 MB of memory are free"),
    ],
)
def test_no_room_for_what_frozen_layers_compute_is_told_before_training(
    options, monkeypatch, room, given, message
):
    memory, disk = room
    monkeypatch.setattr("recipes.frozen_storage.available_memory_bytes", lambda: memory)
    usage = namedtuple("usage", "free")
    monkeypatch.setattr("recipes.frozen_storage.shutil.disk_usage", lambda path: usage(disk))
    config = FinetuneConfig(**options | {"freeze_layers": 1, "num_epochs": 1, "cache_memory_gb": given})
    if message is None:
        finetune(config)
        return
    with pytest.raises(ConfigError, match=message):
        finetune(config)
    assert not options["output"].with_name("out.unfinished").exists()


def test_model_stored_in_half_precision_is_trained_and_saved_in_float32(options, tiny_model, tmp_path):
    stored = {}
    for name, dtype in (("half", torch.float16), ("full", torch.float32)):
        folder = shutil.copytree(tiny_model, tmp_path / name)
        weights = load_file(tiny_model / "model.safetensors")
        rounded = {key: weight.half().to(dtype) for key, weight in weights.items()}
        save_file(rounded, folder / "model.safetensors")
        output = tmp_path / f"{name}-out"
        finetune(FinetuneConfig(**options | {"model": str(folder), "output": output, "num_epochs": 1}))
        stored[name] = load_file(output / "model.safetensors")
    assert {weight.dtype for weight in stored["half"].values()} == {torch.float32}
    assert all(torch.equal(stored["half"][name], weight) for name, weight in stored["full"].items())
    assert any(not torch.equal(weight, weight.half().float()) for weight in stored["half"].values())


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


def test_overwrite_replaces_the_old_folder_only_when_the_run_is_finished(options):
    first = finetune(FinetuneConfig(**options | {"num_epochs": 1}))
    again = options | {"overwrite": True, "seed": 1}
    with pytest.raises(KeyboardInterrupt):
        finetune(FinetuneConfig(**again), Interrupting(after=2))
    assert read_result(options["output"]) == first
    second = finetune(FinetuneConfig(**again))
    assert read_result(options["output"]) == second


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"freeze_layers": 4}, ConfigError, "--freeze-layers 4: .* has 3 layers"),
        ({"train_last": 9}, ConfigError, "--train-last 9: .* has 3 layers"),
        ({"freeze": ("encodr.*",)}, ConfigError, r"--freeze 'encodr.\*' matches no parameter"),
        ({"max_length": 65}, ConfigError, "--max-length 65: .* holds 64 tokens at most"),
        ({"best_metric": "acuracy"}, ConfigError, r"a single-label task has .*did you mean 'accuracy'"),
        ({"label_column": "lable"}, DataError, "lable"),
        ({"data": "no-such-file.csv"}, DataError, "no-such-file.csv: no such file"),
        ({"model": "./no-such-folder"}, CheckpointError, "./no-such-folder: no such folder"),
        ({"task": "regression"}, DataError, "neg"),
    ],
)
def test_mistake_ends_the_run_before_anything_is_made(options, change, error, message):
    with pytest.raises(error, match=message):
        finetune(FinetuneConfig(**options | change))
    assert not options["output"].exists()
    assert not options["output"].with_name("out.unfinished").exists()


def test_unsupported_family_is_refused_by_name_together_with_missing_data(options, tmp_path):
    (tmp_path / "t5").mkdir()
    (tmp_path / "t5" / "config.json").write_text('{"model_type": "t5"}')
    with pytest.raises(EncError, match=r"t5.*bert[^\n]*\nno-such-file.csv: no such file"):
        finetune(FinetuneConfig(**options | {"model": str(tmp_path / "t5"), "data": "no-such-file.csv"}))


def test_gpu_that_is_not_there_is_refused(options):
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    with pytest.raises(ConfigError, match="--device cuda: no GPU on this machine"):
        finetune(FinetuneConfig(**options | {"device": "cuda"}))


def test_cut_texts_are_counted_and_said(options):
    result = finetune(FinetuneConfig(**options | {"max_length": 6, "num_epochs": 1}))
    encoded = result.data.encoded["train"]
    assert encoded.rows_cut > 0
    assert encoded.tokens_lost > 0
    assert any(f"Cut at 6 tokens: {encoded.rows_cut} of 80 train rows" in note for note in result.notes)
    assert result.model.max_length == 6


def test_fine_tuned_model_is_a_parent_of_the_next(options, finetuned):
    second = finetune(FinetuneConfig(**options | {"num_epochs": 1, "model": finetuned.output}))
    assert second.parent.sha256 == finetuned.model.sha256
    assert second.parent.run["command"] == "finetune"
    assert second.training.new_parameters == ()


def test_model_that_was_a_classifier_already_is_compared_with_itself_before(options, finetuned, reviews):
    """The parent is scored as its own run scored it, with its own maximal length, and is left as it was."""
    before = hash_model(Path(finetuned.output))
    result = finetune(FinetuneConfig(**options | {"model": finetuned.output, "max_length": 6}))
    against = result.against
    assert (against.source, against.sha256, against.split) == (finetuned.output, before, "test")
    assert against.scores == finetuned.scores["test"]
    change = result.scores["test"]["accuracy"] - finetuned.scores["test"]["accuracy"]
    assert against.difference.difference == pytest.approx(change)
    assert against.mcnemar.only_first - against.mcnemar.only_second == pytest.approx(24 * change)
    assert finetuned.output in against.verdict
    assert hash_model(Path(finetuned.output)) == before
    assert read_result(options["output"]) == result
    again = evaluate(EvaluateConfig(model=str(options["output"]), data=str(reviews))).against
    assert again == against


def test_without_test_rows_the_comparison_is_on_validation_and_that_is_said(options, finetuned, reviews):
    data = options["output"].with_name("data")
    shutil.copytree(reviews, data, ignore=shutil.ignore_patterns("test.csv"))
    result = finetune(FinetuneConfig(**options | {"model": finetuned.output, "data": str(data)}))
    assert result.against.split == "validation"
    assert result.against.scores == finetuned.scores["validation"]
    assert any("those that chose the epoch" in note for note in result.notes)


def test_nothing_is_compared_with_what_had_no_classifier_for_these_labels(options, finetuned, reviews):
    assert finetuned.against is None  # made of an encoder
    data = options["output"].with_name("data.csv")
    data.write_text((reviews / "train.csv").read_text().replace(",pos", ",fine"))
    changes = {"model": finetuned.output, "data": str(data), "num_epochs": 1}
    assert finetune(FinetuneConfig(**options | changes)).against is None


def test_parent_that_cannot_be_compared_with_is_told_before_the_training(options, finetuned):
    parent = shutil.copytree(finetuned.output, options["output"].with_name("parent"))
    (parent / "run.json").write_text("{}")
    with pytest.raises(CheckpointError, match=r"run\.json: not a result of enc: .*delete it"):
        finetune(FinetuneConfig(**options | {"model": str(parent)}))
    assert not options["output"].with_name("out.unfinished").exists()


@pytest.mark.slow
def test_latency_is_measured_at_batch_1_and_32(options):
    result = finetune(FinetuneConfig(**options | {"num_epochs": 1, "latency": True}))
    batches = [one.shape.batch_size for one in result.latency if one.device == "cpu"]
    assert batches == [1, 24]  # the test split has 24 rows
    assert all(one.p50_ms <= one.p95_ms and one.threads >= 1 for one in result.latency if one.device == "cpu")
    if not torch.cuda.is_available():
        assert any(getattr(one, "reason", "") == "no GPU on this machine" for one in result.latency)
    assert Result.model_validate_json(result.to_json()) == result


def test_saved_logits_are_those_that_were_scored(options):
    result = finetune(FinetuneConfig(**options | {"num_epochs": 1}))
    for split in ("validation", "test"):
        config = EvaluateConfig(model=str(options["output"]), data=options["data"], split=split)
        assert evaluate(config).scores[split] == result.scores[split]
    assert load_classifier(options["output"]).task.labels == ("neg", "pos")


def test_training_defaults_are_those_of_the_training_loop():
    ours, theirs = FinetuneConfig.model_fields, TrainingConfig.model_fields
    shared = [name for name in theirs if name not in ("precision", "learning_rate")]  # by machine, by model
    assert {name: ours[name].default for name in shared} == {name: theirs[name].default for name in shared}
