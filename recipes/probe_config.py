"""The options of probing: `enc probe` makes its command line of them."""

from typing import Literal

from pydantic import Field

from encoder.vector_choice import Pooling
from recipes.fields import (
    MEASURING,
    MODEL_AND_DATA,
    OUTPUT,
    Device,
    EncoderModel,
    Encoding,
    LabelVariants,
    Overwrite,
    RunOutput,
    Threads,
    ValidationFraction,
    column_problems,
)
from recipes.options import ColumnOptions


class ProbeConfig(ColumnOptions):
    """All options of probing the layers of an encoder."""

    model: EncoderModel
    data: str = Field(
        min_length=1,
        description="Texts with one label each, as for enc finetune.",
        json_schema_extra=MODEL_AND_DATA,
    )
    label_variants: LabelVariants = "refuse"
    encoding: Encoding = None
    validation_fraction: ValidationFraction = None
    pooling: Pooling = Field(
        default="mean",
        description="What a layer's vectors of a text become: their mean, the first one, or the largest "
        "numbers.",
        json_schema_extra=MEASURING,
    )
    prefix: str = Field(
        default="",
        description="Put this before every text, as some models want it: 'query: '.",
        json_schema_extra=MEASURING,
    )
    train_rows: int = Field(
        default=2000, ge=10, description="Training rows for the probes.", json_schema_extra=MEASURING
    )
    seeds: int = Field(
        default=3,
        ge=2,
        le=20,
        description="Times that each probe is fitted: on other rows, with other random weights and labels.",
        json_schema_extra=MEASURING,
    )
    max_length: int | None = Field(
        default=None,
        ge=4,
        description="Tokens after which a text is cut; otherwise as in the fine-tuning, or what the model "
        "can read.",
        json_schema_extra=OUTPUT,
    )
    precision: Literal["fp32", "bf16"] = Field(
        default="fp32", description="What matrix products are computed in.", json_schema_extra=OUTPUT
    )
    device: Device = "auto"
    threads: Threads = None
    output: RunOutput = None
    overwrite: Overwrite = False

    def problems(self) -> list[str]:
        """See ``Options``."""
        return column_problems(self.text_column, self.text_pair_column, table=self.data)
