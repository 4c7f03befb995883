"""The options of `enc prune-heads`, which makes its command line of them."""

from pydantic import Field

from recipes.fields import PRUNING
from recipes.pruning_options import UnitPruningOptions


class PruneHeadsConfig(UnitPruningOptions):
    """All options of a pruning of attention heads."""

    heads: int | None = Field(
        default=None,
        ge=0,
        description="How many heads stay, in all layers together.",
        json_schema_extra=PRUNING,
    )
    min_heads_per_layer: int = Field(
        default=0,
        ge=0,
        description="Heads that stay in each layer; without any, attention is its output bias.",
        json_schema_extra=PRUNING,
    )

    def given(self) -> dict[str, bool]:
        """See ``UnitPruningOptions``."""
        return {"sparsity": self.sparsity is not None, "heads": self.heads is not None} | super().given()
