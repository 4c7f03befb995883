from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from compress.size import PARTS, bytes_on_disk, macs_per_row, matrix_parameters, measure_size
from encoder.batches import Batch
from encoder.config import ClassifierConfig, EncoderConfig, LayerShape
from encoder.embeddings import Table
from encoder.model import Classifier
from encoder.rows import TokenizedRows
from recipes.result import hash_model
from tests.compress.conftest import ATTENDING, MODERN, VARIANTS

PRUNED = (
    LayerShape(heads=(0, 2, 3), head_size=4, intermediate_size=24),
    LayerShape(heads=(), head_size=4, intermediate_size=0),
    LayerShape(heads=(1,), head_size=8, intermediate_size=5),
)
GATED = {
    "norm": "pre",
    "gated": True,
    "position_embedding": "rotary",
    "classifier": ClassifierConfig(pooling="mean"),
}


@pytest.mark.parametrize(
    "changes",
    [{}, {"embedding_size": 8}, {"layers": PRUNED}, {"norm": "pre", "type_vocab_size": 0}, GATED, ATTENDING],
)
@pytest.mark.parametrize("tokens", [1, 13])
def test_macs_are_half_of_what_torch_counts_as_flops(
    config_with: Callable[..., EncoderConfig],
    classifier: Callable[..., Classifier],
    rows_of: Callable[..., TokenizedRows],
    changes: dict[str, object],
    tokens: int,
) -> None:
    config = config_with(**changes)
    model = classifier(config)
    batch = Batch.from_rows(rows_of([tokens]))
    with FlopCounterMode(display=False) as counter, torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
        model(batch)
    assert sum(macs_per_row(config, tokens, num_outputs=3).values()) == counter.get_total_flops() / 2


@pytest.mark.parametrize("tokens", [1, 3, 13])
def test_of_local_layers_only_the_pairs_that_see_each_other_count(
    config_with: Callable[..., EncoderConfig], tokens: int
) -> None:
    config = config_with(**MODERN)
    places = range(tokens)
    pairs = [
        sum(window is None or abs(one - other) <= window for one in asking for other in places)
        for window, asking in ((None, places), (2, places), (2, places), (None, [0]))
    ]
    found = macs_per_row(config, tokens, num_outputs=3)["scores and mixing"]
    assert found == 2 * 16 * sum(pairs)


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS.keys())
def test_tables_and_matrices_are_nearly_all_parameters(
    config_with: Callable[..., EncoderConfig],
    classifier: Callable[..., Classifier],
    changes: dict[str, object],
) -> None:
    model = classifier(config_with(**changes))
    matrices = sum(p.numel() for p in model.parameters() if p.dim() > 1)
    assert matrix_parameters(model.config) == matrices - 3 * 16  # all but the last layer of the classifier


def test_attention_share_grows_with_the_square_of_the_length(
    config_with: Callable[..., EncoderConfig],
) -> None:
    layer = config_with().layers[0]

    def one_layer(tokens: int) -> dict[str, int]:
        three, two = (
            macs_per_row(config_with(layers=(layer,) * count), tokens, num_outputs=3) for count in (3, 2)
        )
        return {part: three[part] - two[part] for part in PARTS if three[part] > two[part]}

    short, long = one_layer(10), one_layer(20)
    ratios = {part: long[part] / short[part] for part in short}
    assert ratios == {"projections": 2, "scores and mixing": 4, "feed-forward": 2}


def test_of_the_last_layer_only_keys_and_values_are_computed_for_all_tokens(
    config_with: Callable[..., EncoderConfig],
) -> None:
    config = config_with(layers=config_with().layers[:1])
    one, many = (macs_per_row(config, tokens, num_outputs=3) for tokens in (1, 101))
    assert many["feed-forward"] == one["feed-forward"]
    assert many["scores and mixing"] == 101 * one["scores and mixing"]
    assert many["projections"] == 51 * one["projections"]


def test_parameters_without_embeddings_leave_out_exactly_the_tables(
    config_with: Callable[..., EncoderConfig], classifier: Callable[..., Classifier], tmp_path: Path
) -> None:
    model = classifier(config_with(embedding_size=8, layers=PRUNED))
    tables = sum(part.weight.numel() for part in model.modules() if isinstance(part, Table))
    size = measure_size(model, tmp_path)
    assert size.parameters == sum(value.numel() for value in model.state_dict().values())
    assert size.parameters_without_embeddings == size.parameters - tables


def test_a_pruned_model_is_smaller_in_every_way(
    config_with: Callable[..., EncoderConfig], classifier: Callable[..., Classifier], tmp_path: Path
) -> None:
    full = config_with()
    pruned = config_with(layers=(full.layers[0], LayerShape(heads=(1,), head_size=4, intermediate_size=8)))
    sizes = []
    for name, config in (("full", full), ("pruned", pruned)):
        model = classifier(config)
        (tmp_path / name).mkdir()
        torch.save(model.state_dict(), tmp_path / name / "weights.pt")
        sizes.append(measure_size(model, tmp_path / name, sequence_lengths=[16]))
    before, after = sizes
    assert after.parameters < before.parameters
    assert after.parameters_without_embeddings < before.parameters_without_embeddings
    assert after.bytes_on_disk < before.bytes_on_disk
    assert after.macs_per_token[16] < before.macs_per_token[16]


def test_bytes_on_disk_are_those_of_the_model_and_not_of_its_run(tmp_path: Path) -> None:
    for name, count in {"model.safetensors": 100, "tokenizer.json": 20, "model.onnx": 3}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"x" * count)
    for name in ("run.json", "train.log", "report.html", ".lock", "training/state.pt", "onnx/model.onnx"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"x" * 1000)
    assert bytes_on_disk(tmp_path) == 123


def test_a_linked_file_counts_as_what_it_points_to(tmp_path: Path) -> None:
    (tmp_path / "blob").write_bytes(b"x" * 50)
    (tmp_path / "model").mkdir()
    (tmp_path / "model/model.safetensors").symlink_to(tmp_path / "blob")
    assert bytes_on_disk(tmp_path / "model") == 50


def test_models_in_the_folder_of_a_model_are_no_part_of_it(tmp_path: Path) -> None:
    (tmp_path / "k4").mkdir()
    for path in (tmp_path / "model.safetensors", tmp_path / "k4" / "model.safetensors"):
        path.write_bytes(b"1234")
    assert bytes_on_disk(tmp_path) == 4
    assert hash_model(tmp_path) == hash_model(tmp_path / "k4")
