"""Least-squares repair: output projections that make up for what was removed, solved in closed form.

What is left in a pruned layer is correlated with what went, so other output weights can stand in for much of
it, without training (the mask tuning of Kwon et al. 2022, arXiv 2204.09656, section 4.3; here all weights and
the bias are solved for, not one factor a unit). Sublayers are repaired from the bottom up, each on what those
below it, already repaired, give it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from compress.units import Unit, output_projection
from encoder.batches import Batch, batches_of_tokens
from encoder.linear import Linear
from encoder.model import Classifier
from encoder.packing import Packing
from encoder.rows import TokenizedRows

SUBLAYERS: tuple[Unit, ...] = ("heads", "neurons")
BATCH_TOKENS = 4096
# Of the mean square of a unit's output: how much a column must be needed to be moved from where it is.
RIDGE = 0.1


def repair_(
    pruned: Classifier,
    original: Classifier,
    rows: TokenizedRows,
    *,
    units: Sequence[Unit] = SUBLAYERS,
    ridge: float = RIDGE,
    device: str = "cpu",
    on_layers: Callable[[int], None] = lambda count: None,
) -> None:
    """Solve in place for the output projections of ``pruned``, of the sublayers that ``units`` name.

    Both models have the same layers; labels are not looked at. Weight W [D, W'] and bias b [D] become those
    that best bring the residual stream to where ``original`` has it: min Σ‖W·z + b − t‖² + λ·‖W − W₀‖² over
    the tokens of ``rows`` (in the last layer, the first tokens), z [W'] being what the units found, W₀ the
    weights as they are, t the stream of ``original`` after the sublayer less that of ``pruned`` before it.
    λ is ``ridge`` times the mean of Σz² over the columns. ``on_layers`` is told how many layers are done.
    """
    index = batches_of_tokens(rows.lengths, BATCH_TOKENS)
    batches = [Batch.from_rows(rows.select(one)).to(device) for one in index]
    for model in (original, pruned):
        model.to(device).eval()
    with torch.no_grad():
        theirs = [original.encoder.embed(batch) for batch in batches]
        ours = [pruned.encoder.embed(batch) for batch in batches]
        layers = list(zip(original.encoder.layers, pruned.encoder.layers, strict=True))
        for number, (whole, cut) in enumerate(layers):
            only_first = number == len(layers) - 1
            for unit in SUBLAYERS:
                equations = _Equations.of(output_projection(cut, unit)) if unit in units else None
                halves = []
                for place, batch in enumerate(batches):
                    residual, z = _open(whole, unit, theirs[place], batch.packing, only_first)
                    target = residual + output_projection(whole, unit)(z)
                    theirs[place] = _close(whole, unit, target)
                    residual, z = _open(cut, unit, ours[place], batch.packing, only_first)
                    if equations is not None:
                        equations.add(z, target - residual)
                    halves.append((residual, z))
                if equations is not None:
                    equations.solve_(output_projection(cut, unit), ridge)
                ours = [
                    _close(cut, unit, residual + output_projection(cut, unit)(z)) for residual, z in halves
                ]
            on_layers(number + 1)


def _open(layer: Any, unit: Unit, x: Tensor, packing: Packing, only_first: bool) -> tuple[Tensor, Tensor]:
    """Into a sublayer: the stream x [N, D] → the residual [N, D] and what the units found, [N, W'].

    Both have N rows, or those of the first tokens where a last layer computes no other.
    """
    found: list[Tensor] = []
    hook = output_projection(layer, unit).register_forward_pre_hook(
        lambda module, arguments: found.append(arguments[0])
    )
    try:
        if unit == "heads":
            layer.attention(layer.attention_norm(x) if layer.pre_norm else x, packing, first_only=only_first)
            return (packing.first(x) if only_first else x), found[0]
        layer.feed_forward(layer.feed_forward_norm(x) if layer.pre_norm else x)
        return x, found[0]
    finally:
        hook.remove()


def _close(layer: Any, unit: Unit, total: Tensor) -> Tensor:
    """Out of a sublayer: residual + output → the stream."""
    if layer.pre_norm:
        return total
    norm: nn.LayerNorm = layer.attention_norm if unit == "heads" else layer.feed_forward_norm
    normed: Tensor = norm(total)
    return normed


@dataclass
class _Equations:
    """The normal equations of one projection, in float64: Σzzᵀ, Σtzᵀ, Σz, Σt and the number of tokens."""

    squares: Tensor
    products: Tensor
    inputs: Tensor
    targets: Tensor
    tokens: int

    @classmethod
    def of(cls, projection: Linear) -> "_Equations":
        """No tokens yet."""
        D, width = projection.weight.shape
        zeros = torch.zeros(width, width, dtype=torch.float64, device=projection.weight.device)
        return cls(zeros, zeros.new_zeros(D, width), zeros.new_zeros(width), zeros.new_zeros(D), 0)

    def add(self, z: Tensor, t: Tensor) -> None:
        """Tokens with z [N, W'] and their targets [N, D]."""
        self.squares += z.T @ z  # of a batch in float32, of all in float64
        self.products += t.T @ z
        self.inputs += z.double().sum(0)
        self.targets += t.double().sum(0)
        self.tokens += len(z)

    def solve_(self, projection: Linear, ridge: float) -> None:
        """Write the solution into ``projection``; the bias is free of the ridge, so means are taken out."""
        z, t = self.inputs / self.tokens, self.targets / self.tokens
        weight = projection.weight.double()
        if weight.shape[1]:
            squares = self.squares - self.tokens * torch.outer(z, z)
            strength = ridge * squares.diagonal().mean().clamp(min=1e-12)
            squares.diagonal().add_(strength)
            products = self.products - self.tokens * torch.outer(t, z) + strength * weight
            weight = torch.cholesky_solve(products.T, torch.linalg.cholesky(squares)).T  # [D, W']
        projection.weight.copy_(weight)
        projection.bias.copy_(t - weight @ z)
