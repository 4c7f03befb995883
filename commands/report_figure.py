"""What the charts of a report have in common: axes, colours that follow the page, text that stays text.

A chart is Plotly's own JSON as plain values. A colour is the name of a CSS variable, which the page's script
looks up, so that one figure serves light and dark.
"""

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

INK, QUIET, GRID, LINE, BACK = "--ink", "--quiet", "--grid", "--line", "--back"
COLOURS = ("--c1", "--c2", "--c3", "--c4", "--c5", "--c6", "--c7")
HEAT = [[0, "--heat0"], [0.5, "--heat1"], [1, "--heat2"]]
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"
# Names on an axis longer than this would leave a phone no room for the chart.
LONGEST_NAME = 18
# From this ratio of the slowest to the fastest on the axis is logarithmic.
MANY_TIMES = 4


@dataclass(frozen=True)
class Figure:
    """A chart: Plotly's ``data`` and ``layout``; ``label`` is what it is read out as.

    ``height`` is in pixels, and so is ``min_width``: on a narrower page the chart scrolls.
    """

    label: str
    data: list[dict[str, Any]]
    layout: dict[str, Any]
    height: int
    min_width: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing in it but its axes."""
        return not any(_has_points(trace) for trace in self.data)


def _has_points(trace: dict[str, Any]) -> bool:
    if "z" in trace:
        return any(value is not None for row in trace["z"] for value in row)
    return any(x is not None and y is not None for x, y in zip(trace["x"], trace["y"], strict=True))


def make_figure(
    label: str,
    data: list[dict[str, Any]],
    *,
    x: dict[str, Any],
    y: dict[str, Any],
    height: int = 340,
    legend: bool = False,
    min_width: int = 0,
    **more: Any,
) -> Figure:
    """A chart with the axes ``x`` and ``y``; it cannot be zoomed, so that a finger scrolls the page."""
    layout: dict[str, Any] = {
        "font": {"family": FONT, "size": 12, "color": INK},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": {"l": 48, "r": 12, "t": 8, "b": 44},
        "xaxis": x,
        "yaxis": y,
        "dragmode": False,
        "hovermode": "closest",
        "hoverlabel": {
            "bgcolor": BACK,
            "bordercolor": LINE,
            "align": "left",
            "font": {"family": FONT, "size": 12, "color": INK},
        },
        "showlegend": legend,
        "legend": {
            "orientation": "h",
            "x": 0,
            "xanchor": "left",
            "y": 1.01,
            "yanchor": "bottom",
            "font": {"size": 12, "color": INK},
            "traceorder": "normal",
            "itemclick": False,
            "itemdoubleclick": False,
        },
        "height": height,
    }
    return Figure(label, data, layout | more, height, min_width)


def axis(title: str = "", *, grid: bool = True, **more: Any) -> dict[str, Any]:
    """An axis with thin lines; ``title`` has its unit."""
    return {
        "title": {"text": title, "standoff": 10, "font": {"size": 12, "color": QUIET}},
        "showgrid": grid,
        "gridcolor": GRID,
        "gridwidth": 1,
        "zeroline": False,
        "showline": False,
        "ticks": "",
        "tickfont": {"size": 12, "color": QUIET},
        "automargin": True,
        "fixedrange": True,
    } | more


def names_axis(names: list[str], title: str = "", **more: Any) -> dict[str, Any]:
    """An axis of names at 0, 1, 2 …: their spelling never makes them numbers or dates, or one of two."""
    own: dict[str, Any] = {
        "grid": False,
        "tickmode": "array",
        "tickvals": list(range(len(names))),
        "ticktext": [text(shorten(name)) for name in names],
        "range": [-0.6, len(names) - 0.4],
        "tickfont": {"size": 12, "color": INK},
    }
    return axis(title, **own | more)


def bars(values: Sequence[float], told: Sequence[str], colour: str, **more: Any) -> dict[str, Any]:
    """Bars that lie, one a line from below, each with what is ``told`` beside the pointer."""
    return {
        "type": "bar",
        "orientation": "h",
        "x": list(values),
        "y": list(range(len(values))),
        "marker": {"color": colour},
        "hoverinfo": "text",
        "hovertext": list(told),
    } | more


def text(written: str) -> str:
    """``written`` as it is: Plotly takes tags and entities for what they are."""
    return html.escape(written, quote=False)


def shorten(name: str, longest: int = LONGEST_NAME) -> str:
    """A long name without its middle."""
    if len(name) <= longest:
        return name
    tail = longest // 2
    return f"{name[: longest - tail - 1]}…{name[-tail:]}"


def hover(*lines: str) -> str:
    """Lines for the box beside the pointer; the first is bold."""
    shown = [text(line) for line in lines if line]
    return "<br>".join([f"<b>{shown[0]}</b>", *shown[1:]])


def log_ticks(low: float, high: float) -> list[float]:
    """Round numbers from ``low`` to ``high`` for a logarithmic axis: 1, 2, 5, 10 …, denser where few fit."""
    for steps in ((1, 2, 5), (1, 1.5, 2, 3, 4, 5, 7)):
        ticks = [step * 10.0**power for power in range(-4, 7) for step in steps]
        found = [tick for tick in ticks if low <= tick <= high]
        if len(found) >= 4:
            break
    return found


def cost_axis(title: str, values: Sequence[float]) -> dict[str, Any]:
    """From 0, or logarithmic where the values are many times each other."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    if low > 0 and high / low > MANY_TIMES:
        bounds = [low / 1.35, high * 1.35]
        ticks = log_ticks(*bounds)
        return axis(
            title,
            type="log",
            range=[math.log10(bound) for bound in bounds],
            tickmode="array",
            tickvals=ticks,
            ticktext=[f"{tick:g}" for tick in ticks],
        )
    return axis(title, range=[0, 1.12 * high or 1], nticks=7)
