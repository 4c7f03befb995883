"""Claims about pruning neurons, on a tiny fine-tuned encoder."""

import pytest

from compress import units
from encoder.checkpoint import load_classifier
from encoder.errors import ConfigError
from recipes.prune_neurons import prune_neurons
from recipes.prune_neurons_config import PruneNeuronsConfig


@pytest.fixture
def options(finetuned, reviews, tmp_path, no_fresh_process):
    return {
        "model": finetuned.output,
        "data": str(reviews),
        "output": tmp_path / "out",
        "repair_rows": 40,
        "latency": False,
    }


def test_half_of_the_neurons_go(options):
    result = prune_neurons(PruneNeuronsConfig(**options, sparsity=0.5, min_neurons_per_layer=8))
    found = result.pruning
    assert (found.unit, found.units_before, found.units_after) == ("neurons", 192, 96)
    sizes = [shape.intermediate_size for shape in load_classifier(options["output"]).config.layers]
    assert [layer.after for layer in found.layers] == sizes
    assert min(sizes) >= 8
    assert found.masked_difference < 1e-5
    assert all(layer.importance is None and layer.heads_before is None for layer in found.layers)
    assert result.size.bytes_on_disk < found.size_before.bytes_on_disk


def test_layer_may_lose_all_its_neurons(options):
    result = prune_neurons(PruneNeuronsConfig(**options, keep="1:;2:0-31"))
    assert [layer.after for layer in result.pruning.layers] == [64, 0, 32]
    assert result.pruning.method == "named"
    assert result.pruning.rows == 0


def test_all_neurons_may_go_as_long_as_there_are_heads(options):
    result = prune_neurons(PruneNeuronsConfig(**options, sparsity=1.0))
    assert result.pruning.units_after == 0
    assert [shape.num_attention_heads for shape in load_classifier(options["output"]).config.layers] == [
        4
    ] * 3


def test_mistakes_are_told(options):
    with pytest.raises(ConfigError, match=r"--neurons 193: .* has 192 neurons"):
        prune_neurons(PruneNeuronsConfig(**options, neurons=193))


def test_importance_that_would_take_forever_is_refused_before_the_model_is_loaded(options, monkeypatch):
    monkeypatch.setattr(units, "MOST_ABLATIONS", 191)
    monkeypatch.setattr("recipes.pruning.look_at_model", None)
    config = PruneNeuronsConfig(**options, sparsity=0.5, method="ablation")
    with pytest.raises(ConfigError, match=r"--method ablation: .* 192 times.*choose fisher or gradient"):
        prune_neurons(config)
