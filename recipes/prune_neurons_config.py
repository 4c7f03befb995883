"""The options of `enc prune-neurons`, which makes its command line of them."""

from pydantic import Field

from recipes.fields import PRUNING
from recipes.pruning_options import UnitPruningOptions


class PruneNeuronsConfig(UnitPruningOptions):
    """All options of a pruning of feed-forward neurons."""

    neurons: int | None = Field(
        default=None,
        ge=0,
        description="How many neurons stay, in all layers together.",
        json_schema_extra=PRUNING,
    )
    min_neurons_per_layer: int = Field(
        default=0,
        ge=0,
        description="Neurons that stay in each layer; without any, the block is its output bias.",
        json_schema_extra=PRUNING,
    )

    def given(self) -> dict[str, bool]:
        """See ``UnitPruningOptions``."""
        return {"sparsity": self.sparsity is not None, "neurons": self.neurons is not None} | super().given()
