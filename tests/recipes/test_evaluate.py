"""Claims about scoring a finished model."""

import csv
import shutil

import pytest
from datasets import ClassLabel, Dataset, Features, Value

from encoder.errors import CheckpointError, ConfigError, DataError
from recipes.evaluate import evaluate
from recipes.evaluate_config import EvaluateConfig
from recipes.observer import Silent
from recipes.result import read_result


def config(finetuned, data, **changes):
    return EvaluateConfig(**{"model": finetuned.output, "data": str(data), **changes})


@pytest.mark.parametrize("split", ["validation", "test"])
def test_scores_are_those_of_the_fine_tuning(finetuned, reviews, split):
    result = evaluate(config(finetuned, reviews, split=split))
    assert result.scores == {split: finetuned.scores[split]}
    assert result.model.sha256 == finetuned.model.sha256
    assert result.model.max_length == finetuned.model.max_length == 12


def test_tokenizing_is_a_stage_with_its_progress(finetuned, reviews, monkeypatch):
    monkeypatch.setattr("encoder.tokenizer.CHUNK_ROWS", 10)
    seen: dict[str, list[tuple[int, int]]] = {}

    class Watching(Silent):
        def stage(self, name):
            self.name = name

        def working(self, done, total, unit=""):
            seen.setdefault(self.name, []).append((done, total))

    evaluate(config(finetuned, reviews), Watching())
    assert seen["Tokenizing"] == [(10, 24), (20, 24), (24, 24)]


def test_test_split_is_scored_unless_said_otherwise(finetuned, reviews):
    assert list(evaluate(config(finetuned, reviews)).scores) == ["test"]


def test_single_file_is_scored_whole(finetuned, reviews):
    result = evaluate(config(finetuned, reviews / "train.csv"))
    assert list(result.scores) == ["test"]
    assert result.data.report.splits["test"].rows == 80


def test_label_that_is_missing_from_the_data_shifts_no_other(finetuned, reviews, tmp_path):
    lines = (reviews / "test.csv").read_text().splitlines()
    only_pos = [line for line in lines if not line.endswith(",neg")]
    (tmp_path / "pos.csv").write_text("\n".join(only_pos) + "\n")
    both = evaluate(config(finetuned, reviews)).scores["test"]["accuracy"]
    pos = evaluate(config(finetuned, tmp_path / "pos.csv")).scores["test"]["accuracy"]
    only_neg = [lines[0], *(line for line in lines if line.endswith(",neg"))]
    (tmp_path / "neg.csv").write_text("\n".join(only_neg) + "\n")
    neg = evaluate(config(finetuned, tmp_path / "neg.csv")).scores["test"]["accuracy"]
    assert both == pytest.approx((pos + neg) / 2)


def test_class_numbers_of_another_order_score_the_same(finetuned, reviews, tmp_path):
    with (reviews / "test.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    names = ["pos", "neg"]
    assert list(finetuned.model.labels) == names[::-1]
    columns = {"text": [row["text"] for row in rows], "label": [names.index(row["label"]) for row in rows]}
    features = Features({"text": Value("string"), "label": ClassLabel(names=names)})
    Dataset.from_dict(columns, features=features).save_to_disk(str(tmp_path / "turned"))
    assert evaluate(config(finetuned, tmp_path / "turned")).scores == {"test": finetuned.scores["test"]}


def test_mistakes_are_told(finetuned, reviews, tiny_model, tmp_path):
    with pytest.raises(ConfigError, match=r"--split train: .* has only test"):
        evaluate(config(finetuned, reviews / "test.csv", split="train"))
    with pytest.raises(CheckpointError, match="without a classifier"):
        evaluate(EvaluateConfig(model=str(tiny_model), data=str(reviews)))
    (tmp_path / "scores.csv").write_text("text,label\ngood film,0.5\nbad film,1.5\n")
    with pytest.raises(DataError, match=r"scores\.csv:2: .*'0\.5'"):
        evaluate(config(finetuned, tmp_path / "scores.csv"))


def test_run_json_that_is_broken_says_what_to_do(finetuned, reviews, tmp_path):
    folder = shutil.copytree(finetuned.output, tmp_path / "model")
    (folder / "run.json").write_text('{"command": "finetune"}')
    with pytest.raises(CheckpointError, match=r"run\.json: not a result of enc: .*delete it"):
        evaluate(EvaluateConfig(model=str(folder), data=str(reviews)))


def test_score_lies_in_its_interval(finetuned, reviews):
    result = evaluate(config(finetuned, reviews / "train.csv"))
    interval = result.intervals["test"]
    assert (interval.metric, interval.rows) == ("accuracy", 80)
    assert interval.low < interval.score == result.scores["test"]["accuracy"] <= interval.high
    assert finetuned.intervals["test"].score == finetuned.scores["test"]["accuracy"]


def test_output_holds_what_was_returned(finetuned, reviews, tmp_path):
    result = evaluate(config(finetuned, reviews, output=tmp_path / "scored"))
    assert read_result(tmp_path / "scored") == result
    assert result.parent.sha256 == finetuned.model.sha256
    with pytest.raises(ConfigError, match="not empty"):
        evaluate(config(finetuned, reviews, output=tmp_path / "scored"))


def test_measurement_never_replaces_a_model(finetuned, reviews):
    with pytest.raises(ConfigError, match="a model is in that folder"):
        evaluate(config(finetuned, reviews, output=finetuned.output, overwrite=True))
