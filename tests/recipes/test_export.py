"""Claims about exporting a model, on tiny random encoders."""

import json
import shutil
import subprocess
import sys
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
import torch

from compress.latency import Latency
from encoder.checkpoint import save_classifier
from encoder.errors import CheckpointError, ConfigError, DataError, ExportError
from encoder.model_folder import read_config, read_task, read_tokenizer, resolve_model
from encoder.task import Task
from recipes.bench import bench
from recipes.bench_config import BenchConfig
from recipes.evaluate import evaluate
from recipes.evaluate_config import EvaluateConfig
from recipes.export import export
from recipes.export_config import ExportConfig
from recipes.finetune import finetune
from recipes.finetune_config import FinetuneConfig
from recipes.predict import predict
from recipes.predict_config import PredictConfig
from recipes.result import read_result
from recipes.runs import runs
from recipes.runs_config import RunsConfig
from tests.recipes.random_models import make_model

TEXTS = ("good film", "a bad dull plot and a very long story of it", "", "лучший")


@pytest.fixture
def options(finetuned, reviews, tmp_path):
    return {"model": finetuned.output, "data": str(reviews), "output": tmp_path / "out", "latency": False}


def test_folder_is_whole_and_run_json_is_the_result(exported, finetuned):
    folder = Path(exported.output)
    assert {path.name for path in folder.iterdir()} == {
        *("model.onnx", "config.json", "tokenizer.json", "tokenizer_config.json"),
        *("run.json", "MODEL_CARD.md", "SHA256SUMS", "example.py"),
    }
    assert not folder.with_name("reviews-onnx.unfinished").exists()
    assert read_result(folder) == exported
    assert exported.parent.sha256 == finetuned.model.sha256 != exported.model.sha256
    assert exported.parent.run["command"] == "finetune"


def test_it_gives_torchs_answers_on_the_users_rows(exported, finetuned):
    found = exported.export
    assert found.failures == ()
    assert found.parity["test"].rows == 24
    assert found.parity["test"].max_difference < 1e-5
    assert found.parity["test"].agreement == 1
    assert found.parity["test"].padding > 0.05  # rows of several lengths were computed together
    assert exported.scores["test"] == found.before["test"] == finetuned.scores["test"]
    assert exported.intervals["test"] == finetuned.intervals["test"]
    assert exported.against.source == finetuned.output


def test_labels_task_and_activation_are_in_the_config(exported, finetuned):
    """D1, E14."""
    own = json.loads((Path(exported.output) / "config.json").read_text())["enc"]
    assert own["task"] == {"kind": "single_label", "labels": ["neg", "pos"], "pair": False}
    assert own["export"]["activation"] == "softmax"
    assert own["export"]["inputs"] == ["input_ids", "attention_mask", "token_type_ids"]
    assert own["export"]["max_length"] == finetuned.model.max_length
    assert exported.model.labels == finetuned.model.labels


def test_predict_takes_it_as_it_takes_a_model_and_loads_no_torch(exported, finetuned):
    """M1."""
    texts = (*TEXTS, "good film " * 30)
    config = PredictConfig(model=finetuned.output, texts=texts)
    expected = list(chain.from_iterable(predict(config).rows))
    code = (
        "import sys, json; from recipes.predict import predict; from recipes.predict_config import *\n"
        "made = predict(PredictConfig(model=sys.argv[1], texts=sys.argv[2:]))\n"
        "rows = [[one.labels, one.probabilities] for chunk in made.rows for one in chunk]\n"
        "print(json.dumps([rows, 'torch' in sys.modules]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, exported.output, *texts], capture_output=True, text=True, check=True
    )
    rows, has_torch = json.loads(done.stdout)
    assert not has_torch
    assert [tuple(labels) for labels, _ in rows] == [one.labels for one in expected]
    found = np.array([probabilities for _, probabilities in rows])
    assert found == pytest.approx(np.array([one.probabilities for one in expected]), abs=1e-6)


