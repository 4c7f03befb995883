"""The options of `enc drop-layers`, which makes its command line of them."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, NonNegativeInt

from recipes.fields import PRUNING, all_say, split_at_commas
from recipes.pruning_options import SCORING, PruningOptions

Layers = Annotated[tuple[NonNegativeInt, ...], BeforeValidator(split_at_commas)]


class DropLayersConfig(PruningOptions):
    """All options of a removal of whole layers."""

    layers: int | None = Field(
        default=None, ge=1, description="How many layers stay.", json_schema_extra=PRUNING
    )
    strategy: Literal["importance", "top", "alternate"] = Field(
        default="importance",
        description="Which go: one after another that without which the loss is lowest, those at the top, or "
        "every second (third …) but never the last.",
        json_schema_extra=PRUNING,
    )
    keep: Layers | None = Field(
        default=None,
        min_length=1,
        description="The layers that stay, counted from 0.",
        json_schema_extra=PRUNING | {"metavar": "N,N", "commas": True},
    )
    drop: Layers | None = Field(
        default=None,
        min_length=1,
        description="The layers that go, counted from 0.",
        json_schema_extra=PRUNING | {"metavar": "N,N", "commas": True},
    )

    def problems(self) -> list[str]:
        """See ``PruningOptions``."""
        ways = {
            "layers": self.layers is not None,
            "keep": self.keep is not None,
            "drop": self.drop is not None,
        }
        given = [f"`{name}`" for name, is_given in ways.items() if is_given]
        problems = []
        if len(given) > 1:
            problems.append(f"{all_say(given)} which layers stay; give one of them")
        if not given and self.max_drop is None:
            problems.append("nothing says how much to remove; give `layers`, `keep`, `drop` or `max_drop`")
        if ways["keep"] or ways["drop"]:
            names = ("strategy", "max_drop", *SCORING)
            problems += self.without_effect(names, "where the layers are named")
        elif self.strategy != "importance":
            problems += self.without_effect(SCORING, f"where `strategy` is {self.strategy}")
        return problems + super().problems()
