"""The options of `enc export`, which makes its command line of them."""

from pathlib import Path
from typing import Literal

from pydantic import Field, PositiveInt

from recipes.fields import (
    EXPORT,
    MODEL_AND_DATA,
    OUTPUT,
    FineTunedModel,
    MaxDrop,
    MeasuredThreads,
    ModelOutput,
    OverwriteModel,
    column_problems,
)
from recipes.options import ReadingOptions

TOLERANCE = 1e-4
CALIBRATION_ROWS = 256


class ExportConfig(ReadingOptions):
    """All options of an export."""

    model: FineTunedModel
    data: str = Field(
        min_length=1,
        description="Labelled texts to prove the export on, as for enc evaluate: the test rows if there are "
        "any, otherwise the validation rows.",
        json_schema_extra=MODEL_AND_DATA,
    )
    output: ModelOutput
    format: Literal["onnx", "transformers"] = Field(
        default="onnx",
        description="A graph for ONNX Runtime with all it needs, or a standard folder that Transformers "
        "opens (what was removed is zeros there).",
        json_schema_extra=EXPORT,
    )
    precision: Literal["fp32", "fp16", "int8"] = Field(
        default="fp32",
        description="What matrix products are computed in: int8 on CPUs, fp16 on GPUs.",
        json_schema_extra=EXPORT,
    )
    graph: Literal["portable", "fused"] = Field(
        default="portable",
        description="Standard ONNX operators only, or those of ONNX Runtime where it has faster ones.",
        json_schema_extra=EXPORT,
    )
    opset: PositiveInt | None = Field(
        default=None,
        description="The version of the ONNX operators, 17 to 23; otherwise 17, which most runtimes read.",
        json_schema_extra=EXPORT | {"metavar": "N"},
    )
    calibration_rows: int = Field(
        default=CALIBRATION_ROWS,
        ge=0,
        description="int8: training rows that the ranges of activations are found on; 0: they are found anew "
        "for each batch, so that what else is in it changes a text's answer a little.",
        json_schema_extra=EXPORT | {"metavar": "N"},
    )
    quantize_embeddings: bool = Field(
        default=True,
        description="int8: the embedding tables too, which are most of a small model's bytes.",
        json_schema_extra=EXPORT,
    )
    any_cpu: bool = Field(
        default=False,
        description="int8: use 7 of the 8 bits of a weight, so that no CPU can overflow; otherwise only "
        "where this CPU could.",
        json_schema_extra=EXPORT,
    )
    prune_vocab: Path | None = Field(
        default=None,
        description="Keep only the pieces of the vocabulary that these texts need, and all single "
        "characters: a .txt file with a text a line, or CSV, TSV, JSONL, Parquet.",
        json_schema_extra=EXPORT | {"metavar": "FILE"},
    )
    tolerance: float = Field(
        default=TOLERANCE,
        gt=0,
        allow_inf_nan=False,
        description="In fp32, the difference of logits from torch's that is allowed.",
        json_schema_extra=EXPORT,
    )
    max_drop: MaxDrop = Field(
        default=0.5,
        description="The loss of score that is allowed, in points: 1 is 0.01 of accuracy. In int8 the layers "
        "that suffer most stay in float until it is kept; exit code 1 where it is not.",
        json_schema_extra=EXPORT,
    )

    threads: MeasuredThreads = None
    latency: bool = Field(
        default=True,
        description="Measure how much faster the result is, in turns with the model it is made of.",
        json_schema_extra=OUTPUT,
    )
    overwrite: OverwriteModel = False

    def problems(self) -> list[str]:
        """See ``Options``."""
        problems = column_problems(self.text_column, self.text_pair_column, table=self.data)
        of_a_graph = {
            "precision": self.precision != "fp32",
            "graph": self.graph != "portable",
            "opset": self.opset is not None,
        }
        of_int8 = {
            "calibration_rows": self.calibration_rows != CALIBRATION_ROWS,
            "quantize_embeddings": not self.quantize_embeddings,
            "any_cpu": self.any_cpu,
        }
        if self.format == "transformers":
            problems += [
                f"`{name}` is about an ONNX graph, and `format` transformers has none"
                for name, is_given in of_a_graph.items()
                if is_given
            ]
        if self.precision != "int8":
            problems += [
                f"`{name}` is about int8, and `precision` is {self.precision}"
                for name, is_given in of_int8.items()
                if is_given
            ]
        if not self.compares_logits and self.tolerance != TOLERANCE:
            why = "other pieces" if self.precision == "fp32" else f"rounding to {self.precision}"
            problems.append(
                f"`tolerance` is of no use: what {why} changes is judged by the score, `max_drop`"
            )
        return problems

    @property
    def compares_logits(self) -> bool:
        """Whether logits have to be those of before: neither rounded nor of texts in other pieces."""
        return self.precision == "fp32" and self.prune_vocab is None
