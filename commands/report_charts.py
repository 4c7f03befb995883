"""The charts of a report that set models beside each other: what was made, and what a search tried."""

import math
from collections.abc import Sequence
from typing import Any

from commands.report_figure import (
    BACK,
    COLOURS,
    INK,
    QUIET,
    Figure,
    axis,
    cost_axis,
    hover,
    make_figure,
    shorten,
    text,
)
from commands.tables import number, size
from encoder.metrics import LOWER_IS_BETTER, METRIC_TITLES
from recipes.report import Report
from recipes.report_headline import say_interval
from recipes.report_parts import Candidate, CandidatesPart
from recipes.report_steps import Step

# A step that scores so much less than the best is drawn at the edge, or the others would be one line.
FAR_BELOW = 0.12
# The part of the chart inside its axes, in pixels on a desktop.
WIDE = (1000, 340)
# What made a step decides its colour.
KINDS = {
    "finetune": ("fine-tuned", COLOURS[0]),
    "freeze-sweep": ("fine-tuned", COLOURS[0]),
    "prune-heads": ("pruned", COLOURS[1]),
    "prune-neurons": ("pruned", COLOURS[1]),
    "drop-layers": ("pruned", COLOURS[1]),
    "compress": ("pruned", COLOURS[1]),
    "distill": ("distilled", COLOURS[2]),
    "export": ("exported", COLOURS[3]),
}
OTHER = ("other", COLOURS[4])


def draw_steps(report: Report) -> Figure | None:
    """Score against latency, every step a point; against size where nothing was timed twice."""
    there = [step for step in report.steps if step.score is not None and step.score.here]
    timed = sum(step.p50_ms is not None for step in there) > 1
    points = [step for step in there if _cost(step, timed=timed) is not None]
    if len(points) < 2 or report.rows is None:
        return None
    metric = report.rows.metric
    costs = {step.number: _cost(step, timed=timed) or 0.0 for step in points}
    scores = {step.number: step.score.value for step in points if step.score is not None}
    low, high = score_range(points, metric)
    far = {number for number, score in scores.items() if not low <= score <= high}
    edge = high if metric in LOWER_IS_BETTER else low
    inside = edge + 0.035 * ((low - high) if metric in LOWER_IS_BETTER else (high - low))
    shown = {number: inside if number in far else score for number, score in scores.items()}
    data = [_lineage(points, costs, shown), _front(points, costs, scores, metric, far)]
    for name, colour in dict.fromkeys(KINDS.get(step.command or "", OTHER) for step in points):
        kind = [step for step in points if KINDS.get(step.command or "", OTHER) == (name, colour)]
        data.append(_points(kind, name, colour, costs, shown, far))
    unit = "p50 latency, ms" if timed else "size on disk, MB"
    if report.timed is not None and timed:
        unit += f" (batch {report.timed.batch_size})"
    x = cost_axis(unit, list(costs.values()))
    y = axis(
        METRIC_TITLES.get(metric, metric),
        range=[low, high] if metric not in LOWER_IS_BETTER else [high, low],
        tickformat=".3f" if high - low < 0.05 else ".2f",
    )
    return make_figure(
        f"{METRIC_TITLES.get(metric, metric)} against {unit} of {len(points)} models",
        data,
        x=x,
        y=y,
        height=430,
        legend=True,
        annotations=_name_labels(points, x, y, costs, shown),
    )


def draw_candidates(part: CandidatesPart) -> Figure | None:
    """What a search looked at: score against latency, otherwise size; the goal, the front and the choice."""
    timed = sum(_candidate_ms(one) is not None for one in part.candidates) > 1
    known = [
        (one, one.score, _candidate_ms(one) if timed else (one.size_bytes or 0) / 1e6 or None)
        for one in part.candidates
    ]
    points = [(one, score, cost) for one, score, cost in known if score is not None and cost is not None]
    if len(points) < 2:
        return None
    data: list[dict[str, Any]] = []
    front = sorted((cost, score) for one, score, cost in points if one.pareto)
    if front:
        data.append(_front_line([cost for cost, _ in front], [score for _, score in front]))
    groups: list[tuple[str, str, str, int, list[tuple[Candidate, float, float]]]] = [
        ("predicted", COLOURS[4], "circle-open", 8, []),
        ("measured", COLOURS[0], "circle", 9, []),
        ("chosen", COLOURS[1], "diamond", 15, []),
    ]
    for point in points:
        place = 2 if point[0].chosen else 0 if timed and point[0].latency_ms is None else 1
        groups[place][4].append(point)
    for name, colour, symbol, wide, members in groups:
        if members:
            data.append(
                {
                    "type": "scatter",
                    "mode": "markers",
                    "name": name,
                    "x": [cost for _, _, cost in members],
                    "y": [score for _, score, _ in members],
                    "marker": {"size": wide, "color": colour, "symbol": symbol, "opacity": 0.9},
                    "hoverinfo": "text",
                    "hovertext": [_tell_candidate(one) for one, _, _ in members],
                }
            )
    unit = "latency, ms" if timed else "size on disk, MB"
    x = cost_axis(
        unit, [cost for _, _, cost in points] + ([part.limit_ms] if timed and part.limit_ms else [])
    )
    return make_figure(
        f"Score against {unit} of {len(points)} candidates",
        data,
        x=x,
        y=axis("score", tickformat=".2f"),
        height=400,
        legend=True,
        **(_goal(part) if timed else {}),
    )


