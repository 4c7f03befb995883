"""From which number of frozen layers on a score suffers, judged so that noise is not taken for a bend.

The best of several means is too good by luck, and some of the others too bad: compared one by one, many a
flat curve would bend. The margin is therefore that of Tukey's range test (1949, "Comparing individual
means"), which of equals, however many, tells none apart in 19 of 20 sweeps.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from encoder.errors import EncError
from encoder.wording import counted
from recipes.freeze_wording import MOST_SEEDS, Words
from recipes.part import Part

LEVEL = 0.05
# The share of sweeps that a number of seeds, where one is advised, would decide.
POWER = 0.8
# A loss that may be noise is worth more seeds from one point of the score on.
WORTH_KNOWING = 0.01
# Losses that differ by less are equal: means of the same scores in another order do, by rounding.
ROUNDING = 1e-9
# How the losses of k, the number of frozen layers, are called.
Judgement = Literal["fine", "hurts", "undecided", "not defined"]


class Point(Part):
    """How k frozen layers score. ``scores`` by seed; ``spread`` their standard deviation, of two or more.

    ``loss`` is how much worse the mean is than that of the best k; ``low`` and ``high`` what it may be, all k
    considered together (``None`` for the best). It ``hurts`` where all of that interval is above what is
    allowed. ``sure``: the interval leaves no other judgement.
    """

    k: int
    scores: tuple[float | None, ...]
    mean: float | None
    spread: float | None
    loss: float | None
    low: float | None
    high: float | None
    judgement: Judgement
    sure: bool


class Verdict(Part):
    """``chosen`` is the largest k that is fine, ``hurts_from`` the first above it that hurts.

    ``undecided``: those between that may hurt or not. ``more_seeds`` would decide them, and with ``max_drop``
    whether ``chosen`` is within it, four times in five; ``None`` where nothing is open, or where over
    ``MOST_SEEDS`` would be needed.
    ``noise`` is the smallest loss that counts as more than noise. ``sentences`` say all of it.
    """

    best: int
    chosen: int
    hurts_from: int | None
    undecided: tuple[int, ...]
    more_seeds: int | None
    noise: float
    test: str
    sentences: tuple[str, ...]


def judge_sweep(
    scores: Mapping[int, Sequence[float]],
    *,
    rows: int,
    max_drop: float | None = None,
    sampling_errors: Callable[[int], Mapping[int, float]] | None = None,
    lower_is_better: bool = False,
) -> tuple[list[Point], Verdict]:
    """What ``scores`` say (k → its scores, one a seed and the same seeds for all): of each k, and in all.

    ``rows`` are those that were scored. ``max_drop``, in units of the score, is the mean loss that is
    allowed; without it a loss is fine that is no more than noise. More than is allowed hurts where the noise
    does not explain it, and is else undecided. With one seed ``sampling_errors``, called
    with the best k, gives the standard error of every other's difference from it, and that is the noise; with
    several it is the spread between seeds, pooled over all k (seeds as blocks).

    Raises:
        EncError: no k has a score that is defined.
    """
    tried = {k: np.array(scores[k], dtype=np.float64) for k in sorted(scores)}
    defined = {k: values for k, values in tried.items() if np.isfinite(values).all()}
    if not defined:
        raise EncError("the scores of all points are not defined; there is nothing to compare")
    means = {k: float(values.mean()) for k, values in defined.items()}
    sign = -1 if lower_is_better else 1
    top = max(sign * mean for mean in means.values())
    best = max(k for k in means if top - sign * means[k] <= ROUNDING)  # of equals the cheapest to train
    noise = _Noise(defined, best, rows, sampling_errors(best) if sampling_errors else {})
    points = []
    for k, values in tried.items():
        loss = _without_rounding(sign * (means[best] - means[k])) if k in means else None
        points.append(_judge_point(k, values, loss, None if k == best else noise.margin(k), max_drop))
    verdict = _decide(points, best, noise, max_drop)
    sample = f"{counted(rows, 'row')}" if noise.seeds == 1 else counted(noise.seeds, "seed")
    say = Words(points, verdict, max_drop, sample, in_points=not lower_is_better)
    return points, verdict.model_copy(update={"sentences": tuple(say.sentences())})


def _without_rounding(loss: float) -> float:
    return 0.0 if abs(loss) <= ROUNDING else loss


def _judge_point(
    k: int, scores: NDArray[np.float64], loss: float | None, margin: float | None, max_drop: float | None
) -> Point:
    """What is known of ``k``; no ``loss``: a score is not defined, no ``margin``: it is the best."""
    if loss is None:
        judgement: Judgement = "not defined"
        sure, margin = True, None
    else:
        judgement, sure = _judge(loss, margin or 0.0, max_drop)
    return Point(
        k=k,
        scores=tuple(None if math.isnan(value) else float(value) for value in scores),
        mean=None if loss is None else float(scores.mean()),
        spread=float(scores.std(ddof=1)) if loss is not None and len(scores) > 1 else None,
        loss=loss,
        low=None if margin is None or loss is None else loss - margin,
        high=None if margin is None or loss is None else loss + margin,
        judgement=judgement,
        sure=sure,
    )


def _judge(loss: float, margin: float, max_drop: float | None) -> tuple[Judgement, bool]:
    if loss - margin > (max_drop or 0.0) + ROUNDING:
        return "hurts", True
    if loss > (WORTH_KNOWING if max_drop is None else max_drop + ROUNDING):
        return "undecided", False
    return "fine", max_drop is None or loss + margin <= max_drop + ROUNDING


def _decide(points: Sequence[Point], best: int, noise: "_Noise", max_drop: float | None) -> Verdict:
    """The verdict on all ``points``, still without its sentences."""
    losses = {point.k: point.loss for point in points if point.loss is not None}
    judged = {point.k: point for point in points if point.loss is not None}
    chosen = max(k for k, point in judged.items() if point.judgement == "fine")
    above = [k for k in judged if k > chosen]
    hurts_from = next((k for k in above if judged[k].judgement == "hurts"), None)
    limit = hurts_from if hurts_from is not None else math.inf
    undecided = [k for k in above if judged[k].judgement == "undecided" and k < limit]
    open_ones = undecided if judged[chosen].sure else [chosen, *undecided]
    gaps = [abs(losses[k] - (max_drop or 0.0)) for k in open_ones]
    return Verdict(
        best=best,
        chosen=chosen,
        hurts_from=hurts_from,
        undecided=tuple(undecided),
        more_seeds=noise.seeds_to_see(min(gaps), open_ones[gaps.index(min(gaps))]) if gaps else None,
        noise=noise.smallest,
        test=noise.describe(),
        sentences=(),
    )


class _Noise:
    """What losses may be by chance alone."""

    def __init__(
        self,
        scores: Mapping[int, NDArray[np.float64]],
        best: int,
        rows: int,
        sampling_errors: Mapping[int, float],
    ) -> None:
        self.seeds = len(scores[best])
        self.num_points = len(scores)
        self.rows = rows
        self._compared = [k for k in scores if k != best]
        self._errors = {k: error for k, error in sampling_errors.items() if k in scores and k != best}
        if self.seeds > 1:
            table = np.stack(list(scores.values()))  # [points, seeds]
            residuals = table - table.mean(0) - table.mean(1, keepdims=True) + table.mean()
            self.spread = math.sqrt(float((residuals**2).sum()) / self._freedom(self.seeds))
            # Scores move by whole rows: seeds that agree to the row still leave what rounding hides.
            self.spread = max(self.spread, 1 / (rows * math.sqrt(12)))

    def _freedom(self, seeds: int) -> int:
        """Degrees of freedom of the pooled spread."""
        return max(1, self.num_points - 1) * (seeds - 1)

    def _factor(self, seeds: int) -> float:
        """The margin in standard errors of a difference."""
        if self.num_points == 1:
            return 0.0
        return _range_quantile(self.num_points, math.inf if seeds == 1 else self._freedom(seeds))

    def margin(self, k: int) -> float:
        """The loss of ``k`` above which it is more than noise."""
        error = self._errors.get(k, 0.0) if self.seeds == 1 else self.spread * math.sqrt(2 / self.seeds)
        return self._factor(self.seeds) * error

    @property
    def smallest(self) -> float:
        """The smallest ``margin`` there is."""
        return min((self.margin(k) for k in self._compared), default=0.0)

    def seeds_to_see(self, gap: float, k: int) -> int | None:
        """How many seeds more would show a difference ``gap`` of ``k``, with probability ``POWER``."""
        from scipy.stats import norm

        # With one seed the spread between seeds is not known; that of the rows is about as large.
        spread = self.spread if self.seeds > 1 else self._errors.get(k, 0.0) / math.sqrt(2)

        def decides(seeds: int) -> bool:
            return bool((self._factor(seeds) + norm.ppf(POWER)) * spread * math.sqrt(2 / seeds) <= gap)

        numbers = range(max(2, self.seeds + 1), self.seeds + MOST_SEEDS + 1)
        place = bisect_left(numbers, True, key=decides)
        return numbers[place] - self.seeds if place < len(numbers) else None

    def describe(self) -> str:
        """The test in words."""
        if self.num_points == 1:
            return "no test: there is one k only"
        margin = f"Tukey's margin at {LEVEL:.0%} for {self.num_points} k together"
        if self.seeds == 1:
            return (
                f"the sampling error of {self.rows:,} validation rows (bootstrap of the differences on the "
                f"same rows, {margin}); of one seed the spread between seeds is not known"
            )
        return (
            f"the means of {self.seeds} seeds, paired by seed, beside the spread between seeds pooled over "
            f"all k ({margin})"
        )


@lru_cache
def _range_quantile(means: int, freedom: float) -> float:
    """What the range of so many equal means exceeds with probability ``LEVEL``.

    In standard errors of a difference of two, which are √2 times those of a mean.
    """
    from scipy.stats import studentized_range

    return float(studentized_range.ppf(1 - LEVEL, means, freedom)) / math.sqrt(2)
