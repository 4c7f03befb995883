"""The options of a sweep over frozen layers: `enc freeze-sweep` makes its command line of them."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, NonNegativeInt

from recipes.fields import SWEEP, MaxDropOrNone, split_at_commas
from recipes.training_options import FreezingOptions


class FreezeSweepConfig(FreezingOptions):
    """All options of a sweep."""

    points: Annotated[tuple[NonNegativeInt, ...], BeforeValidator(split_at_commas)] | None = Field(
        default=None,
        min_length=1,
        description="How many layers to freeze, from the bottom and with the embeddings; 0 freezes nothing. "
        "Otherwise every number there is.",
        json_schema_extra=SWEEP | {"metavar": "K,K", "commas": True},
    )
    search: bool = Field(
        default=False,
        description="Try a few numbers, then those between the last that is fine and the first that hurts.",
        json_schema_extra=SWEEP,
    )
    seeds: int = Field(
        default=1,
        ge=1,
        le=1000,
        description="Train every point with this many seeds, from --seed on: the spread between them tells "
        "a loss from noise.",
        json_schema_extra=SWEEP,
    )
    max_drop: MaxDropOrNone = Field(
        default=None,
        description="The loss against the best point that is allowed, in points of the score: 1 is 0.01 of "
        "accuracy. Otherwise what is no more than noise.",
        json_schema_extra=SWEEP,
    )
    keep: Literal["best", "all", "none"] = Field(
        default="best",
        description="Which models to save: that of the chosen point, one of every point, or none.",
        json_schema_extra=SWEEP,
    )

    def problems(self) -> list[str]:
        """See ``TrainingOptions``."""
        problems = []
        if self.points is not None and self.search:
            problems.append("`points` and `search` both say which numbers to try; give one of them")
        return problems + super().problems()
