"""What attention residuals cost in a training step: memory kept for the backward pass, and processor time.

    python -m benchmarks.residuals [--layers 12] [--rows 32] [--length 64] [--precision fp32]

A pre-norm encoder of hidden size 384, random weights and tokens, the kinds in turns. Memory is that of all
tensors which autograd keeps, each storage once; time is that of the process, the fastest of the
turns, which is the one that was disturbed least.
"""

import argparse
import time

import torch

from encoder.batches import Batch
from encoder.config import EncoderConfig, LayerShape
from encoder.model import Classifier, initialise_
from encoder.packing import Packing
from encoder.prediction import Precision, autocast
from encoder.task import Task

KINDS: dict[str, tuple[str, int | None]] = {
    "add": ("add", None),
    "attention": ("attention", None),
    "blocks of 2": ("block_attention", 2),
    "blocks of 4": ("block_attention", 4),
    "blocks of 8": ("block_attention", 8),
}


def make_model(layers: int, residual: str, block_size: int | None) -> Classifier:
    shape = LayerShape(heads=tuple(range(12)), head_size=32, intermediate_size=1536)
    config = EncoderConfig(
        family="enc",
        vocab_size=1000,
        hidden_size=384,
        embedding_size=384,
        max_position_embeddings=512,
        type_vocab_size=0,
        layers=(shape,) * layers,
        norm="pre",
        residual=residual,
        residual_block_size=block_size,
        hidden_dropout=0.0,
        attention_dropout=0.0,
        classifier={"pooling": "mean"},
    )
    model = Classifier(config, Task(kind="single_label", labels=("a", "b")))
    initialise_(model, config, 0)
    return model.train()


def kept_bytes(model: Classifier, batch: Batch, precision: Precision) -> int:
    """Bytes of the tensors that autograd keeps of a forward pass, without the parameters."""
    known = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    sizes: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in known:
            sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    with (
        torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor),
        autocast("cpu", precision),
    ):
        loss = model(batch).square().sum()
    loss.backward()
    return sum(sizes.values())


def seconds(model: Classifier, batch: Batch, precision: Precision) -> tuple[float, float]:
    """Processor time of a forward pass, and of a whole step."""
    started = time.process_time()
    with autocast("cpu", precision):
        loss = model(batch).square().sum()
    forward = time.process_time() - started
    loss.backward()
    return forward, time.process_time() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--rows", type=int, default=32)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    lengths = torch.full((options.rows,), options.length)
    tokens = options.rows * options.length
    batch = Batch(
        torch.randint(0, 1000, (tokens,)),
        torch.zeros(tokens, dtype=torch.int64),
        Packing.from_lengths(lengths),
    )
    models = {name: make_model(options.layers, *kind) for name, kind in KINDS.items()}
    kept = {name: kept_bytes(model, batch, options.precision) for name, model in models.items()}
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in models}
    for _ in range(options.turns):
        for name, model in models.items():
            times[name].append(seconds(model, batch, options.precision))
    print(f"{'residual':12} {'kept MB':>8} {'forward s':>10} {'step s':>8}")
    for name in models:
        forward, step = (min(one) for one in zip(*times[name], strict=True))
        print(f"{name:12} {kept[name] / 1e6:8.0f} {forward:10.2f} {step:8.2f}")


if __name__ == "__main__":
    main()
