"""Which rows are cut off for validation: those of the training of the model at hand, if nothing is said."""

import pytest

from encoder.data import DataOptions
from recipes.data_options import data_options
from recipes.drop_layers import drop_layers
from recipes.drop_layers_config import DropLayersConfig
from recipes.evaluate import evaluate
from recipes.evaluate_config import EvaluateConfig
from recipes.finetune import finetune
from recipes.finetune_config import FinetuneConfig
from recipes.probe_config import ProbeConfig


@pytest.fixture(scope="module")
def trained(tiny_model, reviews, tmp_path_factory):
    """A model for which a quarter of the training rows were cut off, and data without a validation split."""
    folder = tmp_path_factory.mktemp("cut")
    for split in ("train", "test"):
        (folder / f"{split}.csv").write_bytes((reviews / f"{split}.csv").read_bytes())
    return finetune(
        FinetuneConfig(
            model=str(tiny_model),
            data=str(folder),
            output=folder / "model",
            num_epochs=1,
            validation_fraction=0.25,
            latency=False,
        )
    )


def test_what_is_given_wins_over_the_model_and_the_model_over_the_default(trained):
    given = EvaluateConfig(model="m", data="d", validation_fraction=0.5)
    silent = EvaluateConfig(model="m", data="d", text_column="body")
    assert data_options(given, trained).validation_fraction == 0.5
    assert data_options(silent, trained) == DataOptions(validation_fraction=0.25, text_column="body")
    assert data_options(silent) == DataOptions(text_column="body")


def test_a_number_of_rows_of_another_meaning_is_left_out():
    assert data_options(ProbeConfig(model="m", data="d"), rows_too=False).train_rows is None


def test_no_row_of_the_training_is_judged_on_by_a_later_command(trained, tmp_path, no_fresh_process):
    assert trained.data.validation_fraction == 0.25
    shared = {"model": str(trained.output), "data": trained.data.source}
    scored = evaluate(EvaluateConfig(**shared, split="validation"))
    assert scored.data.fingerprint == trained.data.fingerprint
    dropped = drop_layers(
        DropLayersConfig(**shared, output=tmp_path / "two", layers=2, strategy="top", latency=False)
    )
    assert dropped.data.fingerprint == trained.data.fingerprint
    again = finetune(
        FinetuneConfig(
            model=str(dropped.output),
            data=trained.data.source,
            output=tmp_path / "again",
            num_epochs=1,
            latency=False,
        )
    )
    assert again.data.fingerprint == trained.data.fingerprint


def test_data_with_a_validation_split_are_not_cut(finetuned):
    assert finetuned.data.validation_fraction is None
