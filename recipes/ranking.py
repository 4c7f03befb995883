"""Re-ranking: the candidates of a query, ordered by what a model of pairs makes of each with it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from encoder.errors import ConfigError, did_you_mean
from encoder.labels import list_labels
from encoder.task import Task
from recipes.prediction import Prediction


@dataclass(frozen=True)
class Ranking:
    """Order by the probability of label number ``output``, or by the value where it is ``None``."""

    output: int | None

    def score(self, one: Prediction) -> float:
        """The number that candidates are ordered by; more is better."""
        return (one.value or 0.0) if self.output is None else one.probabilities[self.output]


def choose_ranking(task: Task, label: str | None, model: str) -> Ranking:
    """By the value of a regression, by the probability of ``label``, or of the second of two labels.

    Raises:
        ConfigError: there is no such label, or more than two and none is named.
    """
    if task.kind == "regression":
        if label is not None:
            raise ConfigError(f"--rank-by {label!r}: {model} gives a value, and has no labels")
        return Ranking(None)
    listing = f"its labels are {list_labels(task.labels)}"
    if label is None:
        if task.kind == "multi_label" or len(task.labels) != 2:
            raise ConfigError(f"--rank-by is missing: by which label's probability? {model}: {listing}")
        return Ranking(1)
    if label not in task.labels:
        raise ConfigError(f"--rank-by {label!r}: {model}: {listing}{did_you_mean(label, task.labels)}")
    return Ranking(task.labels.index(label))


def rank(
    chunks: Iterable[Sequence[Prediction]], ranking: Ranking, top: int | None
) -> Iterator[list[Prediction]]:
    """All of ``chunks`` in one list, the best first and with its score, at most ``top`` of them.

    Of equal ones the earlier comes first.
    """
    scored = [replace(one, score=ranking.score(one)) for chunk in chunks for one in chunk]
    yield sorted(scored, key=lambda one: -ranking.score(one))[:top]
