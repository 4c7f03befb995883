"""The options of a prediction: `enc predict` makes its command line of them."""

from pathlib import Path

from pydantic import Field

from recipes.fields import (
    MODEL_AND_DATA,
    OUTPUT,
    Device,
    Encoding,
    FineTunedModel,
    TextColumn,
    TextPairColumn,
    Threads,
    column_problems,
)
from recipes.options import Options


class PredictConfig(Options):
    """All options of a prediction. Without ``texts`` and ``input``, texts come from stdin, a line each."""

    model: FineTunedModel
    texts: tuple[str, ...] = Field(
        default=(),
        description="Texts to label; with --pair, first and second texts in turn.",
        json_schema_extra=MODEL_AND_DATA | {"argument": "[TEXT]..."},
    )
    input: Path | None = Field(
        default=None,
        description="Texts to label: a .txt file with a text a line, or CSV, TSV, JSONL, Parquet.",
        json_schema_extra=MODEL_AND_DATA | {"metavar": "FILE"},
    )
    pair: bool = Field(
        default=False,
        description="Texts come in pairs; a line holds both with a tab between. "
        "Not needed where the model was fine-tuned on pairs.",
        json_schema_extra=MODEL_AND_DATA,
    )
    query: str | None = Field(
        default=None,
        min_length=1,
        description="Order the --candidates by how they go with this text, as the first of each pair.",
        json_schema_extra=MODEL_AND_DATA | {"metavar": "TEXT"},
    )
    candidates: Path | None = Field(
        default=None,
        description="The second texts of the --query: a .txt file with a text a line, or CSV, TSV, JSONL, "
        "Parquet.",
        json_schema_extra=MODEL_AND_DATA | {"metavar": "FILE"},
    )
    rank_by: str | None = Field(
        default=None,
        min_length=1,
        description="The label whose probability candidates are ordered by; otherwise the second of two.",
        json_schema_extra=OUTPUT | {"metavar": "LABEL"},
    )
    top: int | None = Field(
        default=None, gt=0, description="Give only so many of the candidates.", json_schema_extra=OUTPUT
    )
    text_column: TextColumn = None
    text_pair_column: TextPairColumn = None
    encoding: Encoding = None
    threshold: float | None = Field(
        default=None,
        ge=0,
        lt=1,
        description="With several labels a row, those of a higher probability are given; otherwise 0.5.",
        json_schema_extra=OUTPUT,
    )
    max_length: int | None = Field(
        default=None,
        ge=4,
        description="Tokens after which a text is cut; otherwise as in the fine-tuning.",
        json_schema_extra=OUTPUT,
    )
    device: Device = "auto"
    threads: Threads = None

    def problems(self) -> list[str]:
        """See ``Options``."""
        problems = []
        if self.texts and self.input is not None:
            problems.append(f"texts were given and `input` {self.input} too; give one of them")
        problems += self._query_problems()
        file = self.input or self.candidates
        table = None if file is None else str(file)
        problems += column_problems(self.text_column, self.text_pair_column, table=table)
        if self.texts and self.encoding is not None:
            problems.append(f"`encoding` is {self.encoding!r}, but there is no file")
        return problems

    def _query_problems(self) -> list[str]:
        if (self.query is None) != (self.candidates is None):
            given, missing = ("query", "candidates") if self.candidates is None else ("candidates", "query")
            return [f"`{given}` is given without `{missing}`; candidates are ordered for a query"]
        if self.query is None:
            names = [name for name in ("rank_by", "top") if getattr(self, name) is not None]
            return [f"`{name}` has no say without `query` and `candidates`" for name in names]
        others = [name for name in ("texts", "input") if getattr(self, name)]
        return [f"`query` and `{name}` exclude each other: candidates or texts?" for name in others]
