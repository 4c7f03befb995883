"""Structured pruning: score the units, choose, remove, repair; in rounds, or as far as a score allows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from compress.importance import Method, OnDone, Scores, random_scores, score_units
from compress.removal import keep_units
from compress.repair import repair_
from compress.selection import Scope, select_units
from compress.units import Unit, unit_counts
from encoder.model import Classifier
from encoder.prediction import Precision
from encoder.rows import TokenizedRows


@dataclass(frozen=True)
class PruningPlan:
    """How units are chosen and what is done for those that stay.

    ``steps``: in so many rounds of about equal size, scored anew in each. ``min_per_layer``: units that stay
    in each layer. ``repair``: least squares after each removal.
    """

    unit: Unit
    method: Method = "fisher"
    scope: Scope = "global"
    normalize: bool = False
    min_per_layer: int = 0
    steps: int = 1
    repair: bool = True
    seed: int = 0


@dataclass(frozen=True)
class PruningRows:
    """Training rows that nothing is reported on: ``scoring`` with labels, for importance, and ``repair``."""

    scoring: TokenizedRows
    repair: TokenizedRows


@dataclass(frozen=True)
class Pruned:
    """A pruned classifier, ``kept`` being the places of its units among the original's, by layer.

    ``scores``: the importance of all units of the original, by layer, as the first round found it; ``None``
    where the user chose.
    """

    model: Classifier
    kept: list[list[int]]
    scores: Scores | None


@dataclass(frozen=True)
class Trial:
    """A number of units that stay, and by how much the score fell with so many."""

    keep: int
    drop: float


def prune(
    model: Classifier,
    rows: PruningRows,
    plan: PruningPlan,
    keep: int,
    *,
    scores: Scores | None = None,
    train_: Callable[[Classifier, int], object] | None = None,
    precision: Precision = "fp32",
    device: str = "cpu",
    on_done: OnDone = lambda done, total: None,
) -> Pruned:
    """A new classifier with ``keep`` units in all, chosen by ``plan``; ``model`` stays as it is.

    ``scores`` are those of ``model``, where they are known already; otherwise they are found in
    ``precision``. ``train_`` trains in place what a round left, between that round (counted from 1) and the
    next; later rounds then repair to what was trained.

    Raises:
        CompressionError: the plan demands more units than ``keep``.
    """
    counts = unit_counts(model.config, plan.unit)
    kept, made, first, goal = [list(range(count)) for count in counts], model, scores, model
    for step in range(1, plan.steps + 1):
        target = sum(counts) - round((sum(counts) - keep) * step / plan.steps)
        if scores is None or step > 1:
            scores = score_units(
                made,
                rows.scoring,
                plan.unit,
                plan.method,
                normalize=plan.normalize,
                seed=plan.seed,
                precision=precision,
                device=device,
                on_done=on_done,
            )
        first = first or scores
        chosen = select_units(scores, target, scope=plan.scope, min_per_layer=plan.min_per_layer)
        made = remove(made, goal, plan.unit, chosen, rows.repair if plan.repair else None, device=device)
        kept = [[layer[place] for place in places] for layer, places in zip(kept, chosen, strict=True)]
        if train_ is not None and step < plan.steps:
            train_(made, step)
            goal = made
    return Pruned(made, kept, first)


def remove(
    model: Classifier,
    original: Classifier,
    unit: Unit,
    kept: Sequence[Sequence[int]],
    rows: TokenizedRows | None,
    *,
    device: str = "cpu",
) -> Classifier:
    """``model`` with the units at the places ``kept``; with ``rows``, repaired to do as ``original`` does."""
    made = keep_units(model, unit, kept)
    if rows is not None and made.config != original.config:
        repair_([made], original, rows, device=device)
    return made


def prune_at_random(
    model: Classifier,
    rows: TokenizedRows | None,
    plan: PruningPlan,
    keep: int,
    seeds: Sequence[int],
    *,
    device: str = "cpu",
) -> list[Classifier]:
    """The control: classifiers with ``keep`` units by chance, one a seed, in ``plan``'s scope and minimum.

    With ``rows`` they are repaired as a chosen one is, together.
    """
    made = []
    for seed in seeds:
        scores = random_scores(model.config, plan.unit, seed)
        kept = select_units(scores, keep, scope=plan.scope, min_per_layer=plan.min_per_layer)
        made.append(keep_units(model, plan.unit, kept))
    if rows is not None:
        repair_(made, model, rows, device=device)
    return made


def prune_within(
    make: Callable[[int], Pruned],
    drop_of: Callable[[Classifier], float],
    keeps: Sequence[int],
    max_drop: float,
) -> tuple[Pruned, bool, list[Trial]]:
    """The pruned classifier with the fewest units whose drop is at most ``max_drop``, by bisection.

    ``make`` prunes to a number of units, ``drop_of`` says by how much a score fell, ``keeps`` are the numbers
    to try, the most units first; drops are taken to grow along them. Returned are the best one, whether it is
    within (otherwise it is the first of ``keeps``), and all trials in their order.
    """
    trials: list[Trial] = []
    best: Pruned | None = None
    low, high = 0, len(keeps)  # all before low are within, all from high on are not
    while low < high:
        place = (low + high) // 2
        made = make(keeps[place])
        trials.append(Trial(keeps[place], drop_of(made.model)))
        if trials[-1].drop <= max_drop:
            best, low = made, place + 1
        else:
            high = place
    return (made, False, trials) if best is None else (best, True, trials)
