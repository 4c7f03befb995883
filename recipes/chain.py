"""A chain as data: what holds for all of it, and its steps in order, each the options of one command.

Nothing here reads a model or data. ``recipes.chain_reading`` makes a chain of a recipe.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field

from recipes.chain_steps import Made, StepKind
from recipes.fields import (
    MODEL_AND_DATA,
    OUTPUT,
    READING,
    MaxDropOrNone,
    Seed,
    Threads,
)
from recipes.options import Options, ReadingOptions

# How a recipe names the model of a step, or that which the chain starts from.
REFERENCE, START = "@", "start"
# Stands for a model or data that is missing and was told of once, so that it is not told again a step.
MISSING = "?"


class ChainOptions(ReadingOptions):
    """What a recipe says under ``[chain]``.

    What ``shared`` gives goes to each step that has an option of that name and does not set it itself.
    """

    description: str = Field(default="", description="What it does, in a sentence.", json_schema_extra=OUTPUT)
    model: str | None = Field(
        default=None,
        min_length=1,
        description="The model to start from: a folder, a built-in name, or a model hub name.",
        json_schema_extra=MODEL_AND_DATA,
    )
    data: str | None = Field(
        default=None,
        min_length=1,
        description="The data of all steps: a file, a folder, a data set hub name, or bbc-news.",
        json_schema_extra=MODEL_AND_DATA,
    )
    max_drop: MaxDropOrNone = Field(
        default=None,
        description="The loss of score against the first fine-tuned model that is allowed after any step, in "
        "points: 1 is 0.01 of accuracy. The chain ends where it is more.",
        json_schema_extra=MODEL_AND_DATA,
    )
    seed: Seed = 0
    threads: Threads = None
    latency: bool = Field(
        default=True,
        description="Measure after each step how fast its model is.",
        json_schema_extra=READING,
    )

    def shared(self) -> dict[str, Any]:
        """What is given here for all steps, by field name."""
        own = ("description", "model", "data", "max_drop")
        return {name: getattr(self, name) for name in self.model_fields_set if name not in own}


@dataclass(frozen=True)
class Step:
    """One command. Its models are the folder names of other steps, or the names of models from outside.

    ``options`` are complete but for where the chain is kept: ``placed`` says that. Of a recipe that is
    refused, those of a step that ``is_whole`` are right; of another step nothing is asked but what it makes.
    """

    number: int
    name: str
    command: str
    kind: StepKind
    options: Options
    models: tuple[str, ...]
    is_whole: bool = True

    @property
    def folder(self) -> str:
        """The name of its folder, as ``02-distill``."""
        return f"{self.number:02}-{self.name}"

    @property
    def title(self) -> str:
        """How it is called in sentences."""
        own = "" if self.name == self.command else f", enc {self.command}"
        return f"step {self.number} ({self.name}{own})"

    @property
    def makes(self) -> Made | None:
        """The model it leaves behind."""
        return self.kind.makes(self.options)

    def placed(self, root: Path, folders: Sequence[str], **more: Any) -> Options:
        """Its options with its output and the models of the steps in ``folders`` below ``root``."""

        def place(name: str) -> str:
            return str(root / name) if name in folders else name

        kind = self.kind
        models: Any = tuple(map(place, self.models))
        update = {"output": root / self.folder, **more}
        update[kind.model_field] = models if kind.model_field == "models" else models[0]
        for name in kind.other_models:
            if (value := getattr(self.options, name)) is not None:
                update[name] = place(value)
        return self.options.model_copy(update=update)


@dataclass(frozen=True)
class Chain:
    """A recipe that was read and understood. ``source`` is how it was called, ``name`` without its folder."""

    name: str
    source: str
    options: ChainOptions
    steps: tuple[Step, ...]

    @property
    def folders(self) -> tuple[str, ...]:
        """The folder names of all steps."""
        return tuple(step.folder for step in self.steps)

    def find(self, folder: str) -> Step | None:
        """The step of that folder name; ``None`` for a model from outside."""
        return next((step for step in self.steps if step.folder == folder), None)


def given_options(step: Step) -> Mapping[str, Any]:
    """What was set of a step's options, without what the chain decides."""
    decided = ("model", "models", "data", "output", "overwrite", "resume")
    names = [name for name in type(step.options).model_fields if name in step.options.model_fields_set]
    return {name: getattr(step.options, name) for name in names if name not in decided}
