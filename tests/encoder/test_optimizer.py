import math

import pytest
import torch
from torch import nn

from encoder.optimizer import (
    Optimizer,
    parameter_depth,
    parameter_groups,
    rate_factor,
    usual_learning_rate,
)


def test_depth_counts_from_the_embeddings_to_the_head() -> None:
    names = ["encoder.embeddings.word.weight", "encoder.layers.0.attention.qkv.weight",
             "encoder.layers.11.feed_forward.output.bias", "classifier.output.weight"]  # fmt: skip
    assert [parameter_depth(name, 12) for name in names] == [0, 1, 12, 13]


def test_the_usual_learning_rate_falls_with_the_width() -> None:
    assert usual_learning_rate(384) == 2e-4
    assert usual_learning_rate(768) == 1e-4


def test_layer_decay_lowers_the_rate_towards_the_input(make_classifier) -> None:
    parameters = dict(make_classifier().named_parameters())
    groups = parameter_groups(parameters, num_layers=3, learning_rate=1.0, weight_decay=0.1, layer_decay=0.5)
    rate = {id(p): group["lr"] for group in groups for p in group["params"]}
    assert len(rate) == len(parameters)
    for name, parameter in parameters.items():
        assert rate[id(parameter)] == 0.5 ** (4 - parameter_depth(name, 3))


def test_biases_norms_and_the_word_table_are_not_decayed(make_classifier) -> None:
    parameters = dict(make_classifier().named_parameters())
    groups = parameter_groups(parameters, num_layers=3, learning_rate=1.0, weight_decay=0.1, layer_decay=1.0)
    decayed = {id(p) for group in groups if group["weight_decay"] for p in group["params"]}
    for name, parameter in parameters.items():
        plain = name.endswith((".bias", "word.weight")) or "norm" in name
        assert (id(parameter) in decayed) != plain


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("max_grad_norm", [0.3, 1e3])
def test_an_update_is_that_of_adamw_with_the_gradient_clipped(fused: bool, max_grad_norm: float) -> None:
    ours, theirs = ([nn.Parameter(torch.tensor(v)) for v in ([1.0, -2.0], [0.5])] for _ in range(2))

    def groups(parameters: list[nn.Parameter]) -> list[dict]:
        decays = (0.01, 0.0)
        return [
            {"params": [p], "lr": 0.1, "weight_decay": d} for p, d in zip(parameters, decays, strict=True)
        ]

    optimizer = Optimizer(groups(ours), max_grad_norm=max_grad_norm, fused=fused)
    reference = torch.optim.AdamW(groups(theirs), foreach=False)
    for _ in range(5):
        for parameters in (ours, theirs):
            torch.stack([p.pow(3).sum() for p in parameters]).sum().backward()
        optimizer.step()
        nn.utils.clip_grad_norm_(theirs, max_grad_norm)
        reference.step()
        reference.zero_grad()
        assert all(p.grad is None for p in ours)
    for p, q in zip(ours, theirs, strict=True):
        assert torch.allclose(p, q, atol=1e-6)


def test_a_rounded_copy_gets_the_gradient_and_is_rounded_anew() -> None:
    weight, copy = nn.Parameter(torch.tensor([1.0, 2.0])), torch.tensor([1.0, 2.0], dtype=torch.bfloat16)
    optimizer = Optimizer([{"params": [weight], "lr": 0.1}], rounded={weight: copy.requires_grad_()})
    copy.square().sum().backward()
    optimizer.step()
    assert copy.grad is None and not torch.equal(weight, torch.tensor([1.0, 2.0]))
    assert torch.equal(copy, weight.bfloat16())


@pytest.mark.parametrize("schedule", ["linear", "cosine", "constant"])
def test_the_rate_warms_up_and_then_follows_its_schedule(schedule) -> None:
    factors = [rate_factor(i, num_steps=100, num_warmup_steps=10, schedule=schedule) for i in range(100)]
    assert all(0 < f <= 1 for f in factors)
    assert factors[:11] == sorted(factors[:11]) and math.isclose(factors[10], 1.0)
    assert factors[10:] == sorted(factors[10:], reverse=True)
    end = {"linear": 1 / 90, "cosine": 0.5 * (1 + math.cos(math.pi * 89 / 90)), "constant": 1.0}
    assert math.isclose(factors[-1], end[schedule])


def test_without_warmup_the_first_step_has_the_full_rate() -> None:
    assert rate_factor(0, num_steps=10, num_warmup_steps=0, schedule="linear") == 1.0
