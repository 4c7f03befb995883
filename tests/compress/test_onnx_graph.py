from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from numpy.typing import NDArray

from compress import onnx_graph
from compress.fused_graph import expected_counts, fused_counts
from compress.onnx_graph import GraphForm, build_graph, graph_inputs, possible_form, save_graph
from encoder.config import ClassifierConfig, EncoderConfig, LayerShape
from encoder.errors import ExportError
from encoder.model import Classifier
from tests.compress.conftest import MODERN
from tests.padded import pack

PRUNED = (
    LayerShape(heads=(0, 2, 3), head_size=4, intermediate_size=24),
    LayerShape(heads=(), head_size=4, intermediate_size=0),
    LayerShape(heads=(1,), head_size=8, intermediate_size=5),
)
CHANGES = {
    "bert": {},
    "no types, positions from 2": {"type_vocab_size": 0, "position_offset": 2},
    "one type": {"type_vocab_size": 1, "position_offset": 2},
    "narrow embeddings": {"embedding_size": 8},
    "pruned": {"layers": PRUNED},
    "pre-norm, pruned": {"norm": "pre", "layers": PRUNED},
    "gelu_tanh": {"activation": "gelu_tanh"},
    "relu, classifier relu": {"activation": "relu", "classifier": ClassifierConfig(activation="relu")},
    "silu, classifier gelu": {"activation": "silu", "classifier": ClassifierConfig(activation="gelu")},
    "sinusoidal": {"position_embedding": "sinusoidal"},
}


VARIANTS = {
    "modernbert": MODERN,
    "modernbert, mean": MODERN | {
        "classifier": ClassifierConfig(activation="silu", norm=True, pooling="mean")
    },
    "modernbert, pruned": MODERN | {"layers": tuple(
        layer.model_copy(update={"heads": heads, "intermediate_size": neurons})
        for layer, heads, neurons in zip(
            MODERN["layers"], ((1, 3), (), (0, 1, 2), (2,)), (24, 3, 0, 5), strict=True
        )
    )},
    "local, biased": {"layers": MODERN["layers"][1:], "activation": "silu", "gated": True},
    "rotary, one type": {"position_embedding": "rotary", "type_vocab_size": 1},
    "attention residuals": {"norm": "pre", "residual": "attention"},
    "attention residuals, modernbert": MODERN | {"residual": "attention"},
    "attention residuals, pruned": {"norm": "pre", "residual": "attention", "layers": PRUNED},
    **{
        f"blocks of {size}": MODERN | {"residual": "block_attention", "residual_block_size": size}
        for size in (1, 3, 4, 8)
    },
}  # fmt: skip


@pytest.fixture(params=["portable", "fused"])
def form(request: pytest.FixtureRequest) -> GraphForm:
    """Both forms of graph, for what has to hold in both."""
    return request.param  # type: ignore[no-any-return]


def run_both(
    model: Classifier, mask: NDArray[np.int64], form: GraphForm, opset: int | None = None
) -> tuple[NDArray[np.float32], NDArray[np.float32], onnxruntime.InferenceSession]:
    random = np.random.default_rng(0)
    feed = {
        "input_ids": random.integers(0, model.config.vocab_size, mask.shape),
        "attention_mask": mask,
        "token_type_ids": random.integers(0, max(1, model.config.type_vocab_size), mask.shape),
    }
    session = onnxruntime.InferenceSession(build_graph(model, form=form, opset=opset).SerializeToString())
    names = graph_inputs(model.config)
    (found,) = session.run(["logits"], {name: feed[name] for name in names})
    with torch.inference_mode():
        batch = pack(*(torch.from_numpy(feed[name]) for name in onnx_graph.INPUTS))
        expected = model(batch).numpy()
    return found, expected, session


