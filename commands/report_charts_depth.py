"""The charts of a report on depth: what becomes of tokens and gradients, a line for each encoder."""

from collections.abc import Callable

from commands.report_figure import COLOURS, Figure, axis, cost_axis, hover, make_figure, shorten, text
from recipes.depth_result import DepthPoint
from recipes.report_parts import DepthPart

# What is drawn → how its axis is called, and the number of a depth; None where it has none.
CHARTS: dict[str, tuple[str, Callable[[DepthPoint], float | None]]] = {
    "The residual stream": ("root mean square", lambda point: point.stream),
    "What a layer adds, relative to what it reads": (
        "both sublayers",
        lambda point: (
            None
            if point.attention_share is None or point.feed_forward_share is None
            else point.attention_share + point.feed_forward_share
        ),
    ),
    "Gradient by layer": ("length", lambda point: point.gradient),
    "Effective rank": ("dimensions", lambda point: point.effective_rank),
}


def draw_depth(part: DepthPart, title: str) -> Figure:
    """The chart called ``title``."""
    unit, number = CHARTS[title]
    data, numbers = [], list[float]()
    for place, line in enumerate(part.lines):
        found = [(point.depth, value) for point in line.points if (value := number(point)) is not None]
        numbers += [value for _, value in found]
        data.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": text(shorten(line.name)),
                "x": [depth for depth, _ in found],
                "y": [value for _, value in found],
                "line": {"color": COLOURS[place % len(COLOURS)], "width": 2},
                "marker": {"color": COLOURS[place % len(COLOURS)], "size": 6},
                "hoverinfo": "text",
                "hovertext": [
                    hover(line.name, f"layer {depth - 1}" if depth else "embeddings", f"{value:.3g} {unit}")
                    for depth, value in found
                ],
            }
        )
    most = max(point.depth for line in part.lines for point in line.points)
    return make_figure(
        f"{title}, by depth",
        data,
        x=axis("layers passed (0: embeddings)", grid=False, tickmode="linear", dtick=1 if most < 16 else 4),
        y=cost_axis(unit, numbers),
        height=320,
        legend=len(part.lines) > 1,
    )
