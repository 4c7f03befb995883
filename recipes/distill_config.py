"""The options of `enc distill`, which makes its command line of them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, get_args

from pydantic import Field

from recipes.fields import DISTILLING, MODEL_AND_DATA, OUTPUT, STUDENT
from recipes.training_options import TrainingOptions

LayerChoice = Literal["alternate", "first", "last", "top", "importance"]
Preset = Literal["auto", "logits", "hidden", "relations"]
LOSSES = ("soft", "hard", "hidden", "relations", "embeddings")
# How much each loss counts in a preset; what is not named does not. ``auto`` is what did best, or as well for
# less, in the trial of docs/distill.md.
PRESETS: Mapping[Preset, Mapping[str, float]] = {
    "auto": {"soft": 1.0, "hard": 0.5},
    "logits": {"soft": 1.0, "hard": 0.5},
    "hidden": {"soft": 1.0, "hard": 0.5, "hidden": 1.0, "embeddings": 1.0},
    "relations": {"soft": 1.0, "hard": 0.5, "relations": 1.0},
}


def _weight(what: str) -> float | None:
    made: float | None = Field(
        default=None,
        ge=0,
        allow_inf_nan=False,
        description=f"How much {what} count; otherwise as the preset has it.",
        json_schema_extra=DISTILLING,
    )
    return made


class DistillConfig(TrainingOptions):
    """All options of a distillation. ``model`` is the teacher."""

    model: str = Field(
        min_length=1,
        description="The teacher: a fine-tuned model's folder, or a model hub name.",
        json_schema_extra=MODEL_AND_DATA | {"argument": "TEACHER"},
    )
    unlabeled: Path | None = Field(
        default=None,
        description="Texts without labels (.txt with one a line, or a table): of them, too, the student "
        "learns the teacher's answers and, where the preset has them, hidden states or relations.",
        json_schema_extra=MODEL_AND_DATA | {"metavar": "FILE"},
    )

    layers: int | None = Field(
        default=None, ge=1, description="How many layers the student has.", json_schema_extra=STUDENT
    )
    init_layers: str = Field(
        default="alternate",
        min_length=1,
        description="The teacher's layers that it starts from: alternate (every second, third …, with the "
        "last), first, last (or top), importance, or numbers from 0, as 1,3,5.",
        json_schema_extra=STUDENT | {"metavar": "NAME|N,N"},
    )
    progressive: int = Field(
        default=1,
        ge=1,
        le=100,
        description="Drop the layers in this many steps, with a share of the epochs for each.",
        json_schema_extra=STUDENT,
    )
    student: str | None = Field(
        default=None,
        min_length=1,
        description="Another model as the student, with the teacher's tokenizer: a folder, or a hub name.",
        json_schema_extra=STUDENT | {"metavar": "MODEL"},
    )
    hidden_size: int | None = Field(
        default=None,
        ge=1,
        description="A student of this width, which starts from random numbers.",
        json_schema_extra=STUDENT,
    )
    intermediate_size: int | None = Field(
        default=None,
        ge=1,
        description="Its feed-forward width; otherwise 4 times its width.",
        json_schema_extra=STUDENT,
    )
    heads: int | None = Field(
        default=None,
        ge=1,
        description="Its attention heads; otherwise so many that they are as wide as the teacher's.",
        json_schema_extra=STUDENT,
    )

    preset: Preset = Field(
        default="auto",
        description="What is learnt: the teacher's answers (logits), its hidden states as well, or the "
        "relations between tokens in its last layer.",
        json_schema_extra=DISTILLING,
    )
    temperature: float = Field(
        default=2.0,
        gt=0,
        allow_inf_nan=False,
        description="What logits are divided by before answers are compared.",
        json_schema_extra=DISTILLING,
    )
    soft_weight: float | None = _weight("the teacher's answers")
    hard_weight: float | None = _weight("the labels")
    hidden_weight: float | None = _weight("the teacher's hidden states")
    relations_weight: float | None = _weight("its relations between tokens")
    embeddings_weight: float | None = _weight("its embeddings")
    hidden_loss: Literal["mse", "cosine"] = Field(
        default="mse", description="How hidden states are compared.", json_schema_extra=DISTILLING
    )
    relation_heads: int | None = Field(
        default=None,
        ge=1,
        description="How many parts queries, keys and values are cut into before tokens are related; "
        "otherwise parts of 16 numbers.",
        json_schema_extra=DISTILLING,
    )

    control: bool = Field(
        default=True,
        description="Train the same student on the labels alone as well, to show what the teacher was worth.",
        json_schema_extra=OUTPUT,
    )

    @property
    def weights(self) -> dict[str, float]:
        """How much each of ``LOSSES`` counts: what is given, otherwise the preset's."""
        preset = PRESETS[self.preset]
        given = {loss: getattr(self, f"{loss}_weight") for loss in LOSSES}
        return {loss: preset.get(loss, 0.0) if one is None else one for loss, one in given.items()}

    @property
    def named_layers(self) -> tuple[int, ...] | None:
        """The layers to start from, where they are given by number."""
        return None if self.init_layers in get_args(LayerChoice) else _numbers(self.init_layers)

    @property
    def thinner(self) -> bool:
        """Whether the student has sizes of its own."""
        return not (self.hidden_size is self.intermediate_size is self.heads is None)

    def problems(self) -> list[str]:
        """See ``TrainingOptions``."""
        return [*self._student_problems(), *self._loss_problems(), *super().problems()]

    def _student_problems(self) -> list[str]:
        by_number = self.init_layers not in get_args(LayerChoice)
        numbers = _numbers(self.init_layers) if by_number else None
        problems = []
        if by_number and numbers is None:
            names = ", ".join(get_args(LayerChoice))
            problems.append(
                f"`init_layers` is {self.init_layers!r}; expected one of {names}, or whole numbers from 0 "
                "up, rising, with commas between"
            )
        if numbers is not None and self.layers not in (None, len(numbers)):
            problems.append(f"`init_layers` names {len(numbers)} layers, `layers` is {self.layers}")
        sizes = ("hidden_size", "intermediate_size", "heads")
        if self.student is not None:
            own = {name: getattr(self, name) is not None for name in ("layers", *sizes)}
            own |= {
                "init_layers": "init_layers" in self.model_fields_set,
                "progressive": self.progressive > 1,
            }
            problems += [
                f"`{name}` has no say where `student` is a model of its own"
                for name, given in own.items()
                if given
            ]
        elif self.thinner:
            taken = {
                "init_layers": "init_layers" in self.model_fields_set,
                "progressive": self.progressive > 1,
            }
            problems += [
                f"`{name}` is for a student made of the teacher's layers; with sizes of its own it starts "
                "from random numbers"
                for name, given in taken.items()
                if given
            ]
        elif self.layers is None and not by_number:
            problems.append(
                "nothing says what the student is; give `layers`, `init_layers` (as 1,3,5), `student` or "
                "`hidden_size`"
            )
        if self.progressive > 1 and by_number:
            problems.append("`progressive` chooses the layers of each step; `init_layers` can only name how")
        if self.progressive > self.num_epochs:
            problems.append(
                f"`progressive` is {self.progressive}, and each step needs an epoch: `num_epochs` is "
                f"{self.num_epochs}"
            )
        return problems

    def _loss_problems(self) -> list[str]:
        weights, given = self.weights, self.model_fields_set
        problems = []
        if not any(weights.values()):
            problems.append("all weights are 0: there is nothing to learn")
        without = {
            "temperature": ("soft",),
            "hidden_loss": ("hidden", "embeddings"),
            "relation_heads": ("relations",),
        }
        for name, losses in without.items():
            if name in given and not any(weights[loss] for loss in losses):
                needed = " or ".join(f"`{loss}_weight`" for loss in losses)
                problems.append(f"`{name}` has no say without {needed}, which is 0")
        if self.unlabeled is not None and not any(weights[loss] for loss in LOSSES if loss != "hard"):
            problems.append("`unlabeled` texts teach nothing where only labels count")
        return problems


def _numbers(text: str) -> tuple[int, ...] | None:
    """``"1,3"`` → (1, 3); ``None`` unless they are whole numbers that rise."""
    words = [word.strip() for word in text.split(",")]
    if not all(word.isascii() and word.isdigit() for word in words):
        return None
    numbers = tuple(map(int, words))
    return numbers if list(numbers) == sorted(set(numbers)) else None