@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES.keys())
def test_the_graph_computes_torchs_logits(
    config_with: Callable[..., EncoderConfig],
    classifier: Callable[..., Classifier],
    changes: dict[str, object],
    form: GraphForm,
) -> None:
    model = classifier(config_with(**changes))
    onnx.checker.check_model(build_graph(model, form=form), full_check=form == "portable")
    mask = (np.arange(11) < np.array([[11], [4], [1]])).astype(np.int64)
    found, expected, session = run_both(model, mask, form)
    assert np.ptp(expected) > 0.05
    assert np.abs(found - expected).max() < 1e-5
    assert tuple(node.name for node in session.get_inputs()) == graph_inputs(model.config)


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS.keys())
def test_the_portable_graph_computes_the_logits_of_every_variant(
    config_with: Callable[..., EncoderConfig],
    classifier: Callable[..., Classifier],
    changes: dict[str, object],
) -> None:
    model = classifier(config_with(**changes))
    onnx.checker.check_model(build_graph(model), full_check=True)
    mask = (np.arange(11) < np.array([[11], [4], [1], [0]])).astype(np.int64)
    mask[1] = [0, 0, 1, 0, 1, 1, 0, 1, 1, 1, 0]
    found, expected, _ = run_both(model, mask, "portable")
    assert np.ptp(expected) > 0.05
    assert np.abs(found - expected).max() < 1e-5


def test_what_onnx_runtimes_operators_cannot_do_is_said_and_written_portable(
    config_with: Callable[..., EncoderConfig], classifier: Callable[..., Classifier]
) -> None:
    reasons = {"modernbert": "rotary", "local, biased": "local attention", "blocks of 3": "rotary"}
    for name, reason in reasons.items():
        model = classifier(config_with(**VARIANTS[name]))
        assert possible_form(model.config, "fused") == "portable"
        with pytest.raises(ExportError, match=f"no fused graph: .* do not know {reason}"):
            build_graph(model, form="fused")
    assert possible_form(config_with(), "fused") == "fused"


@pytest.mark.parametrize(("batch", "sequence"), [(1, 1), (3, 7), (8, 512)])
def test_batch_and_sequence_are_free(
    config_with: Callable[..., EncoderConfig],
    classifier: Callable[..., Classifier],
    batch: int,
    sequence: int,
    form: GraphForm,
) -> None:
    model = classifier(config_with(max_position_embeddings=512, layers=PRUNED))
    found, expected, _ = run_both(model, np.ones((batch, sequence), np.int64), form)
    assert np.abs(found - expected).max() < 1e-5


def test_padding_on_the_left_and_holes_in_the_mask_mean_what_they_mean_in_torch(
    config_with: Callable[..., EncoderConfig], classifier: Callable[..., Classifier], form: GraphForm
) -> None:
    mask = np.array([[0, 0, 1, 1, 1], [1, 0, 1, 0, 1], [0, 1, 0, 0, 0]])
    found, expected, _ = run_both(classifier(config_with(layers=PRUNED)), mask, form)
    assert np.abs(found - expected).max() < 1e-5


def test_a_row_that_is_all_padding_has_the_finite_logits_of_torch(
    config_with: Callable[..., EncoderConfig], classifier: Callable[..., Classifier], form: GraphForm
) -> None:
    found, expected, _ = run_both(classifier(config_with()), np.array([[1, 1, 0], [0, 0, 0]]), form)
    assert np.isfinite(found).all()
    assert np.abs(found - expected).max() < 1e-5


def test_padding_never_changes_a_logit(
    config_with: Callable[..., EncoderConfig], classifier: Callable[..., Classifier], form: GraphForm
) -> None:
    graph = build_graph(classifier(config_with()), form=form)
    session = onnxruntime.InferenceSession(graph.SerializeToString())
    ids = np.arange(1, 7)[None]
    logits = []
    for width in (6, 7, 30):
        padded = np.full((1, width), 9)
        padded[:, :6] = ids
        mask = (np.arange(width) < 6).astype(np.int64)[None]
        feed = {"input_ids": padded, "attention_mask": mask, "token_type_ids": np.zeros_like(padded)}
        logits.append(session.run(None, feed)[0])
    assert logits[1] == pytest.approx(logits[0], abs=1e-6)
    assert logits[2] == pytest.approx(logits[0], abs=1e-6)


def test_a_pruned_model_has_the_smaller_graph(
    config_with: Callable[..., EncoderConfig], classifier: Callable[..., Classifier], form: GraphForm
) -> None:
    full = classifier(config_with())
    pruned = classifier(config_with(layers=PRUNED[:2]))
    assert build_graph(pruned, form=form).ByteSize() < build_graph(full, form=form).ByteSize()


def test_the_portable_graph_has_standard_operators_only(
    config_with: Callable[..., EncoderConfig], classifier: Callable[..., Classifier]
) -> None:
    graph = build_graph(classifier(config_with()))
    assert {(entry.domain, entry.version) for entry in graph.opset_import} == {("", 17)}
    assert {node.domain for node in graph.graph.node} == {""}


