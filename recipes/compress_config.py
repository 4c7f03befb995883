"""The options of `enc compress`, which makes its command line of them."""

from pydantic import Field

from recipes.fields import (
    COMPRESSING,
    MODEL_AND_DATA,
    TRAINING,
    Device,
    FineTunedModel,
    MaxDrop,
    ModelOutput,
    OverwriteModel,
    Resume,
    Seed,
    Threads,
    column_problems,
    output_problems,
)
from recipes.options import ReadingOptions


class CompressConfig(ReadingOptions):
    """All options of a compression."""

    model: FineTunedModel
    data: str = Field(
        min_length=1,
        description="Labelled texts, as for enc finetune: training rows to learn from, validation rows to "
        "choose by; test rows are only reported on, at the end.",
        json_schema_extra=MODEL_AND_DATA,
    )
    output: ModelOutput

    max_drop: MaxDrop = Field(
        default=1.0,
        description="The loss of validation score that is allowed, in points: 1 is 0.01 of accuracy.",
        json_schema_extra=COMPRESSING,
    )
    target_speedup: float | None = Field(
        default=None,
        gt=0,
        allow_inf_nan=False,
        description="How many times as fast it has to be as MODEL now is in torch in fp32: p50 of one row "
        "on this CPU, rows of the data in their own lengths.",
        json_schema_extra=COMPRESSING,
    )
    target_ms: float | None = Field(
        default=None,
        gt=0,
        allow_inf_nan=False,
        description="How many ms that p50 may be, instead of a speedup.",
        json_schema_extra=COMPRESSING,
    )
    max_candidates: int = Field(
        default=3,
        ge=0,
        description="Candidates that are trained at most, where none is good enough without; 0: none.",
        json_schema_extra=COMPRESSING,
    )
    rows: int = Field(
        default=1024,
        gt=0,
        description="Training rows to find importance on.",
        json_schema_extra=COMPRESSING,
    )

    num_epochs: int = Field(
        default=3,
        gt=0,
        description="How often a candidate that is trained sees every training row, with MODEL as its "
        "teacher; the best epoch by validation is kept.",
        json_schema_extra=TRAINING,
    )
    batch_size: int = Field(default=32, gt=0, description="Rows in a batch.", json_schema_extra=TRAINING)
    learning_rate: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="The highest learning rate; otherwise by the width of the model, as in enc finetune.",
        json_schema_extra=TRAINING,
    )
    seed: Seed = 0
    device: Device = "auto"
    threads: Threads = None
    overwrite: OverwriteModel = False
    resume: Resume = False

    def problems(self) -> list[str]:
        """See ``Options``."""
        problems = column_problems(self.text_column, self.text_pair_column, table=self.data)
        problems += output_problems(overwrite=self.overwrite, resume=self.resume)
        if self.target_speedup is None and self.target_ms is None:
            problems.append("nothing says how fast it has to be; give `target_speedup` or `target_ms`")
        if self.target_speedup is not None and self.target_ms is not None:
            problems.append(
                "`target_speedup` and `target_ms` both say how fast it has to be; give one of them"
            )
        if self.max_candidates == 0:
            problems += [
                f"`{name}` is for the training of candidates, and `max_candidates` is 0"
                for name in ("num_epochs", "batch_size", "learning_rate")
                if name in self.model_fields_set
            ]
        return problems
