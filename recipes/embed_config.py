"""The options of embedding texts: `enc embed` makes its command line of them."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from encoder.vector_choice import FORMATS, Pooling, layers_problem
from recipes.fields import (
    MODEL_AND_DATA,
    OUTPUT,
    VECTORS,
    Device,
    EncoderModel,
    Encoding,
    Threads,
    column_problems,
)
from recipes.options import ColumnOptions

# What a comparison does not take: it tries them all, or makes no file.
NOT_COMPARED = ("input", "output", "pooling", "layers", "normalize", "resume", "overwrite")


class EmbedConfig(ColumnOptions):
    """All options of embedding: ``input`` and ``output``, or ``compare``."""

    model: EncoderModel
    input: Path | None = Field(
        default=None,
        description="Texts to embed: a .txt file with a text a line, or CSV, TSV, JSONL, Parquet.",
        json_schema_extra=MODEL_AND_DATA | {"metavar": "FILE"},
    )
    output: Path | None = Field(
        default=None,
        description="The file to make, .npy or .parquet. It appears only when it is complete.",
        json_schema_extra=MODEL_AND_DATA | {"metavar": "FILE"},
    )
    compare: str | None = Field(
        default=None,
        min_length=1,
        description="Instead: score all layers and poolings on these pairs of texts, whose label says how "
        "similar they are, and name the best.",
        json_schema_extra=MODEL_AND_DATA | {"metavar": "DATA"},
    )
    encoding: Encoding = None
    pooling: Pooling = Field(
        default="mean",
        description="What becomes of the tokens' vectors: their mean, the first one, or the largest numbers.",
        json_schema_extra=VECTORS,
    )
    layers: str = Field(
        default="-1",
        description="The layer to take: -1 is the last, 6 the sixth, 0 the embeddings; or the mean of "
        "several: -4: the last four, 1:4 the first three.",
        json_schema_extra=VECTORS | {"metavar": "LAYERS"},
    )
    normalize: bool = Field(
        default=True,
        description="Give every vector length 1, so that products are cosines.",
        json_schema_extra=VECTORS,
    )
    prefix: str = Field(
        default="",
        description="Put this before every text, as some models want it: 'query: '.",
        json_schema_extra=VECTORS,
    )
    max_length: int | None = Field(
        default=None,
        ge=4,
        description="Tokens after which a text is cut; otherwise as in the fine-tuning, or what the model "
        "can read.",
        json_schema_extra=OUTPUT,
    )
    runtime: Literal["torch-fp32", "torch-bf16", "onnx-fp32", "onnx-int8"] = Field(
        default="torch-fp32",
        description="What to compute in; the ONNX graph is made on the spot. An exported model runs as it "
        "is.",
        json_schema_extra=OUTPUT,
    )
    device: Device = "auto"
    threads: Threads = None
    overwrite: bool = Field(
        default=False, description="Replace the output file if it exists.", json_schema_extra=OUTPUT
    )
    resume: bool = Field(
        default=False, description="Go on where an interrupted run ended.", json_schema_extra=OUTPUT
    )

    def problems(self) -> list[str]:
        """See ``Options``."""
        problems = []
        if problem := layers_problem(self.layers):
            problems.append(f"`layers` {problem}")
        if self.compare is not None:
            problems += [
                f"`compare` and `{name}` exclude each other: all layers and poolings are compared, and no "
                "file is made"
                for name in NOT_COMPARED
                if name in self.model_fields_set
            ]
            if self.runtime.startswith("onnx"):
                problems.append(f"`runtime` is {self.runtime}; all layers at once are computed in torch only")
            problems += column_problems(self.text_column, self.text_pair_column, table=self.compare)
        else:
            problems += self._file_problems()
        return problems

    def _file_problems(self) -> list[str]:
        problems = []
        if self.input is None and self.output is None:
            problems.append("`input` and `output` are missing: the texts, and the file to make of them")
        elif self.input is None or self.output is None:
            missing = "input" if self.input is None else "output"
            problems.append(
                f"`{missing}` is missing: a file of {'texts' if self.input is None else 'vectors'}"
            )
        if self.output is not None and self.output.suffix.lower() not in FORMATS:
            problems.append(f"`output` is {str(self.output)!r}; expected a name in {' or '.join(FORMATS)}")
        problems += [
            f"`{name}` is of use only with `compare`: single texts are embedded"
            for name in ("text_pair_column", "label_column")
            if getattr(self, name) is not None
        ]
        return problems + column_problems(
            self.text_column, None, table=None if self.input is None else str(self.input)
        )
