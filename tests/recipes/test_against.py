"""Claims about two models on the same rows."""

import json
import shutil
from pathlib import Path

import pytest

from compress.uncertainty import McNemar, ScoreDifference
from encoder.errors import ConfigError
from encoder.task import Task
from recipes.against import check_other, find_parent, judge
from recipes.evaluate import evaluate
from recipes.evaluate_config import EvaluateConfig


def difference(value, low, high, metric="accuracy"):
    return ScoreDifference(metric=metric, difference=value, low=low, high=high, rows=500)


@pytest.mark.parametrize(
    ("found", "p_value", "verdict"),
    [
        (difference(0.004, -0.01, 0.02), 0.7, "no difference from B that 500 rows can show"),
        (difference(0.0, 0.0, 0.0), 1.0, "no difference from B that 500 rows can show"),
        (difference(0.04, 0.02, 0.06), 0.001, "better than B, more than chance explains on 500 rows"),
        (difference(-0.04, -0.06, -0.02), 0.001, "worse than B, more than chance explains on 500 rows"),
        # The exact test decides where rows are right or wrong; the interval where the metric is another.
        (difference(0.02, 0.001, 0.04), 0.06, "no difference from B that 500 rows can show"),
        (difference(0.02, 0.001, 0.04, "micro_f1"), 0.06, "better than B, more than chance explains"),
        (difference(-0.2, -0.3, -0.1, "mse"), None, "better than B, more than chance explains"),
        (difference(0.1, -0.1, 0.3, "pearson"), None, "no difference from B that 500 rows can show"),
        (difference(float("nan"), float("nan"), float("nan"), "pearson"), None, "cannot be compared with B"),
    ],
)
def test_verdict_claims_no_more_than_the_rows_show(found, p_value, verdict):
    test = None if p_value is None else McNemar(only_first=5, only_second=1, p_value=p_value)
    assert judge(found, test, "B").startswith(verdict)


def test_model_against_itself_differs_in_nothing(finetuned, reviews):
    config = EvaluateConfig(model=finetuned.output, data=str(reviews), against=finetuned.output)
    against = evaluate(config).against
    assert against.scores == finetuned.scores["test"]
    assert (against.mcnemar.only_first, against.mcnemar.only_second) == (0, 0)
    assert against.verdict == f"no difference from {finetuned.output} that 24 rows can show"


def test_other_order_of_labels_changes_nothing(finetuned, reviews, tmp_path):
    """The same model with its two outputs swapped, and their names too."""
    from safetensors.torch import load_file, save_file

    other = tmp_path / "swapped"
    shutil.copytree(finetuned.output, other)
    weights = load_file(other / "model.safetensors")
    for name in ("classifier.weight", "classifier.bias"):
        weights[name] = weights[name].flip(0).contiguous()
    save_file(weights, other / "model.safetensors", metadata={"format": "pt"})
    text = (other / "config.json").read_text().replace('"neg"', '"x"').replace('"pos"', '"neg"')
    (other / "config.json").write_text(text.replace('"x"', '"pos"'))
    config = EvaluateConfig(model=finetuned.output, data=str(reviews), against=str(other))
    assert evaluate(config).against.scores == finetuned.scores["test"]


def test_model_of_another_task_is_refused_with_both_shown(finetuned, tiny_model):
    with pytest.raises(ConfigError, match=r"--against .* with 'neg', 'pos'; expected .* with 'a', 'b'"):
        check_other(finetuned.output, Task(kind="single_label", labels=("a", "b")))
    with pytest.raises(ConfigError, match="without a classifier; there is nothing to compare"):
        check_other(str(tiny_model), Task(kind="single_label", labels=("a", "b")))


@pytest.fixture
def child(finetuned, tmp_path):
    """A copy of the fine-tuned model whose run.json calls the original its parent."""
    folder = tmp_path / "child"
    shutil.copytree(finetuned.output, folder)
    run = json.loads((folder / "run.json").read_text())
    run["parent"] = {"source": finetuned.output, "sha256": finetuned.model.sha256, "run": None}
    (folder / "run.json").write_text(json.dumps(run))
    return folder


def test_parent_is_compared_with_unless_told_not_to(child, finetuned, reviews):
    config = EvaluateConfig(model=str(child), data=str(reviews))
    assert evaluate(config).against.source == finetuned.output
    assert evaluate(config.model_copy(update={"against": "none"})).against is None


def test_parent_that_changed_or_has_no_classifier_is_none(child, finetuned, tmp_path):
    assert find_parent(Path(finetuned.output)) is None  # an encoder
    run = json.loads((child / "run.json").read_text())
    run["parent"]["sha256"] = "another"
    (child / "run.json").write_text(json.dumps(run))
    assert find_parent(child) is None
    assert find_parent(tmp_path) is None
