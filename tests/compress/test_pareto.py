"""Claims about the Pareto set."""

import numpy as np

from compress.pareto import pareto_front


def test_no_member_is_dominated_and_every_other_is():
    random = np.random.default_rng(0)
    costs = [tuple(one) for one in random.integers(0, 8, (60, 2)).tolist()]
    front = pareto_front(costs)

    def dominates(a, b):
        return a != b and all(x <= y for x, y in zip(a, b, strict=True))

    for cost, is_member in zip(costs, front, strict=True):
        assert is_member != any(dominates(other, cost) for other in costs)
    assert any(front)


def test_equal_ones_are_both_members():
    assert pareto_front([(1.0, 2.0), (1.0, 2.0), (2.0, 3.0)]) == [True, True, False]
    assert pareto_front([]) == []
