"""Which of several compromises are worth having."""

from collections.abc import Sequence


def pareto_front(costs: Sequence[tuple[float, ...]]) -> list[bool]:
    """For each of ``costs`` whether no other is as low in all respects and lower in one."""
    return [not any(_dominates(other, one) for other in costs) for one in costs]


def _dominates(other: tuple[float, ...], one: tuple[float, ...]) -> bool:
    pairs = list(zip(other, one, strict=True))
    return all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)
