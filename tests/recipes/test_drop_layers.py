"""Claims about dropping layers, on a tiny fine-tuned encoder."""

import pytest

from encoder.checkpoint import load_classifier
from encoder.errors import ConfigError
from recipes.drop_layers import drop_layers
from recipes.drop_layers_config import DropLayersConfig
from recipes.result import read_result


@pytest.fixture
def options(finetuned, reviews, tmp_path, no_fresh_process):
    return {
        "model": finetuned.output,
        "data": str(reviews),
        "output": tmp_path / "out",
        "latency": False,
    }


@pytest.mark.parametrize(
    ("which", "layers"),
    [
        ({"keep": (0, 2)}, [0, 2]),
        ({"drop": (0,)}, [1, 2]),
        ({"layers": 2, "strategy": "top"}, [0, 1]),
        ({"layers": 1, "strategy": "alternate"}, [2]),
    ],
)
def test_layers_that_were_asked_for_stay(options, which, layers):
    result = drop_layers(DropLayersConfig(**options, **which))
    assert [one.layer for one in result.pruning.layers if one.after] == layers
    assert load_classifier(options["output"]).config.num_hidden_layers == len(layers)
    assert result.model.num_hidden_layers == len(layers)
    assert result.pruning.masked_difference < 1e-5
    assert result.model.family == "bert"


def test_importance_says_what_each_layer_is_worth(options):
    found = drop_layers(DropLayersConfig(**options, layers=2)).pruning
    assert (found.method, found.rows) == ("importance", 80)
    scores = [layer.importance[0] for layer in found.layers]
    gone = next(layer.layer for layer in found.layers if layer.after == 0)
    assert scores[gone] == min(scores)
    assert len(found.control.scores) == 3


def test_recovery_and_max_drop(options):
    found = drop_layers(DropLayersConfig(**options, max_drop=100.0, recover_epochs=1))
    assert found.pruning.units_after == 1
    assert found.training is not None


def test_mistakes_are_told(options):
    for which, match in (
        ({"layers": 4}, "--layers 4: .* has 3 layers"),
        ({"keep": (0, 3)}, "--keep 3: .* has 3 layers, counted from 0"),
        ({"drop": (0, 1, 2)}, "--drop 0,1,2: no layer would be left"),
    ):
        with pytest.raises(ConfigError, match=match):
            drop_layers(DropLayersConfig(**options, **which))


def test_the_only_layer_has_no_importance_to_tell(options, tmp_path):
    drop_layers(DropLayersConfig(**options, layers=1))
    only = options | {"model": str(options["output"]), "output": tmp_path / "only"}
    result = drop_layers(DropLayersConfig(**only, layers=1))
    assert [layer.importance for layer in result.pruning.layers] == [None]
    assert read_result(tmp_path / "only") == result
