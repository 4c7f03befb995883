"""The options of every command that takes something out of a fine-tuned model."""

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from recipes.fields import (
    MODEL_AND_DATA,
    OUTPUT,
    PRUNING,
    TRAINING,
    Device,
    FineTunedModel,
    MaxDropOrNone,
    ModelOutput,
    OverwriteModel,
    Resume,
    Seed,
    Threads,
    all_say,
    column_problems,
    output_problems,
)
from recipes.options import ReadingOptions

# What importance is found on, and how units are chosen by it.
SCORING = ("rows", "targets")
CHOOSING = ("method", "scope", "normalize", "steps", "max_drop", *SCORING)


class PruningOptions(ReadingOptions):
    """Model, data, output, and what is common to heads, neurons and layers.

    A config that extends it says in ``problems`` what does not fit together.
    """

    model: FineTunedModel
    data: str = Field(
        min_length=1,
        description="Labelled texts, as for enc finetune: importance is found on training rows, scores are "
        "reported on the test and validation rows.",
        json_schema_extra=MODEL_AND_DATA,
    )
    output: ModelOutput

    max_drop: MaxDropOrNone = Field(
        default=None,
        description="The loss of validation score that is allowed, in points: 1 is 0.01 of accuracy. As much "
        "goes as stays within it; together with a number, exit code 1 says that the number was too many.",
        json_schema_extra=PRUNING,
    )
    rows: int = Field(
        default=1024,
        gt=0,
        description="Training rows to find importance on.",
        json_schema_extra=PRUNING,
    )
    targets: Literal["labels", "model"] = Field(
        default="labels",
        description="What the loss is against: the labels, or answers drawn from what the model itself holds "
        "probable.",
        json_schema_extra=PRUNING,
    )

    recover_epochs: int = Field(
        default=0,
        ge=0,
        description="Train what is left for this many epochs; the best by validation is kept.",
        json_schema_extra=TRAINING,
    )
    recover_teacher: bool = Field(
        default=False,
        description="Let the model before the pruning be the teacher of that training: what it answers to "
        "each row is learnt beside the label.",
        json_schema_extra=TRAINING,
    )
    temperature: float = Field(
        default=2.0,
        gt=0,
        allow_inf_nan=False,
        description="What logits are divided by before answers are compared with the teacher's.",
        json_schema_extra=TRAINING,
    )
    learning_rate: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="The highest learning rate of that training; otherwise by the width of the model, as in "
        "enc finetune.",
        json_schema_extra=TRAINING,
    )
    batch_size: int = Field(
        default=32, gt=0, description="Rows in a batch of that training.", json_schema_extra=TRAINING
    )
    seed: Seed = 0

    device: Device = "auto"
    threads: Threads = None
    latency: bool = Field(
        default=True,
        description="Measure how much faster the result is, in turns with the model it is made of.",
        json_schema_extra=OUTPUT,
    )
    overwrite: OverwriteModel = False
    resume: Resume = False

    def problems(self) -> list[str]:
        """What is wrong with the options together, a sentence each, field names in backticks."""
        problems = column_problems(self.text_column, self.text_pair_column, table=self.data)
        problems += output_problems(overwrite=self.overwrite, resume=self.resume)
        if self.recover_epochs == 0:
            problems += [
                f"`{name}` is for the training that `recover_epochs` asks for, which is 0"
                for name in ("recover_teacher", "learning_rate", "batch_size")
                if self._is_given(name)
            ]
        if not self.recover_teacher:
            problems += self.without_effect(("temperature",), "without `recover_teacher`")
        return problems

    def without_effect(self, names: Sequence[str], where: str) -> list[str]:
        """A problem for each of the options ``names`` that is given though it has no say ``where``."""
        return [f"`{name}` has no say {where}" for name in names if self._is_given(name)]

    def _is_given(self, name: str) -> bool:
        return name in self.model_fields_set and getattr(self, name) not in (None, False)


class UnitPruningOptions(PruningOptions):
    """What is common to heads and neurons. ``number`` is how many are to stay, under its own name."""

    sparsity: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="The share to remove of what the model has now.",
        json_schema_extra=PRUNING,
    )
    keep: str | None = Field(
        default=None,
        min_length=1,
        description="What stays, layer by layer: '0:1,3;1:0-5;2:' keeps all of the layers it does not name.",
        json_schema_extra=PRUNING | {"metavar": "SPEC"},
    )
    method: Literal["fisher", "gradient", "ablation", "magnitude", "random"] = Field(
        default="fisher",
        description="How importance is found.",
        json_schema_extra=PRUNING,
    )
    scope: Literal["global", "layer"] = Field(
        default="global",
        description="Compare all layers with each other, or remove the same share of each.",
        json_schema_extra=PRUNING,
    )
    normalize: bool = Field(
        default=False,
        description="Divide importances by their norm in each layer before layers are compared.",
        json_schema_extra=PRUNING,
    )
    steps: int = Field(
        default=1,
        ge=1,
        le=100,
        description="Remove in this many rounds, and find importance anew in each.",
        json_schema_extra=PRUNING,
    )
    recover_each_step: bool = Field(
        default=False,
        description="Train so after each of the steps, not only after the last.",
        json_schema_extra=TRAINING,
    )
    repair: bool = Field(
        default=True,
        description="Let the output weights of what stays make up for what went, by least squares.",
        json_schema_extra=PRUNING,
    )
    repair_rows: int = Field(
        default=512, gt=0, description="Training rows to do that on.", json_schema_extra=PRUNING
    )

    def given(self) -> dict[str, bool]:
        """Which of the options that say how many stay are given, by field name."""
        return {"sparsity": self.sparsity is not None, "keep": self.keep is not None}

    def problems(self) -> list[str]:
        """See ``PruningOptions``."""
        ways = self.given()
        given = [f"`{name}`" for name, is_given in ways.items() if is_given]
        problems = []
        if len(given) > 1:
            problems.append(f"{all_say(given)} what stays; give one of them")
        if not given and self.max_drop is None:
            names = ", ".join(f"`{name}`" for name in ways)
            problems.append(f"nothing says how much to remove; give one of {names}, or `max_drop`")
        if self.keep is not None:
            problems += self.without_effect(CHOOSING, "where `keep` names what stays")
        elif self.method in ("magnitude", "random"):
            problems += self.without_effect(SCORING, f"where `method` is {self.method}: it looks at no row")
        if self.recover_each_step:
            problems += self._why_not_each_step()
        if self.normalize and self.scope == "layer":
            problems.append("`normalize` changes nothing where `scope` is layer: no layers are compared")
        if not self.repair and "repair_rows" in self.model_fields_set:
            problems.append("`repair_rows` is for `repair`, which is switched off")
        return problems + super().problems()

    def _why_not_each_step(self) -> list[str]:
        """What stands in the way of training between steps."""
        problems = []
        if self.steps == 1:
            problems.append("`recover_each_step` is for more than one of `steps`")
        if self.recover_epochs == 0:
            problems.append("`recover_each_step` needs `recover_epochs`, which is 0")
        if self.max_drop is not None and not any(self.given().values()):
            problems.append(
                "`recover_each_step` would train every number that `max_drop` tries; say how many stay"
            )
        return problems
