import numpy as np
import pytest
import torch

from encoder.batches import Batch
from encoder.config import LayerShape
from encoder.engine import Engine
from encoder.model import Classifier, Encoder, initialise_, start_at_base_rates_, use_
from encoder.task import Task

LENGTHS = [5, 1, 17, 8, 8, 3, 30, 2, 1, 11]  # more than a part of rows, and uneven: see encoder.packing


CHANGES = [
    *("post", "pre", "sinusoidal", "projected", "offset", "uneven", "uneven pre"),
    *("rotary", "local", "modern", "attention", "block attention"),
]


@pytest.fixture(params=CHANGES)
def model(request, make_config, make_classifier) -> Classifier:
    uneven = (
        LayerShape(heads=(1, 3), head_size=4, intermediate_size=7),
        LayerShape(heads=(), head_size=4, intermediate_size=24),
        LayerShape(heads=(0, 1, 2), head_size=4, intermediate_size=0),
    )
    near = tuple(
        LayerShape(heads=(0, 1, 2, 3), head_size=4, intermediate_size=24, window=window, rope_theta=theta)
        for window, theta in ((None, 1000.0), (2, 50.0), (3, 50.0))
    )
    modern: dict[str, object] = {
        "norm": "pre", "position_embedding": "rotary", "gated": True, "type_vocab_size": 0,
        "attention_bias": False, "feed_forward_bias": False, "norm_bias": False,
        "layers": (near[0].model_copy(update={"attention_norm": False}), *near[1:]),
        "classifier": {"activation": "gelu", "bias": False, "norm": True, "pooling": "mean"},
    }  # fmt: skip
    changes: dict[str, dict[str, object]] = {
        "rotary": {"position_embedding": "rotary", "gated": True},
        "local": {"layers": near},
        "modern": modern,
        "attention": modern | {"residual": "attention"},
        "block attention": {"norm": "pre", "residual": "block_attention", "residual_block_size": 4},
        "post": {},
        "pre": {"norm": "pre"},
        "sinusoidal": {"position_embedding": "sinusoidal", "activation": "relu"},
        "projected": {"embedding_size": 6, "activation": "silu", "classifier": {"activation": "gelu"}},
        "offset": {"position_offset": 4, "pad_token_id": 3, "max_position_embeddings": 44},
        "uneven": {"layers": uneven},
        "uneven pre": {"layers": uneven, "norm": "pre", "activation": "gelu_tanh"},
    }
    return make_classifier(make_config(**changes[request.param]))


def test_a_row_has_the_same_logits_alone_and_in_any_batch(model, make_rows) -> None:
    rows = make_rows(LENGTHS)
    together = model(Batch.from_rows(rows))
    for i in range(len(rows)):
        alone = model(Batch.from_rows(rows.select([i])))
        assert torch.allclose(alone[0], together[i], atol=1e-6)


def test_a_row_without_tokens_gives_finite_logits_and_gradients(model, make_rows) -> None:
    rows = make_rows([3, 0, 2])
    logits = model.train()(Batch.from_rows(rows))
    logits.square().sum().backward()
    assert torch.isfinite(logits).all()
    assert all(p.grad is None or torch.isfinite(p.grad).all() for p in model.parameters())
    assert torch.isfinite(model.eval()(Batch.from_rows(make_rows([0, 0])))).all()


def test_bf16_is_close_and_finite_with_heavy_padding(model, make_rows) -> None:
    batch = Batch.from_rows(make_rows([1, 39, 1, 2, 1]))
    expected = model(batch)
    with torch.autocast("cpu", torch.bfloat16):
        logits = model(batch)
    assert torch.isfinite(logits).all()
    assert torch.allclose(logits.float(), expected, atol=0.1 * float(expected.detach().abs().max()) + 0.05)


