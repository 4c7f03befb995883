from collections.abc import Callable
from typing import Any

import pytest
import torch

from compress.stopwatch import PARTS, time_parts
from encoder.batches import Batch
from encoder.config import EncoderConfig, LayerShape
from encoder.model import Classifier
from encoder.rows import TokenizedRows


class FakeClock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def do_inside(module: Any, action: Callable[[], object]) -> None:
    """Let ``module`` do something more when it is called."""
    forward = module.forward

    def more(*arguments: Any, **options: Any) -> Any:
        action()
        return forward(*arguments, **options)

    module.forward = more


def seconds_of(model: Classifier) -> dict[Any, float]:
    """Known durations, in binary fractions, for what a run of 2 layers calls."""
    seconds: dict[Any, float] = {model.encoder.embeddings.norm: 1.0, model.classifier.dense: 64.0}
    for layer in model.encoder.layers:
        seconds |= {
            layer.attention.qkv: 2.0,
            layer.attention.output: 4.0,
            layer.feed_forward.intermediate: 8.0,
            layer.feed_forward.output: 16.0,
            layer.attention_norm: 32.0,
        }
    return seconds


def test_every_second_is_put_down_to_its_part(
    config_with: Callable[..., EncoderConfig],
    classifier: Callable[..., Classifier],
    rows_of: Callable[..., TokenizedRows],
) -> None:
    model, clock = classifier(config_with()), FakeClock()
    batch = Batch.from_rows(rows_of([5, 3]))

    def run(_: int) -> None:
        with torch.inference_mode():
            model(batch)
        clock.now += 128.0  # what comes after the last module belongs to the rest

    for module, seconds in seconds_of(model).items():
        do_inside(module, lambda seconds=seconds: setattr(clock, "now", clock.now + seconds))
    parts = time_parts(model, run, 1, min_runs=5, min_seconds=0, clock=clock).seconds
    assert parts == {
        "embeddings": 1,
        "projections": 2 * 6 + 2,  # the last layer asks for its one query apart
        "scores and mixing": 0,
        "feed-forward": 2 * 24,
        "add & norm": 2 * 32,
        "rest": 64 + 128,
    }
    assert tuple(parts) == PARTS


def test_asynchronous_work_is_put_down_to_the_part_that_gave_it(
    config_with: Callable[..., EncoderConfig],
    classifier: Callable[..., Classifier],
    rows_of: Callable[..., TokenizedRows],
) -> None:
    model, clock = classifier(config_with()), FakeClock()
    batch = Batch.from_rows(rows_of([5]))
    pending = 0.0

    def queue() -> None:
        nonlocal pending
        pending += 1.0

    def synchronize() -> None:
        nonlocal pending
        clock.now += pending
        pending = 0.0

    for layer in model.encoder.layers:
        for module in (layer.attention.qkv, layer.feed_forward.intermediate, layer.feed_forward_norm):
            do_inside(module, queue)
    times = time_parts(
        model, lambda _: model(batch), 1, min_runs=5, min_seconds=0, clock=clock, synchronize=synchronize
    )
    queued = {part: seconds for part, seconds in times.seconds.items() if seconds}
    assert queued == {"projections": 3, "feed-forward": 2, "add & norm": 2}


def test_the_model_is_as_before_afterwards_even_after_an_error(
    config_with: Callable[..., EncoderConfig], classifier: Callable[..., Classifier]
) -> None:
    model = classifier(config_with())
    before = [dict(module.__dict__) for module in model.modules()]

    def fail(_: int) -> None:
        raise KeyError

    with pytest.raises(KeyError):
        time_parts(model, fail, 1, min_runs=1, min_seconds=0)
    assert [dict(module.__dict__) for module in model.modules()] == before


def test_a_layer_without_heads_or_neurons_can_be_timed(
    config_with: Callable[..., EncoderConfig],
    classifier: Callable[..., Classifier],
    rows_of: Callable[..., TokenizedRows],
) -> None:
    empty = LayerShape(heads=(), head_size=4, intermediate_size=0)
    model = classifier(config_with(layers=(empty,)))
    batch = Batch.from_rows(rows_of([4]))
    times = time_parts(model, lambda _: model(batch), 1, min_runs=2, min_seconds=0)
    assert all(seconds >= 0 for seconds in times.seconds.values())
