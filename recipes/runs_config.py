"""The options of the ledger: `enc runs` makes its command line of them."""

from pathlib import Path

from pydantic import Field

from encoder.config import Strict
from recipes.fields import MODEL_AND_DATA


class RunsConfig(Strict):
    """All options of the ledger."""

    folder: Path = Field(
        default=Path("runs"),
        description="Where to look for run.json, in all folders below.",
        json_schema_extra=MODEL_AND_DATA | {"argument": "[DIR]"},
    )
