"""The options of looking at depth: `enc depth` makes its command line of them."""

from pydantic import Field

from compress.pipeline import Pipeline, parse_pipeline
from encoder.errors import ConfigError
from recipes.fields import (
    MEASURING,
    MODEL_AND_DATA,
    Device,
    Encoding,
    Overwrite,
    RunOutput,
    Threads,
)
from recipes.options import ColumnOptions


class DepthConfig(ColumnOptions):
    """All options of looking at what becomes of tokens and gradients with depth."""

    models: tuple[str, ...] = Field(
        default=(),
        description="Encoders, fine-tuned or not: folders, built-in names or hub names; or encoders to make, "
        "with random weights: TOML files, or tiny, mini, small, medium, base. Several are compared.",
        json_schema_extra=MODEL_AND_DATA | {"argument": "[MODEL|CONFIG]..."},
    )
    data: str | None = Field(
        default=None,
        min_length=1,
        description="Labelled texts, as for enc finetune: gradients are those of the classifier's loss.",
        json_schema_extra=MODEL_AND_DATA,
    )
    corpus: tuple[str, ...] = Field(
        default=(),
        description="Texts, as for enc pretrain: gradients are those of guessing hidden tokens. Without "
        "either, tokens are drawn at random.",
        json_schema_extra=MODEL_AND_DATA | {"metavar": "FILES"},
    )
    pipeline: str | None = Field(
        default=None,
        min_length=1,
        description="Count, on paper, what attention residuals in blocks send through a pipeline of devices: "
        "stages=4,interleave=2,microbatches=8 and, if wanted, blocks=4.",
        json_schema_extra=MODEL_AND_DATA | {"metavar": "stages=N,..."},
    )
    encoding: Encoding = None
    rows: int = Field(default=64, gt=0, description="Rows to look at.", json_schema_extra=MEASURING)
    max_length: int = Field(
        default=128,
        ge=8,
        description="Tokens in a row; fewer where nothing is said and an encoder holds fewer.",
        json_schema_extra=MEASURING,
    )
    seed: int = Field(
        default=0,
        ge=0,
        lt=2**32,
        description="Decides the rows, what is hidden of them, and random weights.",
        json_schema_extra=MEASURING,
    )
    device: Device = "auto"
    threads: Threads = None
    output: RunOutput = None
    overwrite: Overwrite = False

    def problems(self) -> list[str]:
        """See ``Options``."""
        problems = []
        if not self.models and self.pipeline is None:
            problems.append("`models` is missing: an encoder, a TOML file or a name; or give `pipeline`")
        if self.data is not None and self.corpus:
            problems.append("`data` has labels to learn and `corpus` has none; give one of them")
        if not self.models:
            given = {"data": self.data is not None, "corpus": bool(self.corpus)}
            problems += [
                f"`{name}` has no say without an encoder" for name, is_given in given.items() if is_given
            ]
        if self.data is None:
            columns = {"text_pair_column": self.text_pair_column, "label_column": self.label_column}
            problems += [
                f"`{name}` is {value!r}, but there is no `data`"
                for name, value in columns.items()
                if value is not None
            ]
        try:
            parse_pipeline(self.pipeline or "stages=2,microbatches=1")
        except ConfigError as error:
            problems += str(error).splitlines()
        return problems

    @property
    def parsed_pipeline(self) -> Pipeline | None:
        """What ``pipeline`` says."""
        return None if self.pipeline is None else parse_pipeline(self.pipeline)
