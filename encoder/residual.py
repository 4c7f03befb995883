"""What a sublayer reads of those before it: their sum, or a softmax over depth (attention residuals).

A plain residual connection adds every sublayer's output to one stream. Attention residuals (Kimi Team 2026,
arXiv 2603.15031) keep the outputs apart, as sources v_0 (the embeddings), v_1, v_2 …, and sublayer l reads

    h_l = Σ_i α_i · v_i,   α = softmax_i(w_l · RMSNorm(v_i))

with one learned vector w_l a sublayer, and the classifier one mix more. In the block form sources are sums
over blocks of sublayers, the last of them still growing. A gain of the RMSNorm would be a factor on w_l, so
there is none.

w_l starts at zero, where the mix is the mean: the sum divided by the number of sources. A LayerNorm does not
see that factor if its epsilon is divided by the factor's square, as it is here (``norm_eps``): a pre-norm
encoder turned into one with attention residuals starts as the same function.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from encoder.autograd import apply
from encoder.config import EncoderConfig


@dataclass(frozen=True)
class Stream:
    """What has been written so far: ``sources`` [N, D] each, of a plain residual one, the sum.

    ``scales`` [N, 1] each are 1/RMS of the sources, as far as they are known: computed once, they serve all
    sublayers that read the source.
    """

    sources: tuple[Tensor, ...]
    scales: tuple[Tensor, ...] = ()

    def map(self, change: Callable[[Tensor], Tensor]) -> "Stream":
        """``change``, which takes tokens away or is the norm of a plain sum, applied to each source."""
        return Stream(*(tuple(change(one) for one in part) for part in (self.sources, self.scales)))

    def scaled(self, eps: float) -> "Stream":
        """The same with all scales."""
        missing = self.sources[len(self.scales) :]
        return Stream(self.sources, (*self.scales, *(_scale(source, eps) for source in missing)))

    def packed(self) -> Tensor:
        """All sources side by side, [N, sources·D]; see ``EncoderConfig.stream_width``."""
        return self.sources[0] if len(self.sources) == 1 else torch.cat(self.sources, dim=1)

    @classmethod
    def unpacked(cls, packed: Tensor, hidden_size: int) -> "Stream":
        """The inverse of ``packed``."""
        return cls(packed.split(hidden_size, dim=1))


def norm_eps(config: EncoderConfig, sublayer: int) -> float:
    """The epsilon of the norm that sublayer number ``sublayer`` (2·L: the end) puts on what it reads."""
    return config.layer_norm_eps / config.num_sources(sublayer) ** 2


class Residual(nn.Module):
    """How sublayer number ``sublayer``, from 0, reads the stream and writes to it; 2·L reads for the end.

    ``query`` is w_l [D]; ``None`` where there is but one source.
    """

    def __init__(self, config: EncoderConfig, sublayer: int) -> None:
        super().__init__()
        several = config.num_sources(sublayer) > 1
        self.query = nn.Parameter(torch.empty(config.hidden_size)) if several else None
        self.begins_source = config.num_sources(sublayer + 1) > config.num_sources(sublayer)
        # A sum that others are added to is kept in the dtype of the embeddings, not in that of products.
        self.begins_sum = self.begins_source and config.residual_block_size not in (None, 1)
        self.eps = config.layer_norm_eps

    def forward(self, stream: Stream) -> Tensor:
        """What the sublayer reads, [N, D]."""
        sources = stream.sources
        if self.query is None or len(sources) == 1:
            return sources[-1]
        return apply(_Mix, self.query, torch.cat(stream.scaled(self.eps).scales, 1), *sources)

    def weights(self, stream: Stream) -> Tensor:
        """α of each source, float32 [N, sources]."""
        if self.query is None or len(stream.sources) == 1:
            return stream.sources[0].new_ones(len(stream.sources[0]), 1, dtype=torch.float32)
        with torch.autocast(self.query.device.type, enabled=False):
            scale = torch.cat(stream.scaled(self.eps).scales, 1)
            return _weights(self.query, scale, stream.sources)[0]

    def base(self, stream: Stream) -> Tensor | None:
        """What an output is added to, [N, D]; ``None`` where it becomes a source of its own."""
        return None if self.begins_source else stream.sources[-1]

    def write(self, stream: Stream, output: Tensor) -> Stream:
        """The stream with the sublayer's ``output`` [N, D] in it."""
        if self.begins_source:
            output = output.to(stream.sources[0].dtype) if self.begins_sum else output
            return Stream((*stream.sources, output), stream.scales).scaled(self.eps)
        grown = Stream((*stream.sources[:-1], stream.sources[-1] + output), stream.scales[:-1])
        return grown if len(grown.sources) == 1 else grown.scaled(self.eps)


def _scale(source: Tensor, eps: float) -> Tensor:
    """1/RMS of each token of a source, float32 [N, 1]; its part in the gradient is in ``_Mix``."""
    with torch.no_grad(), torch.autocast(source.device.type, enabled=False):
        squares = torch.linalg.vector_norm(source, dim=-1, keepdim=True, dtype=torch.float32).square()
        scale: Tensor = (squares / source.shape[-1] + eps).rsqrt()
        return scale


def _weights(query: Tensor, scale: Tensor, sources: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
    """α and w·v of each source, float32 [N, sources] each, from their ``scale`` [N, sources]."""
    product = torch.stack([source.float() @ query for source in sources], 1)
    return (product * scale).softmax(-1), product


class _Mix(torch.autograd.Function):
    """Σ α_i·v_i, with its gradient written out: only the sources are kept, which the stream holds anyway.

    Written with torch's operations a mix would keep several tensors a source, and there are L² of them.
    """

    @staticmethod
    def forward(ctx: Any, query: Tensor, scale: Tensor, *sources: Tensor) -> Tensor:
        with torch.autocast(query.device.type, enabled=False):
            query = query.float()
            alpha, product = _weights(query, scale, sources)
            mixed = sources[0].float() * alpha[:, :1]
            for number, source in enumerate(sources[1:], start=1):
                mixed.addcmul_(source.float(), alpha[:, number : number + 1])
        ctx.save_for_backward(query, alpha, product, scale, *sources)
        return mixed

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        query, alpha, product, scale, *sources = ctx.saved_tensors
        grad, D = grads[0].float(), query.shape[0]
        with torch.autocast(query.device.type, enabled=False):
            grad_alpha = torch.stack([(grad * source.float()).sum(-1) for source in sources], 1)
            grad_score = alpha * (grad_alpha - (alpha * grad_alpha).sum(-1, keepdim=True))  # [N, sources]
            grad_product = grad_score * scale
            grad_query = torch.zeros_like(query)
            found: list[Tensor | None] = []
            for number, source in enumerate(sources):
                one = slice(number, number + 1)
                grad_query += grad_product[:, number] @ source.float()
                if not ctx.needs_input_grad[2 + number]:
                    found.append(None)
                    continue
                into = grad * alpha[:, one]
                into.addcmul_(grad_product[:, one], query)
                # RMSNorm: what a longer v takes from the product.
                longer = grad_product[:, one] * product[:, one] * scale[:, one].square() / D
                found.append(into.addcmul_(source.float(), longer, value=-1.0).to(source.dtype))
        return grad_query, None, *found