def test_evaluate_takes_it_and_compares_with_the_model_it_was_made_of(exported, finetuned, reviews):
    result = evaluate(EvaluateConfig(model=exported.output, data=str(reviews)))
    assert result.scores["test"] == finetuned.scores["test"]
    assert result.against.source == finetuned.output
    assert result.against.difference.difference == 0
    assert result.model.sha256 == exported.model.sha256
    turned = evaluate(
        EvaluateConfig(model=finetuned.output, data=str(reviews), against=exported.output, split="validation")
    )
    assert turned.against.scores == turned.scores["validation"]


def test_bench_takes_it_as_it_is(exported):
    config = BenchConfig(
        models=(exported.output,), batch_sizes="2", sequence_lengths="8", min_seconds=0, min_runs=1, threads=1
    )
    result = bench(config)
    assert [row.latency.runtime for row in result.rows] == ["onnx-fp32"]
    assert result.models[0].size.bytes_on_disk == exported.size.bytes_on_disk
    assert any("runs as it is: portable graph, onnx-fp32" in note for note in result.notes)


def test_runs_lists_it_below_the_model_it_was_made_of(exported, finetuned, tmp_path):
    shutil.copytree(finetuned.output, tmp_path / "model")
    shutil.copytree(exported.output, tmp_path / "onnx")
    shutil.copytree(exported.output, tmp_path / "broken.failed")
    entries = {entry.name: entry for entry in runs(RunsConfig(folder=tmp_path)).runs}
    assert entries[str(tmp_path / "onnx")].parent == str(tmp_path / "model")
    assert str(tmp_path / "broken.failed") not in entries


@pytest.fixture
def wrong_graph(monkeypatch):
    """Graphs that compute something else."""
    import compress.onnx_graph as module

    build = module.build_graph

    def wrong(model, **more):
        with torch.no_grad():
            model.classifier.output.bias[0] += 5
            try:
                return build(model, **more)
            finally:
                model.classifier.output.bias[0] -= 5

    monkeypatch.setattr(module, "build_graph", wrong)


def test_an_export_that_fails_is_not_there_under_its_name_and_is_refused(options, wrong_graph, reviews):
    """E4."""
    result = export(ExportConfig(**options))
    failed = options["output"].with_name("out.failed")
    assert not options["output"].exists()
    assert not options["output"].with_name("out.unfinished").exists()
    assert result.output == str(failed)
    assert "differ from torch's by up to 5; --tolerance allows 0.0001" in result.export.failures[0]
    assert "**Failed, not to be used:**" in (failed / "MODEL_CARD.md").read_text()
    for run in (
        lambda: predict(PredictConfig(model=str(failed), texts=("a",))),
        lambda: evaluate(EvaluateConfig(model=str(failed), data=str(reviews))),
        lambda: bench(BenchConfig(models=(str(failed),))),
    ):
        with pytest.raises(
            CheckpointError, match="the export of this model failed, so it is not used: Logits"
        ):
            run()


def test_what_works_is_not_replaced_by_what_fails(options, exported, wrong_graph):
    shutil.copytree(exported.output, options["output"])
    for _ in range(2):  # nor does what failed before stand in the way
        assert export(ExportConfig(**options, overwrite=True)).export.failures
    assert read_result(options["output"]) == exported


def test_a_tolerance_of_ones_own_decides(options, wrong_graph):
    result = export(ExportConfig(**options, tolerance=6, max_drop=100))
    assert result.export.failures == ()
    assert result.output == str(options["output"])


@pytest.mark.parametrize(("max_drop", "fails"), [(1.9, True), (2.0, False)])
def test_a_score_that_falls_too_far_fails(options, monkeypatch, max_drop, fails):
    monkeypatch.setattr("recipes.export_proof.find_drop", lambda *_: 0.02)
    found = export(ExportConfig(**options, max_drop=max_drop)).export
    sentence = f"The accuracy falls by 2.00 points; --max-drop allows {max_drop:g}"
    assert found.failures == ((sentence,) if fails else ())


