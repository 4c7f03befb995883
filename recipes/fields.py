"""Options that several commands have, each described once; and the panels that `--help` groups options in."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PositiveInt

MODEL_AND_DATA: dict[str, Any] = {"panel": "Model and data"}
READING: dict[str, Any] = {"panel": "Reading the data"}
FREEZING: dict[str, Any] = {"panel": "Freezing"}
SWEEP: dict[str, Any] = {"panel": "Sweep"}
PRUNING: dict[str, Any] = {"panel": "Pruning"}
COMPRESSING: dict[str, Any] = {"panel": "The goal, and the search for it"}
STUDENT: dict[str, Any] = {"panel": "Student"}
DISTILLING: dict[str, Any] = {"panel": "What it learns from its teacher"}
EXPORT: dict[str, Any] = {"panel": "Export"}
VECTORS: dict[str, Any] = {"panel": "Vectors"}
TRAINING: dict[str, Any] = {"panel": "Training"}
MEASURING: dict[str, Any] = {"panel": "Measuring"}
OUTPUT: dict[str, Any] = {"panel": "Output and machine"}
# In the order in which `--help` shows them.
PANELS = tuple(
    panel["panel"]
    for panel in (
        *(MODEL_AND_DATA, COMPRESSING, EXPORT, READING, FREEZING, SWEEP, PRUNING, STUDENT, DISTILLING),
        *(TRAINING, MEASURING, VECTORS, OUTPUT),
    )
)
COLUMN = READING | {"metavar": "COLUMN"}


def split_at_commas(value: Any) -> Any:
    """``"1,8"`` → ``("1", "8")``, each item once; other values as they are."""
    if not isinstance(value, str):
        return value
    return tuple(dict.fromkeys(item.strip() for item in value.split(",") if item.strip()))


FineTunedModel = Annotated[
    str,
    Field(
        min_length=1,
        description="The fine-tuned model: a folder, or a model hub name.",
        json_schema_extra=MODEL_AND_DATA | {"argument": "MODEL"},
    ),
]
EncoderModel = Annotated[
    str,
    Field(
        min_length=1,
        description="An encoder, fine-tuned or not: a folder, a built-in name, or a model hub name.",
        json_schema_extra=MODEL_AND_DATA | {"argument": "MODEL"},
    ),
]
TextColumn = Annotated[
    str | None,
    Field(
        description="The column that holds the text; otherwise found by its name.", json_schema_extra=COLUMN
    ),
]
TextPairColumn = Annotated[
    str | None,
    Field(description="The column that holds the second text of a pair.", json_schema_extra=COLUMN),
]
LabelColumn = Annotated[
    str | None,
    Field(
        description="The column that holds the label; otherwise found by its name.", json_schema_extra=COLUMN
    ),
]
LabelSeparator = Annotated[
    str | None,
    Field(
        min_length=1,
        description="What stands between the labels of a row that has several, as ',' in 'joy,pride'.",
        json_schema_extra=READING,
    ),
]
LabelVariants = Annotated[
    Literal["refuse", "merge", "keep"],
    Field(
        description="What to do with labels that differ only in case or spacing, as 'Spam' and 'spam'.",
        json_schema_extra=READING,
    ),
]
Encoding = Annotated[
    str | None,
    Field(
        description="The text encoding of the files, when it is not UTF-8.",
        json_schema_extra=READING | {"metavar": "NAME"},
    ),
]
ValidationFraction = Annotated[
    float | None,
    Field(
        gt=0,
        lt=1,
        description="The share of the training rows to set aside when there is no validation split; "
        "otherwise as when the model was trained, or 0.1.",
        json_schema_extra=READING,
    ),
]
Device = Annotated[
    Literal["auto", "cpu", "cuda"],
    Field(description="Where to compute; auto: the GPU where there is one.", json_schema_extra=OUTPUT),
]
Threads = Annotated[
    int | None,
    Field(
        gt=0,
        description="CPU threads to compute with; otherwise torch's own choice.",
        json_schema_extra=OUTPUT,
    ),
]

SequenceLengths = Annotated[
    tuple[PositiveInt, ...],
    BeforeValidator(split_at_commas),
    Field(json_schema_extra=MEASURING | {"metavar": "N,N", "commas": True}),
]
MeasuredThreads = Annotated[
    int | None,
    Field(
        gt=0,
        description="CPU threads to measure with; otherwise one for each physical core.",
        json_schema_extra=MEASURING,
    ),
]
MinRuns = Annotated[
    int,
    Field(gt=0, description="Times that each case is run at least.", json_schema_extra=MEASURING),
]


def all_say(names: Sequence[str]) -> str:
    """``a and b both say``, ``a, b and c all say``."""
    return f"{', '.join(names[:-1])} and {names[-1]} {'both' if len(names) == 2 else 'all'} say"


def column_problems(text: str | None, text_pair: str | None, *, table: str | None) -> list[str]:
    """What is wrong with ``text_column`` and ``text_pair_column``; ``table`` is what they are columns of."""
    if text is not None and text == text_pair:
        return [f"`text_column` and `text_pair_column` are both {text!r}"]
    if table is not None and not table.lower().endswith(".txt"):
        return []
    why = "there is no table" if table is None else f"{table} is no table"
    columns = {"text_column": text, "text_pair_column": text_pair}
    return [f"`{name}` is {value!r}, but {why}" for name, value in columns.items() if value is not None]


RunOutput = Annotated[
    Path | None,
    Field(
        description="A folder to make, with run.json in it, so that enc runs lists this too; otherwise the "
        "result is only shown.",
        json_schema_extra=OUTPUT | {"metavar": "DIR"},
    ),
]
Overwrite = Annotated[
    bool,
    Field(description="Replace the folder of --output if it is there.", json_schema_extra=OUTPUT),
]

ModelOutput = Annotated[
    Path,
    Field(
        description="The folder to make. It appears only when the run is complete.",
        json_schema_extra=MODEL_AND_DATA,
    ),
]
OverwriteModel = Annotated[
    bool,
    Field(description="Replace the output folder if it exists.", json_schema_extra=OUTPUT),
]
Resume = Annotated[
    bool,
    Field(
        description="Continue a run of the same options that was interrupted.",
        json_schema_extra=OUTPUT,
    ),
]


ResidualOption = Annotated[
    Literal["attention", "block_attention"] | None,
    Field(
        description="Turn a pre-norm encoder (ModernBERT) into one with attention residuals, each sublayer "
        "by itself or in blocks; it starts as the same function.",
        json_schema_extra=MODEL_AND_DATA,
    ),
]
ResidualBlockSize = Annotated[
    int | None,
    Field(
        gt=0,
        description="Sublayers in a block of --residual block_attention; a layer has two.",
        json_schema_extra=MODEL_AND_DATA,
    ),
]


def residual_problems(residual: str | None, block_size: int | None) -> list[str]:
    """What is wrong with ``residual`` and ``residual_block_size`` together."""
    if residual == "block_attention" and block_size is None:
        return ["`residual` block_attention needs a `residual_block_size`"]
    if residual != "block_attention" and block_size is not None:
        return ["`residual_block_size` has no say without `residual` block_attention"]
    return []


def output_problems(*, overwrite: bool, resume: bool) -> list[str]:
    """What is wrong with ``overwrite`` and ``resume`` together."""
    if overwrite and resume:
        return ["`overwrite` starts again and `resume` continues; give one of them"]
    return []


# A loss of score that is allowed, in points, and the same where it may be left open.
# 100 points are all of a score.
MOST_POINTS = 100
LOSS = Field(ge=0, le=MOST_POINTS, allow_inf_nan=False)
MaxDrop = Annotated[float, LOSS]
MaxDropOrNone = Annotated[float | None, LOSS]

Seed = Annotated[
    int,
    Field(ge=0, lt=2**32, description="Decides everything that is random.", json_schema_extra=TRAINING),
]
