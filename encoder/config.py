"""The shape of an encoder as data: everything needed to build it, layer by layer.

Per-layer shapes live here, so that a pruned encoder is an ordinary encoder: it is built, loaded, trained,
measured and exported by the same code as an unpruned one.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Activation = Literal["gelu", "gelu_tanh", "relu", "silu"]
Family = Literal["bert", "roberta", "xlm-roberta", "camembert", "distilbert", "electra", "enc"]


class Strict(BaseModel):
    """A frozen config that refuses unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class LayerShape(Strict):
    """One layer: which of the original heads it keeps, the size of a head (K), and the FFN width (F).

    ``heads`` holds original indices, so that a model pruned twice still says which heads are gone.
    No heads, or ``intermediate_size`` 0, leaves the sublayer's output bias alone.
    """

    heads: tuple[int, ...]
    head_size: int = Field(gt=0)
    intermediate_size: int = Field(ge=0)

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
    """The classifier on the first token: [dropout] → linear D×D → activation → dropout → linear D×C."""

    activation: Literal["tanh", "relu", "gelu"] = "tanh"
    input_dropout: bool = False
    dropout: float = Field(default=0.1, ge=0, lt=1)


class EncoderConfig(Strict):
    """Everything that decides an encoder's parameters and its function.

    ``position_offset`` is the row of the position table that the first token uses (RoBERTa:
    ``pad_token_id + 1``), so ``max_tokens`` can be smaller than ``max_position_embeddings``.
    ``embedding_size`` differs from ``hidden_size`` only where the table is projected (ELECTRA).
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
    residual: Literal["add"] = "add"
    position_embedding: Literal["learned", "sinusoidal"] = "learned"
    activation: Activation = "gelu"
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

    @property
    def num_hidden_layers(self) -> int:
        """L."""
        return len(self.layers)

    @property
    def max_tokens(self) -> int:
        """The longest row, special tokens included, that has a position for each token."""
        return self.max_position_embeddings - self.position_offset
