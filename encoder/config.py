"""The shape of an encoder as data: everything needed to build it, layer by layer.

Per-layer shapes live here, so that a pruned encoder is an ordinary encoder: it is built, loaded, trained,
measured and exported by the same code as an unpruned one.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Activation = Literal["gelu", "gelu_tanh", "relu", "silu"]
Family = Literal["bert", "roberta", "xlm-roberta", "camembert", "distilbert", "electra", "modernbert", "enc"]
ResidualKind = Literal["add", "attention", "block_attention"]


class Strict(BaseModel):
    """A frozen config that refuses unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class LayerShape(Strict):
    """One layer: which of the original heads it keeps, the size of a head (K), and the FFN width (F).

    ``heads`` holds original indices, so that a model pruned twice still says which heads are gone.
    No heads, or ``intermediate_size`` 0, leaves the sublayer's output bias alone.

    ``window``: local attention, a token sees those at most so far away; ``None``: all of its row.
    ``rope_theta``: the base of rotary positions, where the encoder has them. ``attention_norm``: whether
    attention has a LayerNorm; ModernBERT's first has none, as it reads embeddings that are normalised.
    """

    heads: tuple[int, ...]
    head_size: int = Field(gt=0)
    intermediate_size: int = Field(ge=0)
    window: int | None = Field(default=None, gt=0)
    rope_theta: float = Field(default=10_000.0, gt=0)
    attention_norm: bool = True

    @model_validator(mode="after")
    def _heads_are_a_set(self) -> "LayerShape":
        if list(self.heads) != sorted(set(self.heads)) or any(head < 0 for head in self.heads):
            raise ValueError(f"heads must be increasing indices without repeats, got {list(self.heads)}")
        return self

    @property
    def num_attention_heads(self) -> int:
        """H, the heads that are left."""
        return len(self.heads)


class ClassifierConfig(Strict):
    """The classifier: [dropout] → linear D×D → activation → [LayerNorm] → dropout → linear D×C.

    It reads the first token or, with ``pooling`` mean, the mean over the tokens of the row. ``bias``: of the
    first linear layer; the last has one always.
    """

    activation: Literal["tanh", "relu", "gelu", "silu"] = "tanh"
    input_dropout: bool = False
    dropout: float = Field(default=0.1, ge=0, lt=1)
    bias: bool = True
    norm: bool = False
    pooling: Literal["cls", "mean"] = "cls"


