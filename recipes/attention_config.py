"""The options of looking at attention: `enc attention` makes its command line of them."""

from pathlib import Path

from pydantic import Field

from recipes.fields import (
    MODEL_AND_DATA,
    OUTPUT,
    Device,
    EncoderModel,
    Threads,
    column_problems,
)
from recipes.options import ColumnOptions


class AttentionConfig(ColumnOptions):
    """All options of looking at the attention of one text; layers and heads are counted from 0."""

    model: EncoderModel
    text: str = Field(
        min_length=1,
        description="The text to look at.",
        json_schema_extra=MODEL_AND_DATA | {"argument": "TEXT"},
    )
    pair: str | None = Field(
        default=None,
        description="The second text, for a model of pairs.",
        json_schema_extra=MODEL_AND_DATA | {"metavar": "TEXT"},
    )
    output: Path | None = Field(
        default=None,
        description="The page to make, .html; otherwise attention.html, or none where a head is named.",
        json_schema_extra=MODEL_AND_DATA | {"metavar": "FILE"},
    )
    layer: int | None = Field(
        default=None,
        ge=0,
        description="Show this layer's --head in the terminal; layers are counted from 0.",
        json_schema_extra=MODEL_AND_DATA,
    )
    head: int | None = Field(
        default=None,
        ge=0,
        description="The head to show, by its number in the unpruned model.",
        json_schema_extra=MODEL_AND_DATA,
    )
    residual: bool = Field(
        default=False,
        description="Show what each sublayer takes of those before it, instead of heads: of a model with "
        "attention residuals.",
        json_schema_extra=MODEL_AND_DATA,
    )
    data: str | None = Field(
        default=None,
        min_length=1,
        description="Labelled texts to find each head's importance on, beside its effect on this text.",
        json_schema_extra=MODEL_AND_DATA,
    )
    rows: int = Field(
        default=256,
        gt=0,
        description="Training rows of --data to find it on.",
        json_schema_extra=MODEL_AND_DATA,
    )
    max_length: int | None = Field(
        default=None,
        ge=4,
        description="Tokens after which the text is cut; otherwise as in the fine-tuning.",
        json_schema_extra=OUTPUT,
    )
    device: Device = "auto"
    threads: Threads = None
    overwrite: bool = Field(
        default=False, description="Replace the page if it exists.", json_schema_extra=OUTPUT
    )

    @property
    def page(self) -> Path | None:
        """The page to make, if any."""
        if self.output is None and self.layer is None:
            return Path("attention.html")
        return self.output

    def problems(self) -> list[str]:
        """See ``Options``."""
        problems = []
        if (self.layer is None) != (self.head is None):
            given, missing = ("layer", "head") if self.head is None else ("head", "layer")
            problems.append(f"`{given}` is given without `{missing}`; a head is named by both")
        if self.output is not None and self.output.suffix.lower() not in (".html", ".htm"):
            problems.append(f"`output` is {str(self.output)!r}; expected a name in .html")
        if self.residual:
            of_heads = {"layer": self.layer, "head": self.head, "data": self.data}
            problems += [
                f"`{name}` is about heads, and `residual` about sublayers"
                for name, value in of_heads.items()
                if value is not None
            ]
        if self.data is None and "rows" in self.model_fields_set:
            problems.append("`rows` has no say without `data`")
        problems += column_problems(self.text_column, self.text_pair_column, table=self.data)
        if self.data is None and self.label_column is not None:
            problems.append(f"`label_column` is {self.label_column!r}, but there is no `data`")
        return problems
