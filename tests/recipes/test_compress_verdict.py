"""Claims about the verdict of a compression, on candidates made by hand."""

import pytest

from recipes.compress_result import Goal
from recipes.compress_verdict import choose, describe_verdict, mark, times_as_fast, why_missed
from tests.planted_times import make_candidate as candidate

GOAL = Goal(max_drop=1.0, target_speedup=4.0, target_ms=None, baseline_ms=12.0, limit_ms=3.0)


def names(candidates, chosen):
    return None if chosen is None else candidates[chosen].name


def test_of_those_that_meet_the_goal_the_one_that_loses_least_is_chosen_and_then_the_fastest():
    candidates = [
        candidate("fast, loses more", 0.9, 1.0),
        candidate("loses least", 0.2, 2.9),
        candidate("as little, faster", 0.2, 2.0),
        candidate("better, too slow", -0.5, 3.1),
        candidate("better, never exported", -1.0, 1.0, proven=False),
        candidate("better, must not be used", -1.0, 1.0, failures=("Logits differ",)),
    ]
    assert names(candidates, choose(candidates, GOAL)) == "as little, faster"
    assert why_missed(candidates, GOAL) is None


def test_a_loss_of_exactly_what_is_allowed_is_allowed():
    assert why_missed([candidate("at the limit", 1.0, 3.0)], GOAL) is None


def test_the_nearest_is_the_fastest_that_keeps_the_score():
    candidates = [
        candidate("fast enough", 3.0, 2.0),
        candidate("keeps the score", 0.0, 8.0),
        candidate("keeps it and is faster", 0.9, 5.0),
    ]
    assert names(candidates, choose(candidates, GOAL)) == "keeps it and is faster"
    candidates = [candidate("fast enough", 3.0, 2.0), candidate("loses less", 2.0, 5.0)]
    assert names(candidates, choose(candidates, GOAL)) == "loses less"
    assert choose([candidate("never exported", 0.0, 1.0, proven=False)], GOAL) is None


def test_the_part_that_cannot_be_met_is_named():
    slow = [candidate("all", 0.0, 8.0), candidate("a third", 5.0, 3.5, proven=False)]
    assert why_missed(slow, GOAL) == (
        "--target-speedup 4 cannot be met: the fastest that is tried, a third, would take, by the table, "
        "3.50 ms, 3.4 times as fast as the original in torch"
    )
    hurt = [candidate("all", 0.0, 8.0), candidate("small", 2.5, 2.0, proven=False), candidate("tiny", 9, 1.0)]
    assert why_missed(hurt, GOAL) == (
        "--max-drop 1 is not met at that speed: of those fast enough the best, small, loses 2.50 points on "
        "500 validation rows"
    )
    measured = [candidate("all", 0.0, 8.0), candidate("half", 0.5, 3.4, predicted_ms=2.8)]
    assert why_missed(measured, GOAL) == (
        "--target-speedup 4 is not met: half takes 3.40 ms, 3.5 times as fast as the original in torch; the "
        "table said 2.80 ms"
    )
    broken = [candidate("half", 0.5, 2.0, failures=("Logits differ",))]
    assert why_missed(broken, GOAL) == ("half is fast enough, but its export must not be used: Logits differ")


def test_a_goal_in_ms_is_judged_by_the_measured_ms():
    goal = GOAL.model_copy(update={"target_speedup": None, "target_ms": 3.0})
    assert why_missed([candidate("one", 0.0, 3.0, speedup=1.0)], goal) is None
    assert why_missed([candidate("one", 0.0, 3.01, predicted_ms=2.9)], goal).startswith(
        "--target-ms 3 is not met: one takes 3.01 ms"
    )


def test_the_verdict_is_in_words():
    candidates = mark([candidate("half", -0.4, 2.0), candidate("all", 0.0, 8.0, proven=False)], 0, GOAL)
    assert list(describe_verdict(candidates, GOAL, None)) == [
        "Goal met: at most 1.00 points of validation score lost, --target-speedup 4.",
        "Chosen: half; it loses nothing (+0.40 points on 500 validation rows) and takes 2.00 ms, 6.0 times "
        "as fast as the original in torch.",
    ]
    in_turns = {"speedup_low": 5.21, "speedup_high": 6.94}
    bounded = mark([candidate("half", 0.5, 2.0, **in_turns)], 0, GOAL)
    assert (
        "6.0 times (5.2–6.9) as fast as the original in torch."
        in list(describe_verdict(bounded, GOAL, None))[1]
    )
    noisy = mark([candidate("half", 0.5, 11.0, speedup_low=0.9, speedup_high=1.3)], 0, GOAL)
    assert list(describe_verdict(noisy, GOAL, None))[1].endswith(
        "takes 11.00 ms, 1.1 times (0.9–1.3) as fast as the original in torch, which may be noise."
    )
    lines = list(describe_verdict(candidates, GOAL, "--max-drop 1 is not met"))
    assert lines[0].startswith("Goal not met: ")
    assert lines[1].startswith("Nearest, and kept: half; ")
    assert lines[2] == "--max-drop 1 is not met."


def test_what_a_busy_machine_leaves_open_is_in_the_verdict():
    busy = mark([candidate("half", 0.0, 2.9, disturbed=True, speedup_low=3.1, speedup_high=5.2)], 0, GOAL)
    lines = list(describe_verdict(busy, GOAL, None))
    assert lines[0].startswith("Goal met, as far as could be measured on a busy machine: ")
    assert lines[1].endswith(
        "takes 2.90 ms, 4.1 times (3.1–5.2) as fast as the original in torch, on a busy machine."
    )
    assert lines[2] == (
        "The interval of the speedup, 3.1–5.2, includes the 4 asked for: at least that is the best estimate, "
        "and not certain."
    )
    slow = mark([candidate("half", 0.0, 3.1, speedup_low=3.1, speedup_high=5.2)], 0, GOAL)
    lines = list(describe_verdict(slow, GOAL, why_missed(slow, GOAL)))
    assert lines[0].startswith("Goal not met: ")
    assert "includes the 4 asked for: less than that is the best estimate" in lines[2]
    sure = mark([candidate("half", 0.0, 2.0, speedup_low=5.1, speedup_high=6.9)], 0, GOAL)
    assert len(list(describe_verdict(sure, GOAL, None))) == 2


def test_measured_and_predicted_candidates_are_compared_on_one_clock():
    """By the table the original takes 12 ms; in turns with it, on a slow day, all take ten times as long."""
    measured = candidate("two layers", 0.0, 20.0, predicted_ms=2.0, speedup=6.6)
    predicted = [candidate(f"{ms} ms", drop, ms, proven=False) for ms, drop in ((1.0, 5.0), (3.0, 0.0))]
    assert times_as_fast([measured, *predicted], GOAL) == pytest.approx([6.6, 13.2, 4.4])
    marked = mark([measured, *predicted], 0, GOAL)
    assert [one.pareto for one in marked] == [True, True, False]
    assert times_as_fast(predicted, GOAL) == pytest.approx([12.0, 4.0])


@pytest.mark.parametrize("chosen", [0, 2])
def test_no_member_of_the_pareto_set_is_dominated(chosen):
    candidates = mark(
        [
            candidate("a", 0.5, 2.0),
            candidate("b", 0.5, 3.0),
            candidate("c", 0.1, 5.0, proven=False),
            candidate("d", None, 1.5, proven=False),
        ],
        chosen,
        GOAL,
    )
    assert [one.name for one in candidates if one.pareto] == ["a", "c", "d"]
    assert [one.name for one in candidates if one.chosen] == [candidates[chosen].name]