def _goal(part: CandidatesPart) -> dict[str, Any]:
    """The corner of the chart in which the goal is met, where it is known."""
    original = next(
        (one.score + one.drop for one in part.candidates if one.score is not None and one.drop is not None),
        None,
    )
    if part.limit_ms is None or part.max_drop is None or original is None:
        return {}
    low = original - part.max_drop / 100
    line = {"type": "line", "line": {"color": COLOURS[2], "width": 1.2, "dash": "dash"}, "layer": "below"}
    limit = {"xref": "x", "yref": "paper", "x0": part.limit_ms, "x1": part.limit_ms, "y0": 0, "y1": 1}
    bound = {"xref": "paper", "yref": "y", "x0": 0, "x1": 1, "y0": low, "y1": low}
    return {
        "shapes": [line | limit, line | bound],
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


def _candidate_ms(one: Candidate) -> float | None:
    return one.predicted_ms if one.latency_ms is None else one.latency_ms


def _tell_candidate(one: Candidate) -> str:
    return hover(
        one.name,
        f"score {one.score:.4f}" if one.score is not None else "",
        f"loses {100 * one.drop:.1f} points" if one.drop is not None else "",
        f"{one.latency_ms:.2f} ms" if one.latency_ms is not None else "",
        f"predicted {one.predicted_ms:.2f} ms" if one.predicted_ms is not None else "",
        size(one.size_bytes) if one.size_bytes else "",
        "trained" if one.trained else "",
        "on the front" if one.pareto else "",
    )


def _cost(step: Step, *, timed: bool) -> float | None:
    if timed:
        return step.p50_ms
    return None if step.bytes_on_disk is None else step.bytes_on_disk / 1e6


def find_far(report: Report, steps: Sequence[Step]) -> list[Step]:
    """Of ``steps`` those that score too far from the others to be drawn where they are."""
    if report.rows is None:
        return []
    low, high = score_range(steps, report.rows.metric)
    return [step for step in steps if step.score is not None and not low <= step.score.value <= high]


def score_range(points: Sequence[Step], metric: str) -> tuple[float, float]:
    """From a bit below the worst interval to a bit above the best; what is far off does not count."""
    scores = [step.score for step in points if step.score is not None]
    if metric in LOWER_IS_BETTER:
        near = [one for one in scores if one.value <= 4 * min(other.value for other in scores)] or scores
    else:
        best = max(one.value for one in scores)
        near = [one for one in scores if one.value >= best - FAR_BELOW]
    low = min(one.value if one.low is None else one.low for one in near)
    high = max(one.value if one.high is None else one.high for one in near)
    room = max(0.004, 0.12 * (high - low))
    return low - room, high + room


def _lineage(points: Sequence[Step], costs: dict[int, float], shown: dict[int, float]) -> dict[str, Any]:
    """An arrow from each model to what was made of it."""
    x: list[float | None] = []
    y: list[float | None] = []
    for step in points:
        if step.parent in costs:
            x += [costs[step.parent], costs[step.number], None]
            y += [shown[step.parent], shown[step.number], None]
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": "made of",
        "x": x,
        "y": y,
        "line": {"color": QUIET, "width": 1.2},
        "opacity": 0.55,
        "marker": {
            "symbol": "arrow",
            "angleref": "previous",
            "standoff": 12,
            "color": QUIET,
            "size": [0, 9, 0] * (len(x) // 3),
        },
        "hoverinfo": "skip",
        "showlegend": bool(x),
    }


def _front(
    points: Sequence[Step],
    costs: dict[int, float],
    scores: dict[int, float],
    metric: str,
    far: set[int],
) -> dict[str, Any]:
    members = sorted(
        (step.number for step in points if step.front and step.number not in far),
        key=lambda number: costs[number],
    )
    return _front_line([costs[number] for number in members], [scores[number] for number in members])


def _front_line(x: list[float], y: list[float]) -> dict[str, Any]:
    """The Pareto front as stairs: what can be had for at most so much."""
    return {
        "type": "scatter",
        "mode": "lines",
        "name": "Pareto front",
        "x": x,
        "y": y,
        "line": {"color": COLOURS[2], "width": 2, "dash": "dot", "shape": "hv"},
        "hoverinfo": "skip",
        "showlegend": len(x) > 1,
    }


def _points(
    steps: Sequence[Step],
    name: str,
    colour: str,
    costs: dict[int, float],
    shown: dict[int, float],
    far: set[int],
) -> dict[str, Any]:
    """Numbered circles with the interval of the score; hollow where only a ratio places them."""
    above = [_arm(step, up=True) if step.number not in far else 0.0 for step in steps]
    below = [_arm(step, up=False) if step.number not in far else 0.0 for step in steps]
    return {
        "type": "scatter",
        "mode": "markers+text",
        "name": name,
        "x": [costs[step.number] for step in steps],
        "y": [shown[step.number] for step in steps],
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": above,
            "arrayminus": below,
            "color": colour,
            "thickness": 1.4,
            "width": 5,
        },
        "marker": {
            "size": 21,
            "color": [BACK if step.placed else colour for step in steps],
            "symbol": ["triangle-down" if step.number in far else "circle" for step in steps],
            "line": {"width": 2, "color": colour},
            "opacity": 1,
        },
        "text": [str(step.number) for step in steps],
        "textfont": {"size": 11, "color": [colour if step.placed else BACK for step in steps]},
        "hoverinfo": "text",
        "hovertext": [_tell(step) for step in steps],
        "cliponaxis": False,
    }


