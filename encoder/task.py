"""What a classifier is asked for: the kind of task and the names of its labels."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, model_validator

TaskKind = Literal["single_label", "multi_label", "regression"]


def in_words(kind: TaskKind) -> str:
    """``single-label`` and so on: a kind as sentences spell it; options and files have it as it is."""
    return kind.replace("_", "-")


class Task(BaseModel):
    """The kind of task, its label names in the order of the logits, and whether the input is a pair.

    ``labels`` is empty for regression. The order is fixed once, at fine-tuning, and every later command
    matches data to it by name.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: TaskKind
    labels: tuple[str, ...] = ()
    pair: bool = False

    @model_validator(mode="after")
    def _labels_fit_kind(self) -> "Task":
        if self.kind == "regression" and self.labels:
            raise ValueError("a regression task has no labels")
        if self.kind == "single_label" and len(self.labels) < 2:
            raise ValueError(f"a single-label task needs at least 2 labels, got {list(self.labels)}")
        if self.kind == "multi_label" and not self.labels:
            raise ValueError("a multi-label task needs at least 1 label")
        if len(set(self.labels)) != len(self.labels):
            raise ValueError(f"label names repeat: {list(self.labels)}")
        return self

    @property
    def num_outputs(self) -> int:
        """C, the width of the logits."""
        return len(self.labels) or 1

    def has_labels_of(self, other: "Task") -> bool:
        """Whether ``other`` asks for the same, with its labels in whatever order; pairs or not."""
        return (self.kind, set(self.labels)) == (other.kind, set(other.labels))
