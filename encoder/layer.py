"""One layer of an encoder, and what to keep of a pass through layers."""

from dataclasses import dataclass, field

from torch import Tensor, nn

from encoder.attention import SelfAttention
from encoder.config import EncoderConfig
from encoder.dropout import Dropout
from encoder.feedforward import FeedForward
from encoder.packing import Packing
from encoder.residual import Residual, Stream, norm_eps


@dataclass
class Wanted:
    """What to keep of a pass through the layers; the lists fill up on the way."""

    attention: bool = False
    residual: bool = False
    attentions: list[Tensor] = field(default_factory=list)
    residual_weights: list[Tensor] = field(default_factory=list)

    def note(self, residual: Residual, stream: Stream) -> None:
        """Keep, if wanted, what ``residual`` takes of each source."""
        if self.residual:
            self.residual_weights.append(residual.weights(stream))


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward, each with a residual connection and a LayerNorm.

    Post-norm: LayerNorm(x + f(x)), as in the original Transformer and BERT. Pre-norm: x + f(LayerNorm(x)).
    What x is, and what an output is added to, is the residual's matter: see ``encoder.residual``.
    """

    def __init__(self, config: EncoderConfig, number: int) -> None:
        super().__init__()
        D, shape = config.hidden_size, config.layers[number]
        self.pre_norm = config.norm == "pre"
        self.attention_residual = Residual(config, 2 * number)
        self.attention = SelfAttention(
            D,
            shape,
            config.attention_dropout,
            rotary=config.position_embedding == "rotary",
            bias=config.attention_bias,
        )
        eps = norm_eps(config, 2 * number)
        self.attention_norm = (
            nn.LayerNorm(D, eps=eps, bias=config.norm_bias) if shape.attention_norm else nn.Identity()
        )
        self.feed_forward_residual = Residual(config, 2 * number + 1)
        self.feed_forward = FeedForward(
            D,
            shape.intermediate_size,
            config.activation,
            gated=config.gated,
            bias=config.feed_forward_bias,
        )
        eps = norm_eps(config, 2 * number + 1)
        self.feed_forward_norm = nn.LayerNorm(D, eps=eps, bias=config.norm_bias)
        self.dropout = Dropout(config.hidden_dropout)

    def forward(
        self, stream: Stream, packing: Packing, *, first_only: bool = False, wanted: Wanted | None = None
    ) -> Stream:
        """The stream of N tokens → that after this layer.

        With ``first_only`` it is that of each row's first token, [B, D] a source; no other is computed.
        """
        wanted = wanted or Wanted()
        wanted.note(self.attention_residual, stream)
        mixed, weights = self.attention(
            self.attention_input(stream), packing, need_weights=wanted.attention, first_only=first_only
        )
        if weights is not None:
            wanted.attentions.append(weights)
        if first_only:
            stream = stream.map(packing.first)
        stream = self.after_attention(stream, self.dropout(mixed))
        wanted.note(self.feed_forward_residual, stream)
        output = self.feed_forward(self.feed_forward_input(stream))
        return self.after_feed_forward(stream, self.dropout(output))

    def attention_input(self, stream: Stream) -> Tensor:
        """What attention gets, [N, D]."""
        x: Tensor = self.attention_residual(stream)
        return self.attention_norm(x) if self.pre_norm else x

    def after_attention(self, stream: Stream, output: Tensor) -> Stream:
        """The stream with what attention made, [N, D]."""
        stream = self.attention_residual.write(stream, output)
        return stream if self.pre_norm else stream.map(self.attention_norm)

    def feed_forward_input(self, stream: Stream) -> Tensor:
        """What the feed-forward block gets, [N, D]."""
        x: Tensor = self.feed_forward_residual(stream)
        return self.feed_forward_norm(x) if self.pre_norm else x

    def after_feed_forward(self, stream: Stream, output: Tensor) -> Stream:
        """The stream with what the feed-forward block made, [N, D]."""
        stream = self.feed_forward_residual.write(stream, output)
        return stream if self.pre_norm else stream.map(self.feed_forward_norm)