def _arm(step: Step, *, up: bool) -> float:
    score = step.score
    if score is None or score.low is None or score.high is None:
        return 0.0
    return score.high - score.value if up else score.value - score.low


def _tell(step: Step) -> str:
    score, gain = step.score, step.gain
    interval = (
        f" ({number(score.low)}–{number(score.high)})" if score is not None and score.low is not None else ""
    )
    return hover(
        f"{step.number} {step.name}",
        step.what,
        f"{METRIC_TITLES.get(score.metric, score.metric)} {number(score.value)}{interval}" if score else "",
        f"p50 {step.p50_ms:.2f} ms" if step.p50_ms is not None else "",
        f"{gain.ratio:.2f}× ({say_interval(gain) or 'measured apart'})" if gain else "",
        size(step.bytes_on_disk) if step.bytes_on_disk else "",
        "on the front" if step.front else "",
        "placed by its ratio, which was measured under other circumstances" if step.placed else "",
    )


def _name_labels(
    points: Sequence[Step],
    x: dict[str, Any],
    y: dict[str, Any],
    costs: dict[int, float],
    shown: dict[int, float],
) -> list[dict[str, Any]]:
    """Names beside their points, on the right, on the left, or not at all where they would cover something.

    Judged on a chart of `WIDE` pixels; on a narrow one the page's script leaves them out.
    """
    width, height = WIDE
    is_log = x.get("type") == "log"

    def pixels(step: Step) -> tuple[float, float]:
        cost = math.log10(costs[step.number]) if is_log else costs[step.number]
        (left, right), (bottom, top) = x["range"], y["range"]
        return (
            (cost - left) / (right - left) * width,
            (shown[step.number] - bottom) / (top - bottom) * height,
        )

    places = {step.number: pixels(step) for step in points}
    # What is covered already, in pixels: left, right, bottom, top of each circle and of each bar.
    taken = [(px - 12.5, px + 12.5, py - 9.0, py + 9.0) for px, py in places.values()]
    scale = height / (y["range"][1] - y["range"][0])
    for step in points:
        px, py = places[step.number]
        arms = sorted((scale * _arm(step, up=True), -scale * _arm(step, up=False)))
        taken.append((px - 3, px + 3, py + arms[0], py + arms[1]))
    labels = []
    for step in sorted(points, key=lambda step: (not step.front, step.number)):
        px, py = places[step.number]
        py += 13  # above the lines that lead to a point
        name = shorten(step.name, 24)
        long = 7.4 * len(name)
        for anchor, start in (("left", px + 13), ("right", px - 13 - long)):
            end = start + long
            free = all(
                end < left or start > right or py + 8 < bottom or py - 8 > top
                for left, right, bottom, top in taken
            )
            if free and start > 0 and end < width:
                taken.append((start, end, py - 8, py + 8))
                labels.append(
                    {
                        "name": "wide",
                        "x": math.log10(costs[step.number]) if is_log else costs[step.number],
                        "y": shown[step.number],
                        "text": text(name),
                        "showarrow": False,
                        "xanchor": anchor,
                        "xshift": 13 if anchor == "left" else -13,
                        "yshift": 13,
                        "font": {"size": 12, "color": INK},
                    }
                )
                break
    return labels
