"""Claims about the folder of an exported model: it works alone, and what changes in it is named."""

import json
import shutil
import subprocess
import sys
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from encoder.errors import CheckpointError
from encoder.metrics import activate
from encoder.model_folder import read_tokenizer
from encoder.prediction import predict_logits
from encoder.task import Task
from recipes.bench import bench
from recipes.bench_config import BenchConfig
from recipes.evaluate import evaluate
from recipes.evaluate_config import EvaluateConfig
from recipes.export import export
from recipes.export_config import ExportConfig
from recipes.predict import predict
from recipes.predict_config import PredictConfig
from tests.recipes.random_models import make_model

# Runs a script as if the packages were not installed.
WITHOUT = """
import runpy, sys
sys.modules.update(dict.fromkeys(["torch", "transformers", "encoder", "compress", "recipes", "commands"]))
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def run_example(folder, *texts):
    done = subprocess.run(
        [sys.executable, "-I", "-c", WITHOUT, str(folder / "example.py"), *texts],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def copy_of(exported, tmp_path):
    return Path(shutil.copytree(exported.output, tmp_path / "copy"))


PAIRS = [
    ("good film", "bad plot"),
    ("a very long slow story and cast", "it"),
    ("good", "was the film good a a"),
]
TASKS = {
    "single label, pruned unevenly": (Task(kind="single_label", labels=("b", "a", "ü")), "softmax"),
    "pairs": (Task(kind="single_label", labels=("no", "yes"), pair=True), "softmax"),
    "multi-label": (Task(kind="multi_label", labels=("joy", "fear", "awe")), "sigmoid"),
    "regression of pairs": (Task(kind="regression", pair=True), "identity"),
}


@pytest.fixture(params=TASKS)
def of_a_task(request, tiny_model, tmp_path):
    """A model of each kind, its export, and its activation."""
    task, activation = TASKS[request.param]
    model = make_model(tiny_model, tmp_path / "model", task, pruned="pruned" in request.param)
    draw = np.random.default_rng(0)
    words = ("good", "bad", "film", "plot", "a", "story")
    lines = ["text_a,text_b,label" if task.pair else "text,label"]
    for row in range(12):
        texts = [" ".join(draw.choice(words, draw.integers(1, 9))) for _ in range(1 + task.pair)]
        label = task.labels[row % len(task.labels)] if task.labels else str(row / 4)
        lines.append(",".join([*texts, label]))
    (tmp_path / "data.csv").write_text("\n".join(lines) + "\n")
    result = export(
        ExportConfig(
            model=str(tmp_path / "model"),
            data=str(tmp_path / "data.csv"),
            output=tmp_path / "onnx",
            label_separator="|" if task.kind == "multi_label" else None,
            latency=False,
        )
    )
    return model, result, activation


def test_each_kind_of_task_runs_without_enc_and_torch(of_a_task, tiny_model):
    """E7, E8, E13, E14: the example of the folder gives torch's answers, pairs with their segments."""
    model, result, activation = of_a_task
    assert result.export.failures == ()
    assert result.export.parity["test"].max_difference < 1e-5
    assert result.export.activation == activation
    firsts, seconds = zip(*PAIRS, strict=True)
    pairs = seconds if model.task.pair else None
    rows, _ = read_tokenizer(tiny_model).encode(firsts, pairs)
    expected = activate(model.task, predict_logits(model, rows))
    found = run_example(Path(result.output), *(chain.from_iterable(PAIRS) if model.task.pair else firsts))
    if model.task.labels:
        assert [list(row) for row in found] == [list(model.task.labels)] * len(PAIRS)
        found = [list(row.values()) for row in found]
    assert np.ptp(expected, axis=0).min() > 1e-3
    assert np.array(found).reshape(expected.shape) == pytest.approx(expected, abs=1e-5)


def test_the_example_cuts_texts_where_enc_does(exported, finetuned):
    texts = ["good film " * 30, "bad " * 40]
    made = predict(PredictConfig(model=finetuned.output, texts=tuple(texts)))
    expected = [one.probabilities for one in chain.from_iterable(made.rows)]
    found = [tuple(row.values()) for row in run_example(Path(exported.output), *texts)]
    assert np.array(found) == pytest.approx(np.array(expected), abs=1e-5)


def test_the_example_has_25_lines(exported):
    assert len((Path(exported.output) / "example.py").read_text().splitlines()) == 25


def test_the_card_says_what_it_is_how_good_and_where_from(exported, finetuned):
    card = (Path(exported.output) / "MODEL_CARD.md").read_text()
    assert "Labels, in the order of the logits: `neg`, `pos`." in card
    assert f"{exported.scores['test']['accuracy']:.4f}" in card
    assert "logits differ by" in card
    assert f"`{finetuned.output}`, made by `enc finetune`" in card
    assert "apply softmax" in card


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json", "config.json"])
def test_a_file_that_changed_is_named(exported, tmp_path, name):
    folder = copy_of(exported, tmp_path)
    with (folder / name).open("ab") as file:
        file.write(b"\n")
    with pytest.raises(CheckpointError, match=f"{name}: changed since it was exported"):
        predict(PredictConfig(model=str(folder), texts=("a",)))


def test_files_that_are_missing_are_all_named(exported, tmp_path, reviews):
    folder = copy_of(exported, tmp_path)
    (folder / "model.onnx").unlink()
    with pytest.raises(CheckpointError, match=r"model\.onnx: missing"):
        bench(BenchConfig(models=(str(folder),)))
    (folder / "SHA256SUMS").unlink()
    with pytest.raises(CheckpointError, match=r"SHA256SUMS: missing or not readable"):
        evaluate(EvaluateConfig(model=str(folder), data=str(reviews), against="none"))


def test_the_card_and_the_example_may_be_edited(exported, tmp_path):
    folder = copy_of(exported, tmp_path)
    (folder / "MODEL_CARD.md").write_text("mine")
    (folder / "example.py").unlink()
    assert next(predict(PredictConfig(model=str(folder), texts=("a",))).rows)
