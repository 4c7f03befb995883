"""The options of every command that trains, and of every one that trains a classifier on labelled texts.

Field names are the keys of a TOML file; with dashes they are the options of a command. Descriptions are the
help texts, ``panel`` the group an option is shown in.
"""

from typing import Literal

from pydantic import Field

from encoder.task import TaskKind
from recipes.fields import (
    MODEL_AND_DATA,
    OUTPUT,
    READING,
    TRAINING,
    Device,
    ModelOutput,
    OverwriteModel,
    ResidualBlockSize,
    ResidualOption,
    Resume,
    Seed,
    Threads,
    column_problems,
    output_problems,
    residual_problems,
)
from recipes.options import Options, ReadingOptions


class LoopOptions(Options):
    """All about training itself and where it is done, whatever is learnt."""

    num_epochs: int = Field(
        default=3, gt=0, description="How often every training row is seen.", json_schema_extra=TRAINING
    )
    batch_size: int = Field(default=32, gt=0, description="Rows in a batch.", json_schema_extra=TRAINING)
    accumulation_steps: int = Field(
        default=1,
        gt=0,
        description="Batches whose gradients are added up before a step.",
        json_schema_extra=TRAINING,
    )
    learning_rate: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="The highest learning rate, of the classifier; otherwise by the width of the model: "
        "2e-4 for a hidden size of 384, 1e-4 for 768.",
        json_schema_extra=TRAINING,
    )
    schedule: Literal["linear", "cosine", "constant"] = Field(
        default="linear",
        description="How the learning rate goes down after the warm-up.",
        json_schema_extra=TRAINING,
    )
    warmup_ratio: float = Field(
        default=0.1,
        ge=0,
        le=1,
        description="The share of all steps in which the learning rate goes up.",
        json_schema_extra=TRAINING,
    )
    weight_decay: float = Field(
        default=0.01, ge=0, description="AdamW's weight decay.", json_schema_extra=TRAINING
    )
    max_grad_norm: float = Field(
        default=1.0,
        gt=0,
        description="Gradients longer than this are shortened to it.",
        json_schema_extra=TRAINING,
    )
    early_stopping_patience: int | None = Field(
        default=None,
        gt=0,
        description="Stop after this many epochs without a better validation score.",
        json_schema_extra=TRAINING,
    )
    precision: Literal["auto", "fp32", "bf16"] = Field(
        default="auto",
        description="What matrix products are computed in; auto: bf16 where the machine has it.",
        json_schema_extra=TRAINING,
    )
    seed: Seed = 0
    device: Device = "auto"
    threads: Threads = None
    overwrite: OverwriteModel = False
    resume: Resume = False

    def problems(self) -> list[str]:
        """See ``Options``."""
        return output_problems(overwrite=self.overwrite, resume=self.resume)


class TrainingOptions(ReadingOptions, LoopOptions):
    """All about model, data, training and output. Paths are relative to the working directory.

    A config that extends it has options of its own, and says in ``problems`` what does not fit together.
    """

    model: str = Field(
        min_length=1,
        description="The encoder to start from: a folder, a model hub name, or minilm-l6, which is built in.",
        json_schema_extra=MODEL_AND_DATA,
    )
    data: str = Field(
        min_length=1,
        description="What to learn from: a CSV, TSV, JSONL or Parquet file, a folder of "
        "train/validation/test files, a data set hub name, or bbc-news, which is built in.",
        json_schema_extra=MODEL_AND_DATA,
    )
    output: ModelOutput

    task: TaskKind | None = Field(
        default=None,
        description="What to learn; otherwise inferred from the labels, and said.",
        json_schema_extra=READING,
    )
    train_rows: int | None = Field(
        default=None,
        gt=0,
        description="Train on this many rows only, chosen by their content, always the same.",
        json_schema_extra=READING,
    )

    layer_decay: float = Field(
        default=0.9,
        gt=0,
        le=1,
        description="Each layer learns at this multiple of the rate of the layer above it.",
        json_schema_extra=TRAINING,
    )
    label_smoothing: float = Field(
        default=0.0,
        ge=0,
        lt=1,
        description="The share of the target that is spread over all labels.",
        json_schema_extra=TRAINING,
    )
    class_weights: Literal["none", "balanced"] = Field(
        default="none",
        description="balanced: all rows of a rare class count as much as all of a frequent one.",
        json_schema_extra=TRAINING,
    )
    max_length: int | None = Field(
        default=None,
        ge=4,
        description="Tokens after which a text is cut; otherwise where the model ends.",
        json_schema_extra=TRAINING,
    )
    best_metric: str | None = Field(
        default=None,
        description="The validation score that decides which epoch is kept; otherwise the task's own.",
        json_schema_extra=TRAINING,
    )

    cache_memory_gb: float | None = Field(
        default=None,
        ge=0,
        allow_inf_nan=False,
        description="Memory for what is computed once and kept, in GB; more than that goes to disk. "
        "Otherwise a quarter of the free memory.",
        json_schema_extra=OUTPUT,
    )
    latency: bool = Field(
        default=True,
        description="Measure how long the finished model takes for one row and for 32.",
        json_schema_extra=OUTPUT,
    )

    def problems(self) -> list[str]:
        """What is wrong with the options together, a sentence each, field names in backticks."""
        problems = super().problems()
        if self.label_separator is not None and self.task not in (None, "multi_label"):
            problems.append(f"`label_separator` is for several labels a row, `task` is {self.task}")
        return problems + column_problems(self.text_column, self.text_pair_column, table=self.data)


class FreezingOptions(TrainingOptions):
    """Those of a command that can leave layers as they are, and read the stream in another way."""

    residual: ResidualOption = None
    residual_block_size: ResidualBlockSize = None
    cache_frozen: bool = Field(
        default=True,
        description="Compute what the frozen layers make of the rows once, not in every epoch.",
        json_schema_extra=OUTPUT,
    )

    def problems(self) -> list[str]:
        """See ``TrainingOptions``."""
        problems = super().problems()
        if self.cache_memory_gb is not None and not self.cache_frozen:
            problems.append("`cache_memory_gb` is for what `cache_frozen` keeps, which is switched off")
        return problems + residual_problems(self.residual, self.residual_block_size)
