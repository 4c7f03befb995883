"""The chart of a report that sets the models beside each other: score against latency, or against size."""

from collections.abc import Sequence
from typing import Any

from commands.report_figure import (
    BACK,
    COLOURS,
    QUIET,
    Figure,
    axis,
    cost_axis,
    hover,
    make_figure,
)
from commands.report_labels import Pixels, name_points
from commands.tables import number, size
from encoder.metrics import LOWER_IS_BETTER, METRIC_TITLES
from recipes.report import Report
from recipes.report_headline import say_interval
from recipes.report_steps import Step, are_timed

# A step that scores so much less than the best is drawn at the edge, or the others would be one line.
FAR_BELOW = 0.12
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
# Scored on other rows than the report is about.
ELSEWHERE = ("on other rows", QUIET)


def draw_steps(report: Report) -> Figure | None:
    """Score against latency, every step a point; against size where nothing was timed twice."""
    points, timed = drawn_steps(report), are_timed(report.steps)
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
    for name, colour in dict.fromkeys(map(_kind, points)):
        kind = [step for step in points if _kind(step) == (name, colour)]
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
    pixels = Pixels(x, y)
    lines = [box for trace in data[:2] for box in pixels.line(trace)]  # lineage and front
    return make_figure(
        f"{METRIC_TITLES.get(metric, metric)} against {unit} of {len(points)} models",
        data,
        x=x,
        y=y,
        height=430,
        legend=True,
        annotations=name_points(points, pixels, costs, shown, lines),
    )


def drawn_steps(report: Report) -> list[Step]:
    """The steps that have a place in the chart: with a score by the metric of the report, and a cost."""
    if report.rows is None:
        return []
    timed = are_timed(report.steps)
    return [
        step
        for step in report.steps
        if step.kept
        and step.score is not None
        and step.score.metric == report.rows.metric
        and _cost(step, timed=timed) is not None
    ]


def _kind(step: Step) -> tuple[str, str]:
    """What a step is called in the legend, and its colour."""
    return KINDS.get(step.command or "", OTHER) if step.is_comparable else ELSEWHERE


def _cost(step: Step, *, timed: bool) -> float | None:
    if timed:
        return step.placed_ms
    return None if step.bytes_on_disk is None else step.bytes_on_disk / 1e6


def _joined(*parts: str | None) -> str:
    return ", ".join(part for part in parts if part)


def find_far(report: Report, steps: Sequence[Step]) -> list[Step]:
    """Of ``steps`` those that score too far from the others to be drawn where they are."""
    if report.rows is None:
        return []
    low, high = score_range(steps, report.rows.metric)
    return [step for step in steps if step.score is not None and not low <= step.score.value <= high]


def score_range(points: Sequence[Step], metric: str) -> tuple[float, float]:
    """From a bit below the worst interval to a bit above the best; what is far off does not count."""
    here = [step for step in points if step.is_comparable] or points
    scores = [step.score for step in here if step.score is not None]
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
    return front_line([costs[number] for number in members], [scores[number] for number in members])


def front_line(x: list[float], y: list[float]) -> dict[str, Any]:
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
    """Numbered circles with the interval of the score; hollow where only a ratio places them, or what they
    score is on other rows."""
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
            "color": [BACK if _is_hollow(step) else colour for step in steps],
            "symbol": ["triangle-down" if step.number in far else "circle" for step in steps],
            "line": {"width": 2, "color": colour},
            "opacity": 1,
        },
        "text": [str(step.number) for step in steps],
        "textfont": {"size": 11, "color": [colour if _is_hollow(step) else BACK for step in steps]},
        "hoverinfo": "text",
        "hovertext": [_tell(step) for step in steps],
        "cliponaxis": False,
    }


def _is_hollow(step: Step) -> bool:
    return step.placed or not step.is_comparable


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
        f"p50 {_joined(f'{step.p50_ms:.2f} ms', step.p50_elsewhere)}" if step.p50_ms is not None else "",
        f"{gain.ratio:.2f}× ({say_interval(gain) or 'measured apart'})" if gain else "",
        size(step.bytes_on_disk) if step.bytes_on_disk else "",
        "on the front" if step.front else "",
        "measured on a busy machine" if step.disturbed or (gain and gain.disturbed) else "",
        "placed by its ratio, which was measured under other circumstances" if step.placed else "",
        "" if step.is_comparable else "scored on other rows: not to be compared with the others",
    )