def test_logits_that_are_no_numbers_fail(options, monkeypatch, finetuned):
    logits = np.full((24, 2), np.nan, dtype=np.float32)
    monkeypatch.setattr("compress.sessions.fresh_logits", lambda *_, **__: logits)
    result = export(ExportConfig(**options))
    assert result.export.failures == (
        "Logits of the 24 test rows are not finite",
        "The accuracy is not defined any more",
    )
    assert result.export.parity["test"].max_difference is None
    assert read_result(options["output"].with_name("out.failed")) == result


def test_what_trains_or_changes_a_model_refuses_an_exported_one(exported, options, reviews, tmp_path):
    message = "an exported model, which runs as it is and cannot be trained, changed or exported again"
    with pytest.raises(CheckpointError, match=message):
        export(ExportConfig(**options | {"model": exported.output}))
    with pytest.raises(CheckpointError, match=message):
        finetune(FinetuneConfig(model=exported.output, data=str(reviews), output=tmp_path / "again"))


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"opset": 9}, ExportError, "opset 9: expected 17"),
        ({"precision": "fp16"}, ExportError, "--precision fp16 is for GPUs.*use --precision int8"),
        ({"data": "nowhere.csv"}, DataError, "nowhere.csv: no such file"),
        ({"model": "nowhere/x"}, CheckpointError, "nowhere/x"),
    ],
)
def test_mistakes_are_told_before_anything_is_computed(options, monkeypatch, changes, error, message):
    monkeypatch.setattr("compress.runtimes.list_gpus", lambda: ())
    monkeypatch.setattr("recipes.export_inputs.score_split", lambda *_, **__: pytest.fail("computed"))
    with pytest.raises(error, match=message):
        export(ExportConfig(**options | changes))
    assert list(options["output"].parent.iterdir()) == []


def test_a_disk_without_room_is_told_before_anything_is_computed(options, monkeypatch):
    usage = shutil.disk_usage(options["output"].parent)
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage._replace(free=1000))
    with pytest.raises(ConfigError, match=r"needs about .* MB are free on that disk; make room"):
        export(ExportConfig(**options))


def test_labels_that_the_model_does_not_know_are_refused(options, tmp_path):
    (tmp_path / "data.csv").write_text("text,label\ngood film,neutral\nbad,neg\n")
    with pytest.raises(DataError, match="neutral"):
        export(ExportConfig(**options | {"data": str(tmp_path / "data.csv")}))


def test_fused_operators_are_counted_layer_by_layer(tiny_model, reviews, tmp_path):
    """E1, E2: a layer without heads and one without neurons have none."""
    task = Task(kind="single_label", labels=("neg", "pos"))
    make_model(tiny_model, tmp_path / "model", task, pruned=True)
    result = export(
        ExportConfig(
            model=str(tmp_path / "model"),
            data=str(reviews),
            output=tmp_path / "out",
            graph="fused",
            latency=False,
        )
    )
    found = result.export
    assert found.failures == ()
    assert found.fused == found.fused_expected
    assert (found.fused["Attention"], found.fused["MultiHeadAttention"], found.fused["BiasGelu"]) == (1, 1, 2)
    assert found.parity["test"].max_difference < 1e-5


def test_a_fused_operator_that_is_missing_is_an_error(options, monkeypatch):
    monkeypatch.setattr("compress.fused_graph.expected_counts", lambda config: {"MultiHeadAttention": 99})
    with pytest.raises(ExportError, match=r"the graph holds .*; expected 99 × MultiHeadAttention"):
        export(ExportConfig(**options, graph="fused"))
    assert list(options["output"].parent.iterdir()) == []


