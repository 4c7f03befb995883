"""The verdict of a sweep over frozen layers in sentences."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from encoder.wording import counted

if TYPE_CHECKING:
    from recipes.freeze_verdict import Point, Verdict

# More seeds than these are not counted up to, nor advised.
MOST_SEEDS = 100


class Words:
    """A verdict in sentences. ``sample`` is what the noise comes from: so many rows, or seeds."""

    def __init__(
        self,
        points: Sequence["Point"],
        verdict: "Verdict",
        max_drop: float | None,
        sample: str,
        *,
        in_points: bool,
    ) -> None:
        self._verdict, self._max_drop, self._in_points = verdict, max_drop, in_points
        self._sample = sample
        self._points = {point.k: point for point in points}

    def sentences(self) -> list[str]:
        """What was found, what is not known, and by which test."""
        verdict = self._verdict
        if len(self._points) == 1:
            return [f"Only k = {verdict.chosen} was tried; there is nothing to compare it with."]
        lines = [self._chosen(), self._bend()]
        if verdict.undecided or not self._points[verdict.chosen].sure:
            lines.append(self._open())
        test = f"Judged by {verdict.test}."
        if self._max_drop is None and verdict.noise > 0:
            test += f" A loss below {self._amount(verdict.noise)} would not be told from noise."
        return [*lines, test]

    def _chosen(self) -> str:
        k = self._verdict.chosen
        if self._max_drop is not None:
            start = "The" if self._points[k].sure else "As measured, the"
            allowed = f"no more than {self._amount(self._max_drop)}"
            return f"{start} largest k that loses {allowed} is {k}: {self._loss(k)}."
        what = self._loss(k) if self._points[k].loss == 0 else f"{self._loss(k)}, which is within noise"
        if k == 0:
            return f"Nothing can be frozen without a loss, as far as can be seen: k = 0 is fine, {what}."
        return f"Up to k = {k} freezing costs nothing that can be seen: {what}."

    def _bend(self) -> str:
        verdict, last = self._verdict, max(self._points)
        first = verdict.hurts_from
        if first is not None:
            spared = [k for k, one in self._points.items() if k > first and one.judgement == "undecided"]
            if not spared:
                return f"From k = {first} on it hurts: {self._loss(first)}."
            names = _listed([str(k) for k in spared])
            return f"k = {first} hurts: {self._loss(first)}; of k = {names} above it that is not decided."
        if verdict.chosen < last:
            return "No k above it is shown to hurt."
        if dips := [str(k) for k, one in self._points.items() if one.judgement == "hurts"]:
            return f"Below it k = {_listed(dips)} hurt{'s' if len(dips) == 1 else ''}."
        return f"No k that was tried is shown to hurt, up to k = {last}."

    def _open(self) -> str:
        """What the noise leaves open, and how many seeds would decide it."""
        verdict, lines = self._verdict, []
        if verdict.undecided and self._max_drop is None:
            names = _listed([str(k) for k in verdict.undecided])
            lines.append(f"Not decided: k = {names}; what was lost may be noise. {self._losses()}.")
        elif verdict.undecided:
            lines.append(
                f"Not decided: {self._losses()} as measured, more than {self._limit}, but {self._sample} "
                "cannot tell that from a loss within it."
            )
        if not self._points[verdict.chosen].sure:
            asked = f"k = {verdict.chosen} may lose more than {self._limit}"
            lines.append(f"Not sure: {asked}, as far as {self._sample} can tell.")
        cause = f"a loss is too {'small beside the spread' if self._max_drop is None else 'near the limit'}"
        if verdict.more_seeds is None:
            lines.append(f"Over {MOST_SEEDS} more seeds would be needed to decide: {cause}.")
        else:
            lines.append(f"About {counted(verdict.more_seeds, 'more seed')} would decide.")
        return " ".join(lines)

    @property
    def _limit(self) -> str:
        return f"--max-drop {100 * (self._max_drop or 0.0):g}"

    def _losses(self) -> str:
        """``k = 3: it loses …`` of what is undecided, or from the least to the most."""
        several = self._verdict.undecided
        if len(several) == 1:
            return f"k = {several[0]}: {self._loss(several[0])}"
        losses = [self._points[k].loss or 0.0 for k in several]
        names = "They" if self._max_drop is None else f"k = {_listed([str(k) for k in several])}"
        return f"{names} lose {self._number(min(losses))} to {self._amount(max(losses))}"

    def _loss(self, k: int) -> str:
        """``it loses 1.2 points (0.4 to 2.0)``."""
        point = self._points[k]
        assert point.loss is not None
        if point.loss == 0:
            if equal := [
                f"k = {other}" for other, one in self._points.items() if other != k and one.loss == 0
            ]:
                return f"it ties with {_listed(equal)} for the best score"
            return "it scores best"
        if point.low is None or point.high is None:
            return f"it loses {self._amount(point.loss)}"
        low, high = (self._number(value) for value in (point.low, point.high))
        return f"it loses {self._amount(point.loss)} ({low} to {high})"

    def _number(self, value: float) -> str:
        return f"{100 * value:z.1f}" if self._in_points else f"{value:.3g}"

    def _amount(self, value: float) -> str:
        if not self._in_points:
            return self._number(value)
        return f"{self._number(value)} point{'' if self._number(value) == '1.0' else 's'}"


def _listed(names: Sequence[Any]) -> str:
    """``1, 2 and 3``."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
