"""The charts of a report on classes: how each fares, and what is taken for what."""

from collections.abc import Sequence
from typing import Any

from commands.report_figure import (
    COLOURS,
    HEAT,
    Figure,
    axis,
    hover,
    make_figure,
    names_axis,
    shorten,
    text,
)
from recipes.class_scores import PerClass
from recipes.report_parts import (
    ClassPart,
)

MOST_CLASSES = 20


def draw_class_scores(parts: Sequence[ClassPart]) -> Figure:
    """F1 of each class, the worst on top, of one model or several."""
    last = {one.label: one for one in parts[-1].per_class.classes}
    order = sorted(last, key=lambda label: (last[label].f1 is not None, last[label].f1 or 0.0))
    labels = order[:MOST_CLASSES][::-1]
    names = [f"{shorten(label)} ({last[label].rows:,})" for label in labels]
    data: list[dict[str, Any]] = []
    for number, part in enumerate(parts):
        found = {one.label: one for one in part.per_class.classes}
        points = [(place, found[label]) for place, label in enumerate(labels) if label in found]
        points = [(place, one) for place, one in points if one.f1 is not None]
        final = number == len(parts) - 1
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": text(shorten(part.name)),
                "x": [one.f1 for _, one in points],
                "y": [place for place, _ in points],
                "marker": {
                    "size": 12 if final else 9,
                    "color": COLOURS[(0 if final else 4) if len(parts) < 3 else number % len(COLOURS)],
                    "symbol": "circle" if final else "diamond",
                },
                "hoverinfo": "text",
                "hovertext": [
                    hover(
                        f"{one.label}, {part.name}",
                        f"F1 {one.f1:.3f}",
                        f"precision {one.precision:.3f}" if one.precision is not None else "never predicted",
                        f"recall {one.recall:.3f}" if one.recall is not None else "no such row",
                        f"{one.right:,} of {one.rows:,} rows found",
                    )
                    for _, one in points
                ],
            }
        )
    lowest = min((value for trace in data for value in trace["x"]), default=0.0)
    return make_figure(
        f"F1 by class, {len(labels)} classes",
        data,
        x=axis("F1", range=[max(-0.02, min(0.9, lowest - 0.05)), 1.01], tickformat=".2f"),
        y=names_axis(names, grid=True, ticktext=[text(name) for name in names]),
        height=100 + 28 * len(labels),
        legend=len(parts) > 1,
    )


def draw_confusion(per_class: PerClass, name: str) -> Figure | None:
    """Rows by true class and by what the model says; the darker, the larger the share of the true class."""
    if len(per_class.classes) < 2:
        return None
    labels = _confused(per_class)
    rows = {one.label: one.rows for one in per_class.classes}
    right = {one.label: one.right for one in per_class.classes}
    wrong = {(one.label, one.predicted): one.rows for one in per_class.confusions}
    z, shown, told = [], [], []
    for true in labels:
        counts = [right[true] if true == said else wrong.get((true, said), 0) for said in labels]
        z.append([count / rows[true] if rows[true] else 0.0 for count in counts])
        shown.append([f"{count:,}" if count else "" for count in counts])
        told.append(
            [
                hover(
                    f"{true} → {said}",
                    f"{count:,} of {rows[true]:,} rows"
                    + (f" ({count / rows[true]:.1%})" if rows[true] else ""),
                )
                for said, count in zip(labels, counts, strict=True)
            ]
        )
    names = [text(shorten(label, 12)) for label in labels]
    places = list(range(len(labels)))
    heat = {
        "type": "heatmap",
        "z": z,
        "zmin": 0,
        "zmax": 1,
        "colorscale": HEAT,
        "showscale": False,
        "xgap": 2,
        "ygap": 2,
        "text": shown,
        "texttemplate": "%{text}",
        "hoverinfo": "text",
        "hovertext": told,
    }
    marks: dict[str, Any] = {"tickmode": "array", "tickvals": places, "ticktext": names, "grid": False}
    return make_figure(
        f"Confusion matrix of {name}",
        [heat],
        x=axis("the model says", tickangle=0 if len(labels) < 7 else -45, **marks),
        y=axis("true class", autorange="reversed", **marks),
        height=100 + max(26, 40 - 2 * max(0, len(labels) - 6)) * len(labels),
        min_width=0 if len(labels) < 9 else 130 + 22 * len(labels),
    )


def _confused(per_class: PerClass) -> list[str]:
    """All labels, or of many those that are confused most, in the order of the logits."""
    labels = [one.label for one in per_class.classes]
    if len(labels) <= MOST_CLASSES:
        return labels
    wrong: dict[str, int] = dict.fromkeys(labels, 0)
    for one in per_class.confusions:
        wrong[one.label] += one.rows
        wrong[one.predicted] += one.rows
    most = set(sorted(labels, key=lambda label: -wrong[label])[:MOST_CLASSES])
    return [label for label in labels if label in most]
