"""The options of an evaluation: `enc evaluate` makes its command line of them."""

from typing import Literal

from pydantic import Field

from recipes.fields import (
    MODEL_AND_DATA,
    OUTPUT,
    Device,
    FineTunedModel,
    Overwrite,
    RunOutput,
    Threads,
    column_problems,
)
from recipes.options import ReadingOptions


class EvaluateConfig(ReadingOptions):
    """All options of an evaluation."""

    model: FineTunedModel
    data: str = Field(
        min_length=1,
        description="What to score it on: a file, a folder of train/validation/test files, a data set "
        "hub name, or bbc-news, which is built in.",
        json_schema_extra=MODEL_AND_DATA,
    )
    split: Literal["train", "validation", "test"] | None = Field(
        default=None,
        description="The split to score; otherwise test, or validation where there is no test.",
        json_schema_extra=MODEL_AND_DATA,
    )
    against: str | None = Field(
        default=None,
        min_length=1,
        description="Another model to compare with on the same rows, or 'none'; otherwise the model it was "
        "made from, where that has the same labels and is still there.",
        json_schema_extra=MODEL_AND_DATA | {"metavar": "MODEL"},
    )
    max_length: int | None = Field(
        default=None,
        ge=4,
        description="Tokens after which a text is cut; otherwise as in the fine-tuning.",
        json_schema_extra=OUTPUT,
    )
    device: Device = "auto"
    threads: Threads = None
    output: RunOutput = None
    overwrite: Overwrite = False

    def problems(self) -> list[str]:
        """See ``Options``."""
        return column_problems(self.text_column, self.text_pair_column, table=self.data)
