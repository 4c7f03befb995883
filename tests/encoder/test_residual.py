"""What attention residuals are by their formula, and where they are something known already."""

import pytest
import torch
from pydantic import ValidationError

from encoder.batches import Batch
from encoder.config import EncoderConfig
from encoder.model import Classifier
from encoder.residual import Residual, Stream, norm_eps

D, EPS = 16, 1e-12
SUBLAYERS = 6  # of the 3 layers that make_config has


def sources_of(number: int, *, seed: int = 0, dtype: torch.dtype = torch.float32) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(5, D, generator=generator).to(dtype) * (1 + i) for i in range(number))


def residual(config: EncoderConfig, sublayer: int) -> Residual:
    made = Residual(config, sublayer)
    with torch.no_grad():
        if made.query is not None:
            made.query.copy_(torch.randn(D, generator=torch.Generator().manual_seed(1)))
    return made


@pytest.fixture
def attending(make_config):
    return make_config(norm="pre", residual="attention")


def test_a_mix_is_the_papers_formula_and_so_is_its_gradient(attending) -> None:
    mixer = residual(attending, 3)
    sources = tuple(source.requires_grad_() for source in sources_of(4))
    found = mixer(Stream(sources))
    stacked = torch.stack(sources)  # [sources, N, D]
    keys = stacked / (stacked.square().mean(-1, keepdim=True) + EPS).sqrt()
    weights = (keys @ mixer.query).softmax(0)
    expected = (weights[..., None] * stacked).sum(0)
    assert torch.allclose(found, expected, atol=1e-5)
    assert torch.allclose(mixer.weights(Stream(sources)), weights.T, atol=1e-6)
    into = torch.randn(5, D)
    ours = torch.autograd.grad(found, (mixer.query, *sources), into)
    for one, other in zip(ours, torch.autograd.grad(expected, (mixer.query, *sources), into), strict=True):
        assert torch.allclose(one, other, atol=1e-4)


def test_a_query_of_zeros_makes_the_mean(attending) -> None:
    mixer = Residual(attending, 3)
    torch.nn.init.zeros_(mixer.query)
    sources = sources_of(4)
    assert torch.allclose(mixer(Stream(sources)), torch.stack(sources).mean(0), atol=1e-6)


def test_outputs_become_sources_or_are_added_up_in_blocks(make_config) -> None:
    outputs = [torch.full((1, D), float(10**i)) for i in range(SUBLAYERS)]
    start = torch.zeros(1, D)
    wanted = {
        ("add", None): [111111],
        ("attention", None): [0, 1, 10, 100, 1000, 10000, 100000],
        ("block_attention", 1): [0, 1, 10, 100, 1000, 10000, 100000],
        ("block_attention", 4): [0, 1111, 110000],
        ("block_attention", 6): [0, 111111],
    }
    for (kind, size), expected in wanted.items():
        config = make_config(norm="pre", residual=kind, residual_block_size=size)
        stream = Stream((start,))
        for sublayer, output in enumerate(outputs):
            assert len(stream.sources) == config.num_sources(sublayer)
            stream = Residual(config, sublayer).write(stream, output)
        assert [float(source[0, 0]) for source in stream.sources] == expected
        assert config.stream_width(3) == len(expected) * D


def with_residual(model: Classifier, **changes: object) -> Classifier:
    """The model with another residual and queries away from 0, the same of each sublayer."""
    config = EncoderConfig.model_validate(model.config.model_dump() | changes)
    made = Classifier(config, model.task).eval()
    state = {
        name: torch.randn(D, generator=torch.Generator().manual_seed(len(name)))
        for name in made.state_dict()
        if name.endswith("query")
    }
    made.load_state_dict(model.state_dict() | state)
    return made


@pytest.fixture
def plain(make_classifier, make_config) -> Classifier:
    return make_classifier(make_config(norm="pre"))


def test_blocks_of_one_sublayer_are_full_attention_residuals(plain, make_rows) -> None:
    batch = Batch.from_rows(make_rows([5, 1, 9]))
    full = with_residual(plain, residual="attention")
    blocks = with_residual(plain, residual="block_attention", residual_block_size=1)
    assert torch.equal(full(batch), blocks(batch))
    assert not torch.allclose(full(batch), plain(batch), atol=1e-3)


def test_one_block_is_a_sum_with_the_embeddings_kept_apart(plain, make_rows) -> None:
    batch = Batch.from_rows(make_rows([5, 1, 9]))
    model = with_residual(plain, residual="block_attention", residual_block_size=SUBLAYERS)
    embedded = model.encoder.embed(batch).sources[0]
    total = None
    for layer in model.encoder.layers:
        read = embedded if total is None else layer.attention_residual(Stream((embedded, total)))
        output, _ = layer.attention(layer.attention_norm(read), batch.packing)
        total = output if total is None else total + output
        read = layer.feed_forward_residual(Stream((embedded, total)))
        total = total + layer.feed_forward(layer.feed_forward_norm(read))
    end = model.encoder.final_norm(model.encoder.final_residual(Stream((embedded, total))))
    assert torch.allclose(model.encoder(batch).last_hidden_state, end, atol=1e-5)


@pytest.mark.parametrize("changes", [
    {"residual": "attention"},
    *({"residual": "block_attention", "residual_block_size": size} for size in (1, 2, 3, 4, 6, 9)),
])  # fmt: skip
@pytest.mark.parametrize("eps", [1e-12, 1e-2])
def test_with_queries_of_zeros_a_pre_norm_model_stays_the_same_function(
    make_classifier, make_config, make_rows, changes, eps
) -> None:
    plain = make_classifier(make_config(norm="pre", layer_norm_eps=eps))
    model = with_residual(plain, **changes)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("query"):
                parameter.zero_()
    batch = Batch.from_rows(make_rows([5, 1, 9]))
    assert torch.allclose(model(batch), plain(batch), atol=1e-5)


def test_the_epsilon_of_a_norm_falls_with_the_square_of_the_sources(make_config) -> None:
    config = make_config(norm="pre", residual="block_attention", residual_block_size=4, layer_norm_eps=0.9)
    assert [norm_eps(config, sublayer) for sublayer in (0, 1, 4, 5, 6)] == pytest.approx(
        [0.9, 0.225, 0.225, 0.1, 0.1]
    )


def test_sources_in_bf16_are_mixed_in_float32(attending) -> None:
    mixer = residual(attending, 3)
    sources = (sources_of(1)[0], *sources_of(3, dtype=torch.bfloat16))
    with torch.autocast("cpu", torch.bfloat16):
        mixed = mixer(Stream(sources))
    assert mixed.dtype == torch.float32
    assert torch.allclose(mixed, mixer(Stream(tuple(s.float() for s in sources))), atol=1e-6)


def test_a_source_without_numbers_in_it_gives_finite_gradients(attending) -> None:
    mixer = residual(attending, 2)
    sources = (torch.zeros(2, D, requires_grad=True), torch.ones(2, D), torch.zeros(2, D))
    mixer(Stream(sources)).sum().backward()
    assert torch.isfinite(sources[0].grad).all()


@pytest.mark.parametrize(("changes", "message"), [
    ({"residual": "attention"}, "post-norm LayerNorm sits on the stream"),
    ({"norm": "pre", "residual": "block_attention"}, "needs a residual_block_size"),
    ({"norm": "pre", "residual_block_size": 2}, "is of residual 'block_attention' only"),
])  # fmt: skip
def test_what_does_not_go_together_is_refused_with_its_reason(make_config, changes, message) -> None:
    with pytest.raises(ValidationError, match=message):
        make_config(**changes)
