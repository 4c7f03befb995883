"""What kind of encoder a model is, beside its family and its size."""

from encoder.config import EncoderConfig
from recipes.part import Part


class Variant(Part):
    """How an encoder's layers are built; the names and their values are those of ``EncoderConfig``."""

    norm: str
    residual: str
    residual_block_size: int | None = None
    position_embedding: str
    activation: str
    gated: bool = False


def describe_variant(config: EncoderConfig) -> Variant:
    """``config`` as a run.json describes it."""
    return Variant(**{name: getattr(config, name) for name in Variant.model_fields})
