"""What becomes of a token on its way through the layers: how large it is, what each layer adds, how much of
the space is used, and what reaches each layer of the gradient.

Under pre-norm with sums the stream grows with depth, so that each layer adds a smaller part of it (Xiong et
al. 2020; "dilution" in Kimi Team 2026, arXiv 2603.15031).
"""

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from encoder.batches import Batch
from encoder.model import Encoder


@dataclass(frozen=True)
class Sublayer:
    """Root mean squares over tokens and dimensions: what is read of the stream (before a norm that stands in
    front of the sublayer), and what is made of it."""

    read: float
    made: float


@dataclass(frozen=True)
class Depths:
    """Measured on N tokens. ``streams`` and ``effective_ranks`` are L+1, the embeddings first.

    ``streams`` are root mean squares of what the layer above reads, the last of what the end reads.
    """

    tokens: int
    streams: tuple[float, ...]
    effective_ranks: tuple[float, ...]
    attention: tuple[Sublayer, ...]
    feed_forward: tuple[Sublayer, ...]


def effective_rank(gram: Tensor) -> float:
    """How many dimensions vectors X [N, D] fill, from ``gram`` = XᵀX [D, D]: between 1 and D, 0 for zeros.

    exp(H(p)) with p the singular values of X divided by their sum and H the entropy (Roy and Vetterli 2007,
    definition 1). They are the roots of the Gram matrix's eigenvalues.
    """
    values = torch.linalg.eigvalsh(gram.double()).clamp(min=0).sqrt()
    total = values.sum()
    if total == 0:
        return 0.0
    shares = values / total
    shares = shares[shares > 0]
    return math.exp(float(-(shares * shares.log()).sum()))


def measure_depth(encoder: Encoder, batches: Iterable[Batch]) -> Depths:
    """What tokens of ``batches`` are at each depth of ``encoder``, which is left in evaluation mode."""
    encoder.eval()
    layers: list[Any] = list(encoder.layers)
    sizes = {
        name: [_Size() for _ in layers] for name in ("attention_read", "attention", "read", "feed_forward")
    }
    last = _Size()
    grams = [_Gram() for _ in range(len(layers) + 1)]
    watched: list[tuple[nn.Module, Callable[[Tensor], None]]] = []
    for number, layer in enumerate(layers):
        watched += [
            (layer.attention_residual, sizes["attention_read"][number].add),
            (layer.attention_residual, grams[number].add),
            (layer.attention, sizes["attention"][number].add),
            (layer.feed_forward_residual, sizes["read"][number].add),
            (layer.feed_forward, sizes["feed_forward"][number].add),
        ]
    watched += [(encoder.final_residual, last.add), (encoder.final_residual, grams[-1].add)]
    with _watching(watched), torch.no_grad():  # a batch keeps what it computes, and may be trained on next
        for batch in batches:
            encoder(batch)
    reads = [size.root for size in sizes["attention_read"]]
    return Depths(
        tokens=last.tokens,
        streams=(*reads, last.root),
        effective_ranks=tuple(effective_rank(gram.total) for gram in grams),
        attention=_pairs(sizes["attention_read"], sizes["attention"]),
        feed_forward=_pairs(sizes["read"], sizes["feed_forward"]),
    )


def gradient_norms(model: nn.Module, encoder: Encoder) -> tuple[float, ...]:
    """The lengths of the gradients that parameters have now: of the embeddings, then of each layer."""
    parts = (encoder.embeddings, *encoder.layers)
    return tuple(
        math.sqrt(sum(float(p.grad.double().square().sum()) for p in part.parameters() if p.grad is not None))
        for part in parts
    )


@dataclass
class _Size:
    """A root mean square that is added up batch by batch."""

    squares: float = 0.0
    numbers: int = 0
    tokens: int = 0

    def add(self, x: Tensor) -> None:
        self.squares += float(x.double().square().sum())
        self.numbers += x.numel()
        self.tokens += len(x)

    @property
    def root(self) -> float:
        return math.sqrt(self.squares / max(1, self.numbers))


@dataclass
class _Gram:
    """XᵀX, added up batch by batch."""

    total: Tensor = field(default_factory=lambda: torch.zeros(1, 1))

    def add(self, x: Tensor) -> None:
        wide = x.double()
        gram = wide.T @ wide
        self.total = gram if self.total.shape != gram.shape else self.total + gram


def _pairs(read: list[_Size], made: list[_Size]) -> tuple[Sublayer, ...]:
    return tuple(Sublayer(one.root, other.root) for one, other in zip(read, made, strict=True))


@contextmanager
def _watching(watched: Iterable[tuple[nn.Module, Callable[[Tensor], None]]]) -> Iterator[None]:
    """Within the context each function is told what its module returns, of several things the first."""

    def hook(tell: Callable[[Tensor], None]) -> Callable[..., None]:
        return lambda module, inputs, output: tell(output[0] if isinstance(output, tuple) else output)

    handles = [module.register_forward_hook(hook(tell)) for module, tell in watched]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
