"""The options of a latency measurement: `enc bench` makes its command line of them."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, PositiveInt

from recipes.fields import (
    MEASURING,
    MODEL_AND_DATA,
    Encoding,
    MeasuredThreads,
    MinRuns,
    Overwrite,
    RunOutput,
    SequenceLengths,
    TextColumn,
    TextPairColumn,
    column_problems,
    split_at_commas,
)
from recipes.options import Options

# Those of compress.runtimes, which is not imported for a command line; a test compares them.
RuntimeName = Literal["torch-fp32", "torch-bf16", "onnx-fp32", "onnx-int8"]


class BenchConfig(Options):
    """All options of a latency measurement."""

    models: tuple[str, ...] = Field(
        min_length=1,
        description="Fine-tuned models: folders, or model hub names. Several are compared with the first.",
        json_schema_extra=MODEL_AND_DATA | {"argument": "MODEL..."},
    )
    data: str | None = Field(
        default=None,
        min_length=1,
        description="Measure on these texts in their own lengths: a file, a folder of train/validation/test "
        "files, a data set hub name, or bbc-news. No labels are needed.",
        json_schema_extra=MODEL_AND_DATA,
    )
    text_column: TextColumn = None
    text_pair_column: TextPairColumn = None
    encoding: Encoding = None
    batch_sizes: Annotated[tuple[PositiveInt, ...], BeforeValidator(split_at_commas)] = Field(
        default=(1, 8),
        min_length=1,
        description="Rows that are computed at once.",
        json_schema_extra=MEASURING | {"metavar": "N,N", "commas": True},
    )
    sequence_lengths: SequenceLengths = Field(
        default=(),
        description="Tokens of a row, each with every batch size; otherwise 32 and 128, "
        "or, with --data, none.",
    )
    runtimes: Annotated[tuple[RuntimeName, ...], BeforeValidator(split_at_commas)] = Field(
        default=("torch-fp32", "onnx-fp32"),
        min_length=1,
        description="What to run the model in: torch-fp32, torch-bf16, onnx-fp32, onnx-int8.",
        json_schema_extra=MEASURING | {"metavar": "NAME,NAME", "commas": True},
    )
    device: Literal["cpu", "cuda", "all"] = Field(
        default="cpu", description="Where to measure.", json_schema_extra=MEASURING
    )
    threads: MeasuredThreads = None
    min_runs: MinRuns = 20
    min_seconds: float | None = Field(
        default=None,
        ge=0,
        le=3600,
        allow_inf_nan=False,
        description="Seconds that each case is run at least; otherwise 1, or 3 where models are compared.",
        json_schema_extra=MEASURING,
    )
    launches: int = Field(
        default=6,
        ge=2,
        description="Where models are compared: how often all processes are started anew. "
        "More make the intervals narrower.",
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
