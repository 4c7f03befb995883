"""The options of pretraining: `enc pretrain` makes its command line of them."""

from pydantic import Field

from recipes.fields import (
    MODEL_AND_DATA,
    READING,
    TRAINING,
    Encoding,
    ModelOutput,
    ResidualBlockSize,
    ResidualOption,
    TextColumn,
    column_problems,
    residual_problems,
)
from recipes.training_options import LoopOptions

TOKENIZER_KINDS = ("wordpiece", "unigram")
TOKENIZER_OPTIONS = ("tokenizer", "vocab_size", "lowercase")


class PretrainConfig(LoopOptions):
    """All options of a masked-language-model pretraining."""

    corpus: tuple[str, ...] = Field(
        min_length=1,
        description="Texts to learn from: a .txt file (a text a line), a folder of .txt files (a text each), "
        "a table with a text column, a data set hub name, or bbc-news; can be given several times.",
        json_schema_extra=MODEL_AND_DATA | {"metavar": "FILES"},
    )
    config: str | None = Field(
        default=None,
        min_length=1,
        description="The encoder to make: a TOML file, or tiny, mini, small, medium or base.",
        json_schema_extra=MODEL_AND_DATA | {"metavar": "FILE|NAME"},
    )
    model: str | None = Field(
        default=None,
        min_length=1,
        description="Instead of --config the encoder to train further, with its tokenizer.",
        json_schema_extra=MODEL_AND_DATA,
    )
    residual: ResidualOption = None
    residual_block_size: ResidualBlockSize = None
    output: ModelOutput

    tokenizer: str = Field(
        default="wordpiece",
        min_length=1,
        description="The kind of tokenizer to make of the corpus, wordpiece or unigram; or a model whose "
        "tokenizer to take.",
        json_schema_extra=READING | {"metavar": "KIND|MODEL"},
    )
    vocab_size: int = Field(
        default=8000,
        ge=32,
        description="Tokens it may have at most; 30,000 is usual for large corpora.",
        json_schema_extra=READING,
    )
    lowercase: bool = Field(
        default=True,
        description="Read texts in lower case and without accents.",
        json_schema_extra=READING,
    )
    text_column: TextColumn = None
    encoding: Encoding = None
    validation_fraction: float = Field(
        default=0.05,
        gt=0,
        lt=1,
        description="The share of the texts to hold out, where the corpus has no validation split.",
        json_schema_extra=READING,
    )

    num_epochs: int = Field(
        default=10, gt=0, description="How often every row is seen.", json_schema_extra=TRAINING
    )
    learning_rate: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="The highest learning rate; otherwise by the width of the model: 5e-4 for a hidden size "
        "of 256, 1.7e-4 for 768; to train a model further a fifth of that.",
        json_schema_extra=TRAINING,
    )
    mlm_probability: float = Field(
        default=0.15,
        gt=0,
        lt=1,
        description="The share of the tokens to guess.",
        json_schema_extra=TRAINING,
    )
    max_length: int = Field(
        default=128,
        ge=8,
        description="Tokens in a row; fewer where nothing is said and an encoder holds fewer.",
        json_schema_extra=TRAINING,
    )

    def problems(self) -> list[str]:
        """See ``Options``."""
        problems = super().problems() + residual_problems(self.residual, self.residual_block_size)
        if self.config is None and self.model is None:
            problems.append(
                "`config` or `model` is missing: an encoder to make (tiny, mini, small, medium, base, or a "
                "TOML file), or one to train further"
            )
        if self.config is not None and self.model is not None:
            problems.append("`config` makes an encoder and `model` trains one further; give one of them")
        if self.model is not None:
            given = [f"`{name}`" for name in TOKENIZER_OPTIONS if name in self.model_fields_set]
            problems += [f"{name} has no say with `model`, which has its tokenizer" for name in given]
        elif self.tokenizer not in TOKENIZER_KINDS:
            given = [f"`{name}`" for name in TOKENIZER_OPTIONS[1:] if name in self.model_fields_set]
            problems += [f"{name} has no say: `tokenizer` is that of {self.tokenizer}" for name in given]
        if len(self.corpus) == 1:
            problems += column_problems(self.text_column, None, table=self.corpus[0])
        return problems
