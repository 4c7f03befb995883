"""Whether a goal is met, which model comes nearest to it, and what is to be said of that."""

import math
from collections.abc import Iterator, Sequence
from statistics import median

from compress.pareto import pareto_front
from encoder.wording import signed_points
from recipes.compress_result import Candidate, Goal
from recipes.pruning_search import ONE_POINT, points

ROUNDING = 1e-9


def keeps_score(candidate: Candidate, goal: Goal) -> bool:
    """Whether its loss of score is allowed."""
    return candidate.drop is not None and candidate.drop <= goal.max_drop * ONE_POINT + ROUNDING


def is_fast_enough(candidate: Candidate, goal: Goal) -> bool:
    """Whether it is as fast as asked for: as measured, otherwise by the table."""
    if goal.target_speedup is not None and candidate.speedup is not None:
        return candidate.speedup >= goal.target_speedup
    return latency_of(candidate) <= goal.limit_ms


def latency_of(candidate: Candidate) -> float:
    """The p50 as measured, otherwise as predicted, in ms; to compare candidates, see ``times_as_fast``."""
    return candidate.predicted_ms if candidate.latency_ms is None else candidate.latency_ms


def times_as_fast(candidates: Sequence[Candidate], goal: Goal) -> list[float]:
    """How many times as fast as the original each is: as measured in turns with it, otherwise by the table.

    Milliseconds of the table and of measurements are of different clocks: of shortest runs and of all, of one
    moment and of another. The ratio to the original is one for all. What the original would take by the
    clock of the table is what candidates say of which both are known.
    """
    known = [one.speedup * one.predicted_ms for one in candidates if one.speedup is not None]
    original_ms = median(known) if known else goal.baseline_ms
    return [original_ms / one.predicted_ms if one.speedup is None else one.speedup for one in candidates]


def meets(candidate: Candidate, goal: Goal) -> bool:
    """Whether it was exported and has shown all that is asked for."""
    good = keeps_score(candidate, goal) and is_fast_enough(candidate, goal)
    return candidate.proven and not candidate.failures and good


def choose(candidates: Sequence[Candidate], goal: Goal) -> int | None:
    """The place of the best one that was exported; ``None`` where none was, or none may be used.

    Of those that meet the goal the one that loses least, and of these the fastest. Otherwise the nearest: of
    those that keep the score the fastest; if none does, the one that loses least.
    """
    usable = [place for place, one in enumerate(candidates) if one.proven and not one.failures]
    if not usable:
        return None
    speeds = times_as_fast(candidates, goal)

    def loss(place: int) -> float:
        drop = candidates[place].drop
        return math.inf if drop is None else drop

    def time(place: int) -> float:
        return 1 / speeds[place]

    if good := [place for place in usable if meets(candidates[place], goal)]:
        return min(good, key=lambda place: (loss(place), time(place)))
    if kept := [place for place in usable if keeps_score(candidates[place], goal)]:
        return min(kept, key=time)
    return min(usable, key=lambda place: (loss(place), time(place)))


def mark(candidates: Sequence[Candidate], chosen: int | None, goal: Goal) -> tuple[Candidate, ...]:
    """``candidates`` with the chosen one and those that are worth having marked: no other loses as little and
    takes as little time."""
    front = pareto_front(
        [
            (math.inf if one.drop is None else one.drop, 1 / speed)
            for one, speed in zip(candidates, times_as_fast(candidates, goal), strict=True)
        ]
    )
    return tuple(
        one.model_copy(update={"pareto": worth, "chosen": place == chosen})
        for place, (one, worth) in enumerate(zip(candidates, front, strict=True))
    )


