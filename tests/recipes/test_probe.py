"""Claims about probing layers."""

import json
from pathlib import Path

import numpy as np
import pytest

from encoder.errors import ConfigError
from recipes.ledger import read_runs
from recipes.probe import probe
from recipes.probe_config import ProbeConfig
from recipes.probe_verdict import judge_probes


@pytest.fixture(scope="module")
def probed(finetuned, reviews, tmp_path_factory):
    output = tmp_path_factory.mktemp("probes") / "reviews"
    return probe(ProbeConfig(model=finetuned.output, data=str(reviews), output=output, seeds=2))


def test_each_layer_is_probed_with_both_controls(probed):
    assert [layer.layer for layer in probed.layers] == [0, 1, 2, 3]
    assert (probed.split, probed.rows, probed.train_rows, probed.seeds) == ("test", 24, 64, 2)
    for layer in probed.layers:
        assert layer.selectivity == pytest.approx(layer.accuracy - layer.random_weights)
        assert layer.strength > 0
    # The words alone say it: every layer has it, and so have random weights; shuffled labels have not.
    assert max(layer.accuracy for layer in probed.layers) > 0.9
    assert max(layer.shuffled_labels for layer in probed.layers) < 0.8
    assert probed.most_frequent == 0.5


def test_result_is_kept_as_run_json(probed):
    kept = json.loads((Path(probed.output) / "run.json").read_text())
    assert kept["command"] == "probe"
    assert len(kept["layers"]) == 4
    (entry,), problems = read_runs(Path(probed.output).parent)
    assert entry.run == probed
    assert entry.made is None
    assert not problems


def test_same_rows_and_seeds_give_the_same_numbers(probed, finetuned, reviews):
    again = probe(ProbeConfig(model=finetuned.output, data=str(reviews), seeds=2))
    assert again.layers == probed.layers
    assert again.verdict == probed.verdict


def test_encoder_without_a_classifier_and_data_without_test_rows(tiny_model, reviews):
    result = probe(
        ProbeConfig(model=str(tiny_model), data=str(reviews / "train.csv"), seeds=2, train_rows=40)
    )
    assert (result.split, result.train_rows) == ("validation", 32)


def test_numbers_cannot_be_probed(tiny_model, tmp_path):
    (tmp_path / "x.csv").write_text("text,label\n" + "".join(f"good {i},{i / 3:.2f}\n" for i in range(40)))
    with pytest.raises(ConfigError, match="regression; probes are classifiers"):
        probe(ProbeConfig(model=str(tiny_model), data=str(tmp_path / "x.csv")))


def rights(shares, rows=1000, seeds=2):
    """Rows that are right with these shares, by layer; layers have as much in common as they can."""
    return [[np.arange(rows) < share * rows for _ in range(seeds)] for share in shares]


def test_present_from_is_the_first_layer_that_rows_cannot_tell_from_the_best():
    verdict = judge_probes(rights([0.5, 0.8, 0.899, 0.9, 0.85]), rights([0.5, 0.6, 0.6, 0.6, 0.6]))
    assert (verdict.best, verdict.present_from, verdict.learned_from) == (3, 2, 1)
    hints = " ".join(verdict.hints)
    assert "Hints, not results" in hints
    assert "--freeze-layers 2 may lose little" in hints
    assert "--layers 2 may do: layers 2 to 3 add nothing" in hints


def test_where_the_last_layer_is_needed_there_is_no_hint():
    verdict = judge_probes(rights([0.5, 0.6, 0.9]), rights([0.5, 0.5, 0.5]))
    assert (verdict.present_from, verdict.learned_from) == (2, 1)
    assert verdict.hints == (
        "No hint at freezing or dropping layers: what is asked for is complete only after the last.",
    )


def test_nothing_beyond_random_weights_is_said():
    verdict = judge_probes(rights([0.7, 0.7, 0.7]), rights([0.7, 0.7, 0.7]))
    assert verdict.learned_from is None
    assert verdict.present_from == 0
    assert "no layer has more than chance explains" in verdict.sentences[1]
    assert "--freeze-layers" not in " ".join(verdict.hints)
