"""Claims about the chart of the candidates of a search."""

import pytest

from commands.report_charts_search import draw_candidates
from recipes.compress_result import Goal
from recipes.report_parts import CandidatesPart
from tests.planted_times import make_candidate


@pytest.mark.parametrize("target", [{"target_speedup": 6.0}, {"target_ms": 25.0}])
def test_candidates_stand_on_the_clock_of_the_chosen_one_and_the_goal_does(target):
    """By the table the original takes 12 ms; in turns with the chosen one all took ten times as long."""
    chosen = make_candidate("two layers", 0.0, 20.0, predicted_ms=2.0, speedup=6.0, chosen=True)
    fewer = make_candidate("one layer", 5.0, 1.0, proven=False)
    more = make_candidate("three layers", 0.0, 3.0, proven=False)
    asked = {"target_speedup": None, "target_ms": None} | target
    part = CandidatesPart(
        name="c",
        metric="accuracy",
        candidates=(chosen, fewer, more),
        verdict=(),
        goal=Goal(max_drop=1.0, baseline_ms=12.0, limit_ms=target.get("target_ms", 2.0), **asked),
    )
    figure = draw_candidates(part)
    places = {trace["name"]: trace["x"] for trace in figure.data if trace["mode"] == "markers"}
    assert places["chosen"] == pytest.approx([20.0])
    assert places["predicted"] == pytest.approx([10.0, 30.0])
    limit = figure.layout["shapes"][0]["x0"]
    assert limit == pytest.approx(target.get("target_ms", 20.0))