def test_weights_too_large_for_one_file_go_beside_it(
    config_with: Callable[..., EncoderConfig],
    classifier: Callable[..., Classifier],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(onnx_graph, "MAX_BYTES_INSIDE", 10)
    save_graph(build_graph(classifier(config_with())), tmp_path / "model.onnx")
    assert (tmp_path / "model.onnx.data").stat().st_size > (tmp_path / "model.onnx").stat().st_size
    onnxruntime.InferenceSession(str(tmp_path / "model.onnx"))


def test_a_file_that_cannot_be_written_is_an_export_error(
    config_with: Callable[..., EncoderConfig], classifier: Callable[..., Classifier], tmp_path: Path
) -> None:
    with pytest.raises(ExportError, match="cannot be written"):
        save_graph(build_graph(classifier(config_with())), tmp_path / "no such folder" / "model.onnx")


def test_onnx_runtime_makes_no_slow_operator_of_residual_and_norm(
    config_with: Callable[..., EncoderConfig], classifier: Callable[..., Classifier], tmp_path: Path
) -> None:
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimised.onnx")
    options.log_severity_level = 3
    onnxruntime.InferenceSession(build_graph(classifier(config_with())).SerializeToString(), options)
    operators = {node.op_type for node in onnx.load(str(tmp_path / "optimised.onnx")).graph.node}
    assert "LayerNormalization" in operators
    assert "SkipLayerNormalization" not in operators


HEADS = {
    "12, 7, 1 and 0 heads": ((12, 24), (7, 24), (1, 24), (0, 24)),
    "none in the last layer": ((2, 24), (0, 0)),
    "no neurons in the last layer": ((0, 3), (2, 0)),
    "nothing but biases": ((0, 0),),
}


@pytest.mark.parametrize("layers", HEADS.values(), ids=HEADS.keys())
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_each_layer_has_its_own_number_of_heads_in_the_fused_graph_too(
    config_with: Callable[..., EncoderConfig],
    classifier: Callable[..., Classifier],
    layers: tuple[tuple[int, int], ...],
    norm: str,
) -> None:
    shapes = tuple(
        LayerShape(heads=tuple(range(heads)), head_size=3, intermediate_size=neurons)
        for heads, neurons in layers
    )
    model = classifier(config_with(layers=shapes, norm=norm))
    mask = np.array([[1, 1, 1, 1, 1, 1], [0, 1, 0, 0, 1, 0], [0, 0, 0, 0, 0, 0]])
    found, expected, _ = run_both(model, mask, "fused")
    assert np.abs(found - expected).max() < 1e-5
    counts = fused_counts(build_graph(model, form="fused"))
    assert counts == expected_counts(model.config)
    attention = counts.get("Attention", 0) + counts.get("MultiHeadAttention", 0)
    assert attention == sum(heads > 0 for heads, _ in layers)


def test_the_counts_of_a_portable_graph_are_not_those_of_a_fused_one(
    config_with: Callable[..., EncoderConfig], classifier: Callable[..., Classifier]
) -> None:
    model = classifier(config_with())
    assert fused_counts(build_graph(model)) == {}
    expected = {"Attention": 1, "BiasGelu": 2, "EmbedLayerNormalization": 1, "MultiHeadAttention": 1}
    assert expected_counts(model.config) == expected


@pytest.mark.parametrize("opset", [18, 20, 22, onnx_graph.LAST_OPSET])
def test_a_graph_of_a_later_opset_computes_the_same(
    config_with: Callable[..., EncoderConfig],
    classifier: Callable[..., Classifier],
    form: GraphForm,
    opset: int,
) -> None:
    model = classifier(config_with())
    found, expected, _ = run_both(model, np.array([[1, 1, 1], [1, 1, 0]]), form, opset)
    assert np.abs(found - expected).max() < 1e-5
    assert build_graph(model, form=form, opset=opset).opset_import[0].version == opset


@pytest.mark.parametrize("opset", [7, 16, onnx_graph.LAST_OPSET + 1])
def test_an_opset_that_cannot_be_written_is_refused(
    config_with: Callable[..., EncoderConfig], classifier: Callable[..., Classifier], opset: int
) -> None:
    with pytest.raises(ExportError, match=f"opset {opset}: expected 17 to"):
        build_graph(classifier(config_with()), opset=opset)
