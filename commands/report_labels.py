"""Where the names of points fit into a chart: beside their points, covering nothing."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from commands.report_figure import INK, shorten, text
from recipes.report_steps import Step

# The part of the chart inside its axes, in pixels on a desktop.
WIDE = (1000, 340)

Box = tuple[float, float, float, float]  # left, right, bottom, top in pixels


class Pixels:
    """Where a chart of `WIDE` pixels has what its axes ``x`` and ``y`` call by values."""

    def __init__(self, x: dict[str, Any], y: dict[str, Any]) -> None:
        self._x, self._y = x, y
        self.is_log = x.get("type") == "log"

    def place(self, cost: float, score: float) -> tuple[float, float]:
        """Pixels from the left, and from the bottom."""
        value = math.log10(cost) if self.is_log else cost
        (left, right), (bottom, top) = self._x["range"], self._y["range"]
        return (value - left) / (right - left) * WIDE[0], (score - bottom) / (top - bottom) * WIDE[1]

    def line(self, trace: dict[str, Any]) -> list[Box]:
        """Small boxes along the line of ``trace``, whose breaks are None."""
        boxes: list[Box] = []
        points = [
            None if cost is None or score is None else self.place(cost, score)
            for cost, score in zip(trace["x"], trace["y"], strict=True)
        ]
        stairs = trace["line"].get("shape") == "hv"
        for one, other in pairwise(points):
            if one is None or other is None:
                continue
            corner = (other[0], one[1])
            for (x0, y0), (x1, y1) in ((one, corner), (corner, other)) if stairs else ((one, other),):
                steps = 1 + int(max(abs(x1 - x0), abs(y1 - y0)) / 6)
                for step in range(steps + 1):
                    px, py = x0 + (x1 - x0) * step / steps, y0 + (y1 - y0) * step / steps
                    boxes.append((px - 1, px + 1, py - 1, py + 1))
        return boxes


def name_points(
    points: Sequence[Step],
    pixels: Pixels,
    costs: dict[int, float],
    shown: dict[int, float],
    lines: Sequence[Box],
) -> list[dict[str, Any]]:
    """Names beside their points, covering neither a point nor a bar, and if possible none of ``lines``.

    Judged on a chart of `WIDE` pixels; on a narrow one the page's script leaves them out.
    """
    places = {step.number: pixels.place(costs[step.number], shown[step.number]) for step in points}
    taken: list[Box] = [(px - 12.5, px + 12.5, py - 9, py + 9) for px, py in places.values()]
    for step in points:
        if (score := step.score) is not None and score.low is not None and score.high is not None:
            ends = [pixels.place(costs[step.number], value) for value in (score.low, score.high)]
            low, high = sorted(end[1] for end in ends)
            taken.append((ends[0][0] - 3, ends[0][0] + 3, low, high))
    labels = []
    for step in sorted(points, key=lambda step: (not step.front, step.number)):
        name = shorten(step.name, 24)
        spots = _spots(places[step.number], 7.4 * len(name))
        free = [spot for spot in spots if not any(_overlap(spot[2], box) for box in taken)]
        clear = [spot for spot in free if not any(_overlap(spot[2], box) for box in lines)]
        if not free:
            continue
        anchor, shift, box = (clear or free)[0]
        taken.append(box)
        cost = costs[step.number]
        labels.append(
            {
                "name": "wide",
                "x": math.log10(cost) if pixels.is_log else cost,
                "y": shown[step.number],
                "text": text(name),
                "showarrow": False,
                "xanchor": anchor,
                "xshift": 13 if anchor == "left" else -13,
                "yshift": shift,
                "font": {"size": 12, "color": INK},
            }
        )
    return labels


def _spots(place: tuple[float, float], long: float) -> list[tuple[str, int, Box]]:
    """Where a name of ``long`` pixels may stand beside ``place``: its anchor, how far up, and its box."""
    px, py = place
    spots = []
    for shift in (13, -13):
        for anchor, start in (("left", px + 13), ("right", px - 13 - long)):
            if start > 0 and start + long < WIDE[0]:
                spots.append((anchor, shift, (start, start + long, py + shift - 8, py + shift + 8)))
    return spots


def _overlap(one: Box, other: Box) -> bool:
    return one[0] <= other[1] and other[0] <= one[1] and one[2] <= other[3] and other[2] <= one[3]
