"""Claims about fine-tuning a model that was fine-tuned before: it is compared with itself."""

import shutil
from pathlib import Path

import pytest

from encoder.errors import CheckpointError
from recipes.evaluate import evaluate
from recipes.evaluate_config import EvaluateConfig
from recipes.finetune import finetune
from recipes.finetune_config import FinetuneConfig
from recipes.result import hash_model, read_result


@pytest.fixture
def options(finetuning):
    return finetuning


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
