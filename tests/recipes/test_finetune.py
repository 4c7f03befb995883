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
from recipes.result import Result, read_result


@pytest.fixture
def options(finetuning):
    return finetuning


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
