"""The options of `enc run`, which makes its command line of them."""

from pathlib import Path

from pydantic import Field

from recipes.fields import MODEL_AND_DATA, OUTPUT, MaxDropOrNone
from recipes.options import Options


class RunConfig(Options):
    """All options of running a chain. What the steps do is said by the recipe."""

    recipe: str = Field(
        min_length=1,
        description="A file of steps (.toml), or the name of one that comes with enc: enc recipes list.",
        json_schema_extra=MODEL_AND_DATA | {"argument": "RECIPE"},
    )
    model: str | None = Field(
        default=None,
        min_length=1,
        description="The model to start from, instead of the recipe's: a folder, a built-in name, or a "
        "model hub name.",
        json_schema_extra=MODEL_AND_DATA | {"metavar": "MODEL"},
    )
    data: str | None = Field(
        default=None,
        min_length=1,
        description="The data of all steps, instead of the recipe's: a file, a folder of "
        "train/validation/test files, a data set hub name, or bbc-news.",
        json_schema_extra=MODEL_AND_DATA | {"metavar": "DATA"},
    )
    max_drop: MaxDropOrNone = Field(
        default=None,
        description="The loss of score against the first fine-tuned model that is allowed after any step, in "
        "points, instead of the recipe's: 1 is 0.01 of accuracy.",
        json_schema_extra=MODEL_AND_DATA,
    )
    output: Path | None = Field(
        default=None,
        description="The folder of all steps, a folder each; otherwise runs/ and the name of the recipe.",
        json_schema_extra=MODEL_AND_DATA | {"metavar": "DIR"},
    )
    set: tuple[str, ...] = Field(
        default=(),
        description="Set an option of a step (distill.layers=3), or one of the chain (seed=1); with nothing "
        "behind the sign it is as if not given. Can be given several times.",
        json_schema_extra=MODEL_AND_DATA | {"metavar": "STEP.OPTION=VALUE"},
    )
    dry_run: bool = Field(
        default=False,
        description="Show what each step would do, how big its model would be and how long it would take, "
        "and do nothing.",
        json_schema_extra=OUTPUT,
    )
    force: bool = Field(
        default=False,
        description="Do all steps anew, also those that were done before with the same options and inputs.",
        json_schema_extra=OUTPUT,
    )
