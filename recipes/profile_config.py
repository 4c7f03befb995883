"""The options of a profile: `enc profile` makes its command line of them."""

from typing import Literal

from pydantic import Field

from recipes.fields import (
    MEASURING,
    MODEL_AND_DATA,
    Encoding,
    FineTunedModel,
    MeasuredThreads,
    MinRuns,
    Overwrite,
    RunOutput,
    SequenceLengths,
    TextColumn,
    TextPairColumn,
    column_problems,
)
from recipes.options import Options


class ProfileConfig(Options):
    """All options of a profile. Sublayers can be told apart only where torch runs them one by one."""

    model: FineTunedModel
    data: str | None = Field(
        default=None,
        min_length=1,
        description="Profile these texts too, in their own lengths: a file, a folder of "
        "train/validation/test files, a data set hub name, or bbc-news. No labels are needed.",
        json_schema_extra=MODEL_AND_DATA,
    )
    text_column: TextColumn = None
    text_pair_column: TextPairColumn = None
    encoding: Encoding = None
    batch_size: int = Field(
        default=1, gt=0, description="Rows that are computed at once.", json_schema_extra=MEASURING
    )
    sequence_lengths: SequenceLengths = Field(
        default=(), description="Tokens of a row; otherwise doubled from 16 to 512, or to the model's limit."
    )
    runtime: Literal["torch-fp32", "torch-bf16"] = Field(
        default="torch-fp32", description="What to run the model in.", json_schema_extra=MEASURING
    )
    device: Literal["cpu", "cuda"] = Field(
        default="cpu", description="Where to measure.", json_schema_extra=MEASURING
    )
    threads: MeasuredThreads = None
    min_runs: MinRuns = 20
    min_seconds: float = Field(
        default=1.0,
        ge=0,
        le=3600,
        allow_inf_nan=False,
        description="Seconds that each length is run at least.",
        json_schema_extra=MEASURING,
    )
    output: RunOutput = None
    overwrite: Overwrite = False

    def problems(self) -> list[str]:
        """See ``Options``."""
        problems = column_problems(self.text_column, self.text_pair_column, table=self.data)
        if self.data is None and self.encoding is not None:
            problems.append(f"`encoding` is {self.encoding!r}, but there is no `data`")
        return problems