def test_a_smaller_vocabulary_treats_the_given_texts_as_before(options, reviews, finetuned):
    result = export(ExportConfig(**options, prune_vocab=reviews / "test.csv", max_drop=0))
    found = result.export
    assert found.failures == ()
    assert found.parity["test"].max_difference < 1e-5
    before, after = (read_config(Path(folder)).vocab_size for folder in (finetuned.output, result.output))
    assert after < before
    assert read_tokenizer(Path(result.output)).vocab_size == after
    assert result.size.parameters < found.size_before.parameters
    assert any(f"{after} of {before} pieces stay" in note for note in result.notes)


def test_texts_to_keep_the_vocabulary_of_are_read_before_anything_is_computed(options, tmp_path):
    with pytest.raises(DataError, match=r"nowhere\.txt: cannot be read"):
        export(ExportConfig(**options, prune_vocab=tmp_path / "nowhere.txt"))


def test_fp16_is_proven_where_there_is_a_gpu(options, monkeypatch):
    """Here it runs on the CPU, which converts at every step."""
    import compress.runtimes as module

    monkeypatch.setattr(module, "why_unavailable", lambda name, device: None)
    monkeypatch.setattr("recipes.export_proof.DEVICE_OF", {})
    result = export(ExportConfig(**options, precision="fp16", max_drop=5))
    assert result.export.failures == ()
    assert 0 < result.export.parity["test"].max_difference < 0.1
    assert result.size.bytes_on_disk < 0.7 * result.export.size_before.bytes_on_disk


def test_latency_is_measured_in_turns_with_torch(options, monkeypatch):
    for name, value in (("LAUNCHES", 2), ("SECONDS", 0.0), ("RUNS", 1), ("WARM_UP_SECONDS", 0.0)):
        monkeypatch.setattr(f"recipes.side_by_side.{name}", value)
    result = export(ExportConfig(**options | {"latency": True}, threads=1))
    found = result.export
    assert [one.runtime for one in found.latency_before if isinstance(one, Latency)] == ["torch-fp32"] * 2
    assert [one.runtime for one in result.latency if isinstance(one, Latency)] == ["onnx-fp32"] * 2
    assert [one.shape.batch_size for one in found.speedups] == [1, 24]
    card = (Path(result.output) / "MODEL_CARD.md").read_text()
    assert "| cpu, batch 1, data, p50 |" in card


# ---- a standard folder ------------------------------------------------------------------------------------


def test_standard_folder_of_a_pruned_model_is_an_ordinary_model(tiny_model, reviews, tmp_path):
    task = Task(kind="single_label", labels=("neg", "pos"))
    make_model(tiny_model, tmp_path / "pruned", task, pruned=True)
    output = tmp_path / "standard"
    config = ExportConfig(
        model=str(tmp_path / "pruned"), data=str(reviews), output=output, format="transformers", latency=False
    )
    result = export(config)
    assert result.export.failures == ()
    assert result.export.parity["test"].max_difference < 1e-5
    assert {path.name for path in output.iterdir()} == {
        *("model.safetensors", "config.json", "tokenizer.json", "tokenizer_config.json"),
        *("run.json", "MODEL_CARD.md"),
    }
    assert read_config(output).family == "bert"
    assert [shape.num_attention_heads for shape in read_config(output).layers] == [4, 4, 4]
    assert read_task(output) == task
    assert resolve_model(str(output)) == output
    again = evaluate(EvaluateConfig(model=str(output), data=str(reviews)))
    assert again.scores["test"] == result.scores["test"]


def test_model_without_a_standard_form_is_refused(tiny_model, options, tmp_path):
    config = read_config(tiny_model).model_copy(update={"norm": "pre"})
    from encoder.model import Classifier, initialise_

    model = Classifier(config, Task(kind="single_label", labels=("neg", "pos")))
    initialise_(model, config, 0)
    save_classifier(model, read_tokenizer(tiny_model), tmp_path / "pre")
    with pytest.raises(ExportError, match="no standard form: its layers normalise before and not after"):
        export(ExportConfig(**options | {"model": str(tmp_path / "pre")}, format="transformers"))