def why_missed(candidates: Sequence[Candidate], goal: Goal) -> str | None:
    """Which part of the goal is not met, and why; ``None`` where it is met."""
    if any(meets(one, goal) for one in candidates):
        return None
    speed, speeds = asked_speed(goal), times_as_fast(candidates, goal)
    fast = [one for one in candidates if is_fast_enough(one, goal)]
    if not fast and not any(one.predicted_ms <= goal.limit_ms for one in candidates):
        ratio, fastest = max(zip(speeds, candidates, strict=True), key=lambda pair: pair[0])
        return f"{speed} cannot be met: the fastest that is tried, {fastest.name}, {_takes(fastest, ratio)}"
    kept = [one for one in fast if keeps_score(one, goal)]
    if broken := next((one for one in kept if one.failures), None):
        return f"{broken.name} is fast enough, but its export must not be used: {broken.failures[0]}"
    slow = [one for one in candidates if one.predicted_ms <= goal.limit_ms and one not in fast]
    if slow and not kept:
        ratio, one = max(
            ((ratio, one) for ratio, one in zip(speeds, candidates, strict=True) if one in slow),
            key=lambda pair: pair[0],
        )
        said = f"the table said {one.predicted_ms:.2f} ms"
        return f"{speed} is not met: {one.name} {_takes(one, ratio)}; {said}"
    lost = [one for one in fast if one not in kept]
    if not lost:
        return f"{speed} and --max-drop {goal.max_drop:g} are not met together by what was exported"
    one = min(lost, key=lambda one: math.inf if one.drop is None else one.drop)
    return (
        f"--max-drop {goal.max_drop:g} is not met at that speed: of those fast enough the best, {one.name}, "
        f"{_loses(one)}"
    )


def describe_verdict(candidates: Sequence[Candidate], goal: Goal, failure: str | None) -> Iterator[str]:
    """The verdict in words; ``candidates`` are marked."""
    speeds = times_as_fast(candidates, goal)
    chosen = next((pair for pair in zip(candidates, speeds, strict=True) if pair[0].chosen), None)
    what = f"at most {points(goal.max_drop * ONE_POINT)} of validation score lost, {asked_speed(goal)}"
    met = "met" if failure is None else "not met"
    if chosen is not None and chosen[0].disturbed:
        met += ", as far as could be measured on a busy machine"
    yield f"Goal {met}: {what}."
    if chosen is not None:
        one, ratio = chosen
        name = "Chosen" if failure is None else "Nearest, and kept"
        yield f"{name}: {one.name}; it {_loses(one)} and {_takes(one, ratio)}."
        yield from _doubt(one, goal)
    if failure is not None:
        yield f"{failure[:1].upper()}{failure[1:]}."


def _doubt(one: Candidate, goal: Goal) -> Iterator[str]:
    """That a measurement leaves open whether ``one`` is as fast as asked for."""
    asked, low, high = goal.target_speedup, one.speedup_low, one.speedup_high
    if asked is None or low is None or high is None or one.speedup is None or not low <= asked <= high:
        return
    side = "at least" if one.speedup >= asked else "less than"
    yield (
        f"The interval of the speedup, {low:.1f}–{high:.1f}, includes the {asked:g} asked for: {side} that "
        "is the best estimate, and not certain."
    )


def asked_speed(goal: Goal) -> str:
    """``--target-speedup 6``."""
    if goal.target_speedup is not None:
        return f"--target-speedup {goal.target_speedup:g}"
    return f"--target-ms {goal.target_ms:g}"


def _takes(one: Candidate, ratio: float) -> str:
    """``ratio`` as of ``times_as_fast``."""
    how = "takes" if one.latency_ms is not None else "would take, by the table,"
    low, high = one.speedup_low, one.speedup_high
    bounds = "" if low is None or high is None else f" ({low:.1f}–{high:.1f})"
    noise = ", which may be noise" if low is not None and low <= 1 else ""
    noise += ", on a busy machine" if one.disturbed else ""
    return (
        f"{how} {latency_of(one):.2f} ms, {ratio:.1f} times{bounds} as fast as the original in torch{noise}"
    )


def _loses(one: Candidate) -> str:
    if one.drop is not None and one.drop <= 0:
        return f"loses nothing ({signed_points(-one.drop)} points on {one.rows:,} validation rows)"
    return f"loses {points(one.drop)} on {one.rows:,} validation rows"
