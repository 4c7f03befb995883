"""What all commands' options have in common: they are checked together, and all problems told at once."""

from typing import Any

from pydantic import model_validator

from encoder.config import Strict
from recipes.fields import (
    Encoding,
    LabelColumn,
    LabelSeparator,
    LabelVariants,
    TextColumn,
    TextPairColumn,
    ValidationFraction,
)


class Options(Strict):
    """A config that a command makes its command line of. One that extends it says in ``problems`` what does
    not fit together."""

    @model_validator(mode="after")
    def _options_fit_together(self) -> "Options":
        if problems := self.problems():
            raise ValueError("\n".join(problems))
        return self

    def problems(self) -> list[str]:
        """What is wrong with the options together, a sentence each, field names in backticks."""
        return []


class ColumnOptions(Options):
    """Which columns of a table are read."""

    text_column: TextColumn = None
    text_pair_column: TextPairColumn = None
    label_column: LabelColumn = None


class ReadingOptions(ColumnOptions):
    """How labelled texts are read: the same options for all that learn from them, or score on them."""

    label_separator: LabelSeparator = None
    label_variants: LabelVariants = "refuse"
    encoding: Encoding = None
    validation_fraction: ValidationFraction = None

    @property
    def reading(self) -> dict[str, Any]:
        """These options by name, to be given to others."""
        return {name: getattr(self, name) for name in ReadingOptions.model_fields}
