"""Least-squares repair: output projections that make up for what was removed, solved in closed form.

What is left in a pruned layer is correlated with what went, so other output weights can stand in for much of
it, without training (the mask tuning of Kwon et al. 2022, arXiv 2204.09656, section 4.3; here all weights and
the bias are solved for, not one factor a unit). Sublayers are repaired from the bottom up, each on what those
below it, already repaired, give it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from compress.units import Unit, output_projection
from encoder.batches import BATCH_TOKENS, Batch, batches_of_tokens
from encoder.linear import Linear
from encoder.model import Classifier
from encoder.packing import Packing
from encoder.residual import Stream
from encoder.rows import TokenizedRows

SUBLAYERS: tuple[Unit, ...] = ("heads", "neurons")
# Of the mean square of a unit's output: how much a column must be needed to be moved from where it is.
RIDGE = 0.1


def repair_(
    pruned: Sequence[Classifier],
    original: Classifier,
    rows: TokenizedRows,
    *,
    units: Sequence[Unit] = SUBLAYERS,
    ridge: float = RIDGE,
    device: str = "cpu",
) -> None:
    """Solve in place for the output projections of each of ``pruned``, of the sublayers that ``units`` name.

    All models have the same layers; labels are not looked at. Weight W [D, W'] and bias b [D] become those
    that best bring the residual stream to where ``original`` has it: min Σ‖W·z + b − t‖² + λ·‖W − W₀‖² over
    the tokens of ``rows`` (in the last layer, the first tokens), z [W'] being what the units found, W₀ the
    weights as they are, t the stream of ``original`` after the sublayer less that of the other before it.
    λ is ``ridge`` times the mean of Σz² over the columns.
    """
    index = batches_of_tokens(rows.lengths, BATCH_TOKENS)
    batches = [Batch.from_rows(rows.select(one)).to(device) for one in index]
    packings = [batch.packing for batch in batches]
    for model in (original, *pruned):
        model.to(device).eval()
    with torch.no_grad():
        theirs = _Walk(original, [original.encoder.embed(batch) for batch in batches])
        ours = [_Walk(model, [model.encoder.embed(batch) for batch in batches]) for model in pruned]
        for layer in range(len(original.encoder.layers)):
            for unit in SUBLAYERS:
                targets = theirs.step(layer, unit, packings)
                for walk in ours:
                    walk.step(layer, unit, packings, targets, ridge if unit in units else None)


@dataclass
class _Walk:
    """A model and the residual streams of all batches, on their way through it."""

    model: Classifier
    streams: list[Stream]

    def step(
        self,
        number: int,
        unit: Unit,
        packings: Sequence[Packing],
        targets: Sequence[Tensor] = (),
        ridge: float | None = None,
    ) -> list[Tensor]:
        """Through a sublayer; with a ``ridge``, its projection is first solved for to reach ``targets``.

        Returns of each batch what the output was added to, with it, [N, D]; of attention residuals, whose
        sources begin anew, the output.
        """
        layers = self.model.encoder.layers
        layer: Any = layers[number]
        only_first = number == len(layers) - 1 and self.model.config.reads_first_token_only
        projection = output_projection(layer, unit)
        opened = [_open(layer, unit, x, p, only_first) for x, p in zip(self.streams, packings, strict=True)]
        residual = layer.attention_residual if unit == "heads" else layer.feed_forward_residual
        bases = [residual.base(stream) for stream, _, _ in opened]
        if ridge is not None:
            equations = _Equations.of(projection)
            for (_, z, _), base, target in zip(opened, bases, targets, strict=True):
                equations.add(z, target if base is None else target - base)
            equations.solve_(projection, ridge)
        outputs = [output if ridge is None else projection(z) for _, z, output in opened]
        close = layer.after_attention if unit == "heads" else layer.after_feed_forward
        self.streams = [close(stream, output) for (stream, _, _), output in zip(opened, outputs, strict=True)]
        return [
            output if base is None else base + output for base, output in zip(bases, outputs, strict=True)
        ]


def _open(
    layer: Any, unit: Unit, stream: Stream, packing: Packing, only_first: bool
) -> tuple[Stream, Tensor, Tensor]:
    """Into a sublayer: the stream → the stream to write to, what the units found [N, W'], the output [N, D].

    They have N rows, or those of the first tokens where a last layer computes no other.
    """
    found: list[Tensor] = []
    hook = output_projection(layer, unit).register_forward_hook(
        lambda module, arguments, output: found.extend((arguments[0], output))
    )
    try:
        if unit == "heads":
            layer.attention(layer.attention_input(stream), packing, first_only=only_first)
            stream = stream.map(packing.first) if only_first else stream
        else:
            layer.feed_forward(layer.feed_forward_input(stream))
    finally:
        hook.remove()
    z, output = found
    return stream, z, output


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
        """Write the solution into ``projection``; the bias is free of the ridge, so means are taken out.

        Without a bias there is nothing to take them up, so they stay.
        """
        z, t = self.inputs / self.tokens, self.targets / self.tokens
        if projection.bias is None:
            z, t = torch.zeros_like(z), torch.zeros_like(t)
        weight = projection.weight.double()
        if weight.shape[1]:
            squares = self.squares - self.tokens * torch.outer(z, z)
            strength = ridge * squares.diagonal().mean().clamp(min=1e-12)
            factor, strength = _factorize(squares, strength)
            products = self.products - self.tokens * torch.outer(t, z) + strength * weight
            weight = torch.cholesky_solve(products.T, factor).T  # [D, W']
        projection.weight.copy_(weight)
        if projection.bias is not None:
            projection.bias.copy_(t - weight @ z)


def _factorize(squares: Tensor, strength: Tensor) -> tuple[Tensor, Tensor]:
    """The Cholesky factor of ``squares`` [W', W'] with ``strength`` on its diagonal, and that strength.

    Where inputs hardly vary, the difference of two large sums of float32 is rounding and may have no factor:
    then the strength grows until it has, and the weights stay the nearer to what they were.
    """
    while True:
        damped = squares.clone()
        damped.diagonal().add_(strength)
        factor, failed = torch.linalg.cholesky_ex(damped, check_errors=not bool(strength.isfinite()))
        if not failed:
            return factor, strength
        strength = 10 * strength
