"""The chart of a report on what a search for the best compression tried."""

from typing import Any

from commands.report_charts import front_line
from commands.report_figure import COLOURS, Figure, axis, cost_axis, hover, make_figure
from commands.tables import size
from encoder.metrics import METRIC_TITLES
from recipes.compress_result import Candidate
from recipes.compress_verdict import times_as_fast
from recipes.report_parts import CandidatesPart


def draw_candidates(part: CandidatesPart) -> Figure | None:
    """What a search looked at: score against latency, with the goal, the front and the choice."""
    points = [(one, one.score) for one in part.candidates if one.score is not None]
    if len(points) < 2:
        return None
    original_ms, costs = _candidate_costs(part)
    limit = part.goal.limit_ms if part.goal.target_speedup is None else original_ms / part.goal.target_speedup
    front = sorted((costs[id(one)], score) for one, score in points if one.pareto)
    data = [front_line([cost for cost, _ in front], [score for _, score in front])]
    for name, colour, symbol, wide in (
        ("predicted", COLOURS[4], "circle-open", 8),
        ("measured", COLOURS[0], "circle", 9),
        ("chosen", COLOURS[1], "diamond", 15),
    ):
        members = [(one, score) for one, score in points if _stage(one) == name]
        if members:
            data.append(
                {
                    "type": "scatter",
                    "mode": "markers",
                    "name": name,
                    "x": [costs[id(one)] for one, _ in members],
                    "y": [score for _, score in members],
                    "marker": {"size": wide, "color": colour, "symbol": symbol, "opacity": 0.9},
                    "hoverinfo": "text",
                    "hovertext": [_tell_candidate(one) for one, _ in members],
                }
            )
    return make_figure(
        f"Score against latency of {len(points)} candidates",
        data,
        x=cost_axis("p50 latency, ms (batch 1)", [*costs.values(), limit]),
        y=axis(f"validation {METRIC_TITLES.get(part.metric, part.metric)}", tickformat=".2f"),
        height=400,
        legend=True,
        **_goal(part, limit),
    )


def _candidate_costs(part: CandidatesPart) -> tuple[float, dict[int, float]]:
    """What the original takes in ms, and what each candidate does, by ``id``, all on one clock.

    It is that of the chosen one, which therefore stands at its measured p50, and the others by their ratio.
    """
    speeds = times_as_fast(part.candidates, part.goal)
    original_ms = next(
        (
            one.latency_ms * speed
            for one, speed in zip(part.candidates, speeds, strict=True)
            if one.chosen and one.latency_ms is not None
        ),
        part.goal.baseline_ms,
    )
    costs = {id(one): original_ms / speed for one, speed in zip(part.candidates, speeds, strict=True)}
    return original_ms, costs


def _goal(part: CandidatesPart, limit: float) -> dict[str, Any]:
    """The corner of the chart in which the goal is met, ``limit`` being the ms of it."""
    original = next(
        (one.score + one.drop for one in part.candidates if one.score is not None and one.drop is not None),
        None,
    )
    if original is None:
        return {}
    low = original - part.goal.max_drop / 100
    line = {"type": "line", "line": {"color": COLOURS[2], "width": 1.2, "dash": "dash"}, "layer": "below"}
    return {
        "shapes": [
            line | {"xref": "x", "yref": "paper", "x0": limit, "x1": limit, "y0": 0, "y1": 1},
            line | {"xref": "paper", "yref": "y", "x0": 0, "x1": 1, "y0": low, "y1": low},
        ],
        "annotations": [
            {
                "xref": "paper",
                "x": 0.005,
                "y": low,
                "yref": "y",
                "text": "goal: above and to the left",
                "showarrow": False,
                "xanchor": "left",
                "yanchor": "bottom",
                "font": {"color": COLOURS[2], "size": 12},
            }
        ],
    }


def _stage(one: Candidate) -> str:
    return "chosen" if one.chosen else "predicted" if one.latency_ms is None else "measured"


def _tell_candidate(one: Candidate) -> str:
    return hover(
        one.name,
        f"{one.layers} layers, {one.heads:,} heads, {one.neurons:,} neurons, {one.precision}",
        f"score {one.score:.4f}" if one.score is not None else "",
        f"loses {100 * one.drop:z.1f} points" if one.drop is not None else "",
        f"p50 {one.latency_ms:.2f} ms" if one.latency_ms is not None else "",
        f"{one.speedup:.1f}× as fast as the original" if one.speedup is not None else "",
        f"by the table {one.predicted_ms:.2f} ms",
        "measured on a busy machine" if one.disturbed else "",
        size(one.size_bytes),
        "trained" if one.trained else "",
        "on the front" if one.pareto else "",
    )
