"""Which pruned model a run makes: the one that is asked for, or the smallest that a score allows."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from encoder.metrics import LOWER_IS_BETTER, main_metric
from recipes.observer import Observer
from recipes.pruning_inputs import PruningInputs
from recipes.pruning_options import PruningOptions
from recipes.pruning_result import SearchTrial
from recipes.pruning_ways import Way

if TYPE_CHECKING:
    from compress.pruning import Pruned
    from encoder.model import Classifier

# The shares that a search tries to remove.
GRID = tuple(step / 20 for step in range(1, 20))
ONE_POINT = 0.01


@dataclass(frozen=True)
class Chosen:
    """The pruned model, what a search tried on the way to it, and why it is not what was asked for."""

    pruned: "Pruned"
    trials: tuple[SearchTrial, ...] = ()
    failure: str | None = None


@dataclass(frozen=True)
class Chooser:
    """Makes the pruned model of a run by ``way``."""

    options: PruningOptions
    inputs: PruningInputs
    way: Way
    observer: Observer

    def run(self) -> Chosen:
        """What is asked for; with ``max_drop``, as much of it as the validation score allows.

        Where the model is trained afterwards, a number that is asked for is not judged before.
        """
        wanted, limit = self.way.wanted, self.options.max_drop
        if wanted.kept is not None:
            return Chosen(self.way.take(wanted.kept))
        if wanted.keep is None:
            assert limit is not None
            return self._search(limit, [])
        made = self.way.choose(wanted.keep)
        if limit is None or self.options.recover_epochs:
            return Chosen(made)
        first = self._trial(wanted.keep, self._drop(made.model))
        if first.drop is not None and first.drop <= limit * ONE_POINT:
            return Chosen(made, (first,))
        return self._search(limit, [first])

    def _search(self, limit: float, trials: list[SearchTrial]) -> Chosen:
        from compress.pruning import prune_within

        wanted = self.way.wanted
        pruned, within, tried = prune_within(self.way.choose, self._drop, self._grid(), limit * ONE_POINT)
        trials += [self._trial(one.keep, one.drop) for one in tried]
        kept = sum(map(len, pruned.kept))
        drop = next(one.drop for one in trials if one.units == kept)
        failure = None
        if not within:
            failure = (
                f"--max-drop {limit:g} is not met: without {wanted.total - kept:,} of {wanted.total:,} "
                f"{wanted.unit} the validation score already falls by {points(drop)}; that model was kept"
            )
        elif wanted.keep is not None:
            failure = (
                f"--max-drop {limit:g} is not met: with {wanted.keep:,} {wanted.unit} the validation score "
                f"falls by {points(trials[0].drop)}; {kept:,} are kept, and it falls by {points(drop)}"
            )
        return Chosen(pruned, tuple(trials), failure)

    def _grid(self) -> list[int]:
        """Numbers of units to try, the most first: at even steps, and more than were asked for."""
        from compress.selection import count_kept

        wanted = self.way.wanted
        least = max(wanted.least, 1, 0 if wanted.keep is None else wanted.keep + 1)
        keeps = {count_kept(wanted.total, share) for share in GRID}
        fewer = [keep for keep in keeps if least <= keep < wanted.total]
        return sorted(fewer, reverse=True) or [max(least, wanted.total - 1)]

    def _drop(self, model: "Classifier") -> float:
        return drop_of(self.inputs, self.inputs.main_score(model, "validation", self.observer))

    def _trial(self, units: int, drop: float) -> SearchTrial:
        wanted = self.way.wanted
        known = drop if math.isfinite(drop) else None
        self.observer.note(
            f"{wanted.total - units:,} of {wanted.total:,} {wanted.unit} removed: the validation score falls "
            f"by {points(known)}."
        )
        return SearchTrial(units=units, sparsity=1 - units / wanted.total, drop=known)


def missed(options: PruningOptions, inputs: PruningInputs, after: dict[str, float | None]) -> str | None:
    """Why a model that was trained after its pruning breaks ``max_drop``, if it does."""
    if options.max_drop is None or not options.recover_epochs:
        return None
    drop = drop_of(inputs, after[main_metric(inputs.data.task)])
    if drop <= options.max_drop * ONE_POINT:
        return None
    return (
        f"--max-drop {options.max_drop:g} is not met: after the training the validation score is lower by "
        f"{points(drop)}; that model was kept"
    )


def drop_of(inputs: PruningInputs, after: float | None) -> float:
    """By how much the main validation score falls; infinite where it is not defined any more."""
    metric = main_metric(inputs.data.task)
    before = inputs.before["validation"].scores[metric]
    if before is None or after is None:
        return math.inf
    return after - before if metric in LOWER_IS_BETTER else before - after


def points(amount: float | None) -> str:
    """``1.20 points`` of 0.012."""
    return "so much that it is not defined" if amount is None else f"{amount * 100:z.2f} points"
