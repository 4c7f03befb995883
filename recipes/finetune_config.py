"""The options of a fine-tuning run: `enc finetune` makes its command line of them, a TOML file gives them."""

from pydantic import Field

from recipes.fields import FREEZING
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
        return problems + super().problems()
