"""Claims about taking units and layers out for good."""

import numpy as np
import pytest
import torch

from compress.gates import passed_over, silenced
from compress.removal import keep_layers, keep_units
from compress.size import macs_per_token
from compress.units import unit_counts
from encoder.batches import Batch
from encoder.checkpoint import load_classifier, save_classifier
from encoder.config import LayerShape
from encoder.errors import CompressionError
from encoder.huggingface import is_standard
from tests.compress.conftest import BLOCKS, MODERN, VARIANTS, NoTokenizer

KEPT = {
    "some of each": [[0, 2], [1]],
    "none of the first layer": [[], [0, 1, 3]],
    "none of the last layer": [[0, 3], []],
    "none at all": [[], []],
}


def logits(model, rows):
    with torch.inference_mode():
        return model(Batch.from_rows(rows))


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS.keys())
@pytest.mark.parametrize("kept", KEPT.values(), ids=KEPT.keys())
@pytest.mark.parametrize("unit", ["heads", "neurons"])
def test_removed_equals_masked(config_with, classifier, rows_of, unit, kept, changes):
    model, rows = classifier(config_with(**changes)), rows_of([1, 7, 3, 12])
    kept = [*kept, [1], [2, 3]][: model.config.num_hidden_layers]
    with silenced(model, unit, kept):
        masked = logits(model, rows)
    removed = keep_units(model, unit, kept)
    assert torch.allclose(masked, logits(removed, rows), atol=1e-5)
    if unit == "neurons" or any(kept):
        assert not torch.allclose(masked, logits(model, rows), atol=1e-3)


@pytest.mark.parametrize("unit", ["heads", "neurons"])
def test_pruning_nothing_is_the_identity(config_with, classifier, unit):
    model = classifier(config_with())
    same = keep_units(model, unit, [list(range(count)) for count in unit_counts(model.config, unit)])
    assert same.config == model.config
    assert all(torch.equal(one, same.state_dict()[name]) for name, one in model.state_dict().items())
    assert not {p.data_ptr() for p in model.parameters()} & {p.data_ptr() for p in same.parameters()}


def test_head_size_stays_as_it_was(config_with, classifier):
    pruned = keep_units(classifier(config_with()), "heads", [[0, 2, 3], [1]])
    assert [shape.head_size for shape in pruned.config.layers] == [4, 4]
    assert pruned.encoder.layers[0].attention.qkv.weight.shape == (3 * 3 * 4, 16)
    assert pruned.encoder.layers[1].attention.output.weight.shape == (16, 4)


def test_layer_without_heads_is_its_output_bias(config_with, classifier, rows_of):
    model = keep_units(classifier(config_with()), "heads", [[], [0]])
    batch = Batch.from_rows(rows_of([3, 5]))
    mixed, weights = model.encoder.layers[0].attention(torch.randn(8, 16), batch.packing, need_weights=True)
    assert torch.equal(mixed, model.encoder.layers[0].attention.output.bias.expand(8, 16))
    assert weights.shape == (2, 0, 5, 5)


def test_heads_keep_their_first_numbers_when_pruned_twice(config_with, classifier, rows_of):
    model, rows = classifier(config_with()), rows_of([4, 9])
    once = keep_units(model, "heads", [[0, 2, 3], [1, 2]])
    twice = keep_units(once, "heads", [[0, 2], [1]])  # places among those that are left
    assert [shape.heads for shape in twice.config.layers] == [(0, 3), (2,)]
    assert torch.equal(logits(twice, rows), logits(keep_units(model, "heads", [[0, 3], [2]]), rows))
    with pytest.raises(CompressionError, match="layer 0 has 3 heads; there is no number 3"):
        keep_units(once, "heads", [[3], [1]])


def test_every_measure_of_size_goes_down(config_with, classifier, tmp_path):
    model = classifier(config_with())
    sizes = []
    for number, one in enumerate(
        (model, keep_units(model, "heads", [[0], [1, 2]]), keep_units(model, "neurons", [[0], [5]]))
    ):
        save_classifier(one, NoTokenizer(), tmp_path / str(number))
        sizes.append(
            (
                (tmp_path / str(number) / "model.safetensors").stat().st_size,
                sum(p.numel() for p in one.parameters()),
                macs_per_token(one.config, 16, num_outputs=3),
            )
        )
    for pruned in sizes[1:]:
        assert all(after < before for before, after in zip(sizes[0], pruned, strict=True))


@pytest.mark.parametrize("kept", KEPT.values(), ids=KEPT.keys())
def test_saved_and_loaded_it_has_equal_logits(config_with, classifier, rows_of, tmp_path, kept):
    rows = rows_of([2, 11])
    pruned = keep_units(keep_units(classifier(config_with()), "heads", kept), "neurons", kept)
    save_classifier(pruned, NoTokenizer(), tmp_path)
    assert torch.equal(logits(load_classifier(tmp_path), rows), logits(pruned, rows))


def test_dropped_layers_are_passed_over(config_with, classifier, rows_of):
    shapes = tuple(LayerShape(heads=(0, 1), head_size=4, intermediate_size=size) for size in (8, 8, 8, 8))
    model, rows = classifier(config_with(layers=shapes)), rows_of([3, 8])
    short = keep_layers(model, [0, 3])
    longer = model.encoder.layers
    model.encoder.layers = torch.nn.ModuleList([longer[0], longer[3]])
    assert torch.equal(logits(short, rows), logits(model, rows))
    assert short.config.num_hidden_layers == 2


@pytest.mark.parametrize("kept", [[0, 3], [1, 2]])
@pytest.mark.parametrize("residual", ["add", "attention"])
def test_layers_of_modernbert_go_too_and_sources_with_them(config_with, classifier, rows_of, residual, kept):
    model, rows = classifier(config_with(**MODERN | {"residual": residual})), rows_of([3, 8])
    short = keep_layers(model, kept)
    with passed_over(model, kept):
        assert torch.allclose(logits(short, rows), logits(model, rows), atol=1e-5)
    assert [layer.window for layer in short.config.layers] == [model.config.layers[i].window for i in kept]


def test_layers_that_are_summed_in_blocks_stay(config_with, classifier):
    model = classifier(config_with(**BLOCKS))
    with pytest.raises(CompressionError, match="summed in blocks of 3, which later ones weigh as a whole"):
        keep_layers(model, [0, 1])
    assert keep_layers(model, [0, 1, 2, 3]).config == model.config


def test_layers_dropped_of_a_standard_model_leave_a_standard_one(config_with, classifier):
    assert is_standard(keep_layers(classifier(config_with()), [1]).config)


def test_mistakes_are_told(config_with, classifier):
    model = classifier(config_with())
    with pytest.raises(CompressionError, match="no layer would be left of 2"):
        keep_layers(model, [])
    with pytest.raises(CompressionError, match="no layer 2: the model has 2, counted from 0"):
        keep_layers(model, [0, 2])
    with pytest.raises(CompressionError, match="1 layer named; the model has 2"):
        keep_units(model, "heads", [[0]])
    with pytest.raises(CompressionError, match="layer 1 has 32 neurons; there is no number 32"):
        keep_units(model, "neurons", [[0], [32]])


def test_pruned_model_trains_with_all_its_parameters(config_with, classifier, rows_of):
    model = keep_units(classifier(config_with()), "heads", [[], [0, 1]])
    loss = model(Batch.from_rows(rows_of([4, 2]))).square().sum()
    loss.backward()
    assert all(p.grad is not None for name, p in model.named_parameters() if "qkv" not in name or p.numel())
    assert np.isfinite(loss.item())
