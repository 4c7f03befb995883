"""Claims about which rows a model is judged on."""

import pytest

from encoder.data import DataOptions
from encoder.sources import read_source
from recipes.evaluate import evaluate
from recipes.evaluate_config import EvaluateConfig
from recipes.evaluation_data import read_evaluation_data
from recipes.export import export
from recipes.export_config import ExportConfig
from recipes.finetune import finetune
from recipes.finetune_config import FinetuneConfig
from recipes.scoring import find_fine_tuned


@pytest.fixture(scope="module")
def trained(tiny_model, reviews, tmp_path_factory):
    """A model that was fine-tuned on one table without splits, and the table."""
    folder = tmp_path_factory.mktemp("one-table")
    table = folder / "reviews.csv"
    table.write_bytes((reviews / "train.csv").read_bytes())
    result = finetune(
        FinetuneConfig(
            model=str(tiny_model), data=str(table), output=folder / "model", num_epochs=1, latency=False
        )
    )
    return result, table


def test_table_that_a_model_was_trained_on_is_cut_as_it_was_then(trained) -> None:
    result, table = trained
    found = find_fine_tuned(result.output, None)
    data = read_evaluation_data(found, str(table), DataOptions())
    assert (data.fingerprint, list(data.splits)) == (result.data.fingerprint, ["train", "validation"])


def test_other_table_is_all_test_rows_and_read_once(trained, tmp_path, monkeypatch) -> None:
    reading = []
    monkeypatch.setattr("encoder.data.read_source", lambda *a, **b: reading.append(a) or read_source(*a, **b))
    result, table = trained
    lines = table.read_text().splitlines(keepends=True)
    (tmp_path / "other.csv").write_text("".join(lines[:-1]))
    found = find_fine_tuned(result.output, None)
    data = read_evaluation_data(found, str(tmp_path / "other.csv"), DataOptions())
    assert {name: len(split) for name, split in data.splits.items()} == {"test": 79}
    assert len(reading) == 1


def test_no_row_of_a_training_is_evaluated_or_proven_on(trained, tmp_path) -> None:
    result, table = trained
    places = {"model": result.output, "data": str(table)}
    evaluated = evaluate(EvaluateConfig(**places))
    exported = export(ExportConfig(**places, output=tmp_path / "onnx", latency=False))
    assert evaluated.scores == exported.scores == result.scores
    assert list(exported.export.parity) == ["validation"]


def test_table_that_has_changed_since_the_training_is_said_to_be(trained, tmp_path) -> None:
    result, table = trained
    before = table.read_text()
    try:
        table.write_text(before + "one more,pos\n")
        found = find_fine_tuned(result.output, None)
        data = read_evaluation_data(found, str(table), DataOptions())
    finally:
        table.write_text(before)
    assert list(data.splits) == ["test"]
    assert "is what the model was trained on, but it is not as it was then" in data.report.notes[-1]
