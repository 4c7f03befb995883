"""The options of a fine-tuning run: `enc finetune` makes its command line of them, a TOML file gives them."""

from typing import Literal

from pydantic import Field

from recipes.fields import FREEZING, MODEL_AND_DATA
from recipes.training_options import FreezingOptions


class FinetuneConfig(FreezingOptions):
    """All options of a fine-tuning run."""

    freeze_layers: int = Field(
        default=0,
        ge=0,
        description="Keep the embeddings and this many layers, from the bottom, as they are.",
        json_schema_extra=FREEZING,
    )
    freeze_embeddings: bool = Field(
        default=False,
        description="Keep the embeddings as they are.",
        json_schema_extra=FREEZING,
    )
    train_last: int | None = Field(
        default=None,
        ge=0,
        description="Train this many layers, from the top, and the classifier; keep the rest.",
        json_schema_extra=FREEZING,
    )
    freeze: tuple[str, ...] = Field(
        default=(),
        description="Keep the parameters whose name matches, as in 'encoder.layers.0.attention.*'; "
        "can be given several times.",
        json_schema_extra=FREEZING,
    )
    train_classifier_only: bool = Field(
        default=False,
        description="Keep the whole encoder as it is.",
        json_schema_extra=FREEZING,
    )

    residual: Literal["attention", "block_attention"] | None = Field(
        default=None,
        description="Turn a pre-norm encoder (ModernBERT) into one with attention residuals, each sublayer "
        "by itself or in blocks; it starts as the same function.",
        json_schema_extra=MODEL_AND_DATA,
    )
    residual_block_size: int | None = Field(
        default=None,
        gt=0,
        description="Sublayers in a block of --residual block_attention; a layer has two.",
        json_schema_extra=MODEL_AND_DATA,
    )

    def problems(self) -> list[str]:
        """See ``TrainingOptions``."""
        ways = {
            "freeze_layers": self.freeze_layers > 0,
            "train_last": self.train_last is not None,
            "train_classifier_only": self.train_classifier_only,
        }
        given = [name for name, is_given in ways.items() if is_given]
        problems = []
        if len(given) > 1:
            problems.append(f"`{given[0]}` and `{given[1]}` both say which layers to train; give one of them")
        if self.residual == "block_attention" and self.residual_block_size is None:
            problems.append("`residual` block_attention needs a `residual_block_size`")
        if self.residual != "block_attention" and self.residual_block_size is not None:
            problems.append("`residual_block_size` has no say without `residual` block_attention")
        return problems + super().problems()
