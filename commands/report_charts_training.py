"""The charts of a report on training: epoch by epoch, and by how much was frozen."""

from collections.abc import Sequence
from typing import Any

from commands.report_figure import (
    BACK,
    COLOURS,
    QUIET,
    Figure,
    axis,
    hover,
    make_figure,
    shorten,
    text,
)
from encoder.metrics import METRIC_TITLES
from recipes.report_parts import (
    SweepPart,
    TrainingPart,
)
from recipes.result import SweepPoint

JUDGEMENTS = {
    "fine": ("circle", COLOURS[2]),
    "undecided": ("circle-open", COLOURS[1]),
    "hurts": ("x", COLOURS[6]),
    "not defined": ("line-ew-open", COLOURS[4]),
}


def draw_sweep(part: SweepPart) -> Figure:
    """The mean over the seeds at each k, with the spread as bars and every seed as a dot."""
    sweep = part.sweep
    known = [point for point in sweep.points if point.mean is not None]
    title = METRIC_TITLES.get(sweep.metric, sweep.metric)
    data: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "lines",
            "x": [point.k for point in known],
            "y": [point.mean for point in known],
            "line": {"color": QUIET, "width": 1.5},
            "hoverinfo": "skip",
            "showlegend": False,
        }
    ]
    if len(sweep.seeds) > 1:
        data.append(_every_seed(known))
    judged = {name: [point for point in known if point.judgement == name] for name in JUDGEMENTS}
    data += [_judged(points, name, title) for name, points in judged.items() if points]
    places = [point.k for point in sweep.points]
    return make_figure(
        f"{title} against the number of frozen layers",
        data,
        x=axis("layers frozen (k)", grid=False, tickmode="array", tickvals=places),
        y=axis(f"{sweep.split} {title}", tickformat=".2f"),
        height=360,
        legend=True,
        **_mark_chosen(sweep.verdict.chosen, last=max(places)),
    )


def _every_seed(points: Sequence[SweepPoint]) -> dict[str, Any]:
    seeds = [(point.k, score) for point in points for score in point.scores if score is not None]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "one seed",
        "x": [k for k, _ in seeds],
        "y": [score for _, score in seeds],
        "marker": {"size": 6, "color": COLOURS[4], "opacity": 0.7},
        "hoverinfo": "skip",
    }


def _judged(points: Sequence[SweepPoint], judgement: str, title: str) -> dict[str, Any]:
    symbol, colour = JUDGEMENTS[judgement]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": judgement,
        "x": [point.k for point in points],
        "y": [point.mean for point in points],
        "error_y": {
            "type": "data",
            "array": [point.spread or 0.0 for point in points],
            "color": colour,
            "thickness": 1.5,
            "width": 6,
        },
        "marker": {
            "size": 12,
            "symbol": symbol,
            "color": colour,
            "line": {"width": 2, "color": colour},
        },
        "hoverinfo": "text",
        "hovertext": [_tell_point(point, title) for point in points],
    }


def _mark_chosen(k: int, *, last: int) -> dict[str, Any]:
    """A line at ``k`` with a word beside it, which is on the left of the ``last`` k."""
    line = {
        "type": "line",
        "xref": "x",
        "yref": "paper",
        "x0": k,
        "x1": k,
        "y0": 0,
        "y1": 1,
        "line": {"color": COLOURS[0], "width": 1.5, "dash": "dash"},
        "layer": "below",
    }
    word = {
        "x": k,
        "y": 0.02,
        "xref": "x",
        "yref": "paper",
        "text": "chosen",
        "showarrow": False,
        "xanchor": "left" if k < last else "right",
        "yanchor": "bottom",
        "xshift": 5 if k < last else -5,
        "font": {"color": COLOURS[0], "size": 12},
    }
    return {"shapes": [line], "annotations": [word]}


def draw_losses(parts: Sequence[TrainingPart]) -> Figure | None:
    """The mean training loss of each epoch."""
    lines = [(part, [(one.epoch, one.loss) for one in part.epochs if one.loss is not None]) for part in parts]
    return _curves([(part, values) for part, values in lines if values], "training loss", "loss")


def draw_validation(parts: Sequence[TrainingPart]) -> Figure | None:
    """The validation score after each epoch; the epoch that was kept has a ring."""
    lines = []
    for part in parts:
        values = [(one.epoch, (one.validation or {}).get(part.metric)) for one in part.epochs]
        lines.append((part, [(epoch, value) for epoch, value in values if value is not None]))
    metrics = {part.metric for part in parts}
    metric = next(iter(metrics)) if len(metrics) == 1 else "score"
    title = f"validation {METRIC_TITLES.get(metric, metric)}"
    return _curves([(part, values) for part, values in lines if values], title, title, ring=True)


def _tell_point(point: SweepPoint, title: str) -> str:
    spread = f" ± {point.spread:.4f}" if point.spread is not None else ""
    loss = ""
    if point.loss is not None:
        bounds = f" ({point.low:.4f} to {point.high:.4f})" if point.low is not None else ""
        loss = f"loss against the best {point.loss:.4f}{bounds}"
    return hover(f"k = {point.k}", f"{title} {point.mean:.4f}{spread}", loss, point.judgement)


def _curves(
    lines: Sequence[tuple[TrainingPart, Sequence[tuple[int, float]]]],
    label: str,
    title: str,
    *,
    ring: bool = False,
) -> Figure | None:
    if not lines:
        return None
    data = []
    for number, (part, values) in enumerate(lines):
        colour = COLOURS[number % len(COLOURS)]
        kept = [ring and epoch == part.best_epoch for epoch, _ in values]
        data.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": text(shorten(part.name)),
                "x": [epoch for epoch, _ in values],
                "y": [value for _, value in values],
                "line": {"color": colour, "width": 2},
                "marker": {
                    "size": [11 if one else 7 for one in kept],
                    "color": [BACK if one else colour for one in kept],
                    "line": {"color": colour, "width": [2.5 if one else 0 for one in kept]},
                    "opacity": 1,
                },
                "hoverinfo": "text",
                "hovertext": [
                    hover(part.name, f"epoch {epoch}: {value:.4f}", "kept" if one else "")
                    for (epoch, value), one in zip(values, kept, strict=True)
                ],
            }
        )
    most = max(epoch for _, values in lines for epoch, _ in values)
    return make_figure(
        f"{label[:1].upper()}{label[1:]} by epoch",
        data,
        x=axis(
            "epoch", grid=False, tickmode="linear", dtick=max(1, round(most / 8)), range=[0.7, most + 0.3]
        ),
        y=axis(title, tickformat=".2f"),
        height=320,
        legend=len(lines) > 1,
    )