class EncoderConfig(Strict):
    """Everything that decides an encoder's parameters and its function.

    ``position_offset`` is the row of the position table that the first token uses (RoBERTa:
    ``pad_token_id + 1``), so ``max_tokens`` can be smaller than ``max_position_embeddings``.
    ``embedding_size`` differs from ``hidden_size`` only where the table is projected (ELECTRA).

    ``norm``: LayerNorm(x + f(x)), or x + f(LayerNorm(x)) and one more at the end. ``gated``: a feed-forward
    block is W·(activation(A·x) ⊙ B·x), GeGLU with gelu and SwiGLU with silu (Shazeer 2020). Biases are
    optional by kind. ``residual``: what a sublayer reads of those before it, see ``encoder.residual``; blocks
    are of ``residual_block_size`` sublayers.
    """

    family: Family
    vocab_size: int = Field(gt=0)
    hidden_size: int = Field(gt=0)
    embedding_size: int = Field(gt=0)
    max_position_embeddings: int = Field(gt=0)
    position_offset: int = Field(default=0, ge=0)
    type_vocab_size: int = Field(ge=0)
    pad_token_id: int = Field(default=0, ge=0)
    layers: tuple[LayerShape, ...] = Field(min_length=1)

    norm: Literal["post", "pre"] = "post"
    residual: ResidualKind = "add"
    residual_block_size: int | None = Field(default=None, gt=0)
    position_embedding: Literal["learned", "sinusoidal", "rotary"] = "learned"
    activation: Activation = "gelu"
    gated: bool = False
    attention_bias: bool = True
    feed_forward_bias: bool = True
    norm_bias: bool = True
    layer_norm_eps: float = Field(default=1e-12, gt=0)
    hidden_dropout: float = Field(default=0.1, ge=0, lt=1)
    attention_dropout: float = Field(default=0.1, ge=0, lt=1)
    initializer_range: float = Field(default=0.02, gt=0)
    classifier: ClassifierConfig = ClassifierConfig()

    @model_validator(mode="after")
    def _positions_fit(self) -> "EncoderConfig":
        if self.max_tokens < 1:
            raise ValueError(
                f"max_position_embeddings {self.max_position_embeddings} leaves no position "
                f"after the offset {self.position_offset}"
            )
        return self

    @model_validator(mode="after")
    def _parts_go_together(self) -> "EncoderConfig":
        problems = []
        blocks = self.residual == "block_attention"
        if blocks != (self.residual_block_size is not None):
            problems.append(
                "residual 'block_attention' needs a residual_block_size"
                if blocks
                else f"residual_block_size is of residual 'block_attention' only, not of {self.residual!r}"
            )
        if self.residual != "add" and self.norm == "post":
            problems.append(
                f"residual {self.residual!r} needs norm 'pre': a post-norm LayerNorm sits on the stream "
                "itself, so that there is no sum of sublayer outputs to weigh anew"
            )
        bare = [number for number, layer in enumerate(self.layers) if not layer.attention_norm]
        if bare and self.norm == "post":
            problems.append(f"layer {bare[0]} has no attention_norm, which only norm 'pre' can do without")
        if bare and bare != [0] and self.residual != "add":
            problems.append(
                f"layer {bare[-1]} has no attention_norm: with residual {self.residual!r} only the first may "
                "lack it, as others see how large the mix is"
            )
        if self.position_embedding == "rotary":
            problems += [
                f"layer {number}: rotary positions turn pairs of numbers; head size {layer.head_size} is odd"
                for number, layer in enumerate(self.layers)
                if layer.head_size % 2
            ]
        if problems:
            raise ValueError("; ".join(problems))
        return self

    @property
    def num_hidden_layers(self) -> int:
        """L."""
        return len(self.layers)

    @property
    def reads_first_token_only(self) -> bool:
        """Whether the classifier looks at one token a row, so that the last layer need compute no other."""
        return self.classifier.pooling == "cls"

    def num_sources(self, sublayer: int) -> int:
        """How many sources sublayer number ``sublayer`` has to read, from 0; 2·L stands for the end.

        One with residual "add": the sum. Otherwise the embeddings, and the outputs of earlier sublayers in
        blocks of ``residual_block_size``, the last of which may be incomplete.
        """
        if self.residual == "add":
            return 1
        return 1 + -(-sublayer // (self.residual_block_size or 1))

    def stream_width(self, depth: int) -> int:
        """How many numbers a token is after ``depth`` layers: D for each source."""
        return self.num_sources(2 * depth) * self.hidden_size

    @property
    def max_tokens(self) -> int:
        """The longest row, special tokens included, that has a position for each token."""
        return self.max_position_embeddings - self.position_offset


# A gated block has three matrices where a plain one has two.
INTERMEDIATE_MULTIPLE_OF = 64


def usual_intermediate_size(hidden_size: int, *, gated: bool) -> int:
    """F where nobody says otherwise: 4·D, or 8/3·D where gated, which is as many parameters.

    The second is rounded to the next multiple of 64 (from 64 on; below, of 8), the shapes that matrix
    products are fast in; Shazeer 2020, section 3, scales by 2/3 likewise.
    """
    if not gated:
        return 4 * hidden_size
    multiple = INTERMEDIATE_MULTIPLE_OF if hidden_size >= INTERMEDIATE_MULTIPLE_OF else 8
    return multiple * round(8 * hidden_size / 3 / multiple)