def test_hidden_states_and_attentions_are_aligned(model, make_rows) -> None:
    batch = Batch.from_rows(make_rows(LENGTHS))
    output = model.encoder(
        batch, output_hidden_states=True, output_attentions=True, output_residual_weights=True
    )
    assert len(output.hidden_states) == 4 and len(output.attentions) == 3
    assert torch.equal(output.hidden_states[-1], output.last_hidden_state)
    embedded = model.encoder.embeddings(batch.input_ids, batch.token_type_ids, batch.packing.positions)
    assert torch.equal(output.hidden_states[0], embedded)
    for weights, shape in zip(output.attentions, model.config.layers, strict=True):
        assert weights.shape == (len(LENGTHS), shape.num_attention_heads, max(LENGTHS), max(LENGTHS))
    assert len(output.residual_weights) == 2 * 3 + 1
    for sublayer, mix in enumerate(output.residual_weights):
        assert mix.shape == (sum(LENGTHS), model.config.num_sources(sublayer))
        assert torch.allclose(mix.sum(1), torch.ones(sum(LENGTHS)))


def test_without_blocks_on_the_cpu_logits_are_the_same(model, make_rows) -> None:
    batch = Batch.from_rows(make_rows(LENGTHS))
    expected = model(batch)
    use_(model, Engine(blocks=False, first_token_only=False))
    assert torch.allclose(model(batch), expected, atol=1e-6)


def test_gradients_are_those_without_blocks(model, make_rows) -> None:
    batch = Batch.from_rows(make_rows(LENGTHS))
    found = []
    for engine in (Engine(), Engine(blocks=False, first_token_only=False)):
        use_(model, engine)
        model.zero_grad()
        model(batch).square().sum().backward()
        found.append({name: p.grad for name, p in model.named_parameters() if p.grad is not None})
    assert set(found[0]) == set(found[1])
    for name, grad in found[0].items():
        assert torch.allclose(grad, found[1][name], atol=1e-5, rtol=1e-4), name


def test_pre_norm_adds_what_the_sublayers_return(make_config, make_rows) -> None:
    config = make_config(norm="pre")
    encoder = Encoder(config).eval()
    initialise_(encoder, config, 0)
    with torch.no_grad():
        for layer in encoder.layers:
            layer.attention.output.weight.zero_()
            layer.feed_forward.output.weight.zero_()
    batch = Batch.from_rows(make_rows([4]))
    output = encoder(batch, output_hidden_states=True)
    assert encoder.final_norm is not None
    assert torch.allclose(output.last_hidden_state, encoder.final_norm(output.hidden_states[0]), atol=1e-6)


def test_the_seed_decides_the_initial_weights(make_config, make_classifier) -> None:
    first, same, other = make_classifier(seed=1), make_classifier(seed=1), make_classifier(seed=2)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), same.parameters(), strict=True))
    assert not torch.equal(first.classifier.dense.weight, other.classifier.dense.weight)
    config = make_config()
    initialise_(first, config, 0)
    assert torch.equal(first.encoder.layers[0].attention_norm.weight, torch.ones(16))
    assert (
        abs(float(first.encoder.layers[0].attention.qkv.weight.detach().std()) - config.initializer_range)
        < 0.02
    )


def test_a_regression_head_starts_at_the_mean_of_its_labels(make_classifier) -> None:
    model = make_classifier(task=Task(kind="regression"))
    start_at_base_rates_(model, np.array([1.0, 2.0, 4.5], dtype=np.float32))
    assert model.classifier.output.bias.tolist() == [2.5]


def test_multi_label_outputs_start_at_the_share_of_rows_with_the_label(make_classifier) -> None:
    model = make_classifier(task=Task(kind="multi_label", labels=("common", "rare", "never")))
    labels = np.zeros((998, 3), dtype=np.float32)
    labels[:499, 0] = 1
    labels[:9, 1] = 1
    start_at_base_rates_(model, labels)
    shares = model.classifier.output.bias.detach().sigmoid()
    assert shares.tolist() == pytest.approx([0.5, 0.01, 0.001], rel=1e-5)


def test_single_label_outputs_start_at_zero(make_classifier) -> None:
    model = make_classifier()
    before = model.classifier.output.bias.detach().clone()
    start_at_base_rates_(model, np.array([0, 0, 0, 1]))
    assert torch.equal(model.classifier.output.bias, before)
