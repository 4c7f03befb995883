"""The charts of a report on what models cost: latency and size."""

from collections.abc import Sequence
from typing import Any

from commands.report_figure import (
    COLOURS,
    INK,
    Figure,
    axis,
    bars,
    cost_axis,
    hover,
    make_figure,
    names_axis,
)
from commands.tables import size
from recipes.report_parts import LatencyPart
from recipes.report_steps import Step


def group_latencies(parts: Sequence[LatencyPart]) -> dict[str, list[LatencyPart]]:
    """The latencies that can be compared, by circumstances; those of most models first."""
    groups: dict[str, list[LatencyPart]] = {}
    for part in parts:
        one = part.latency
        threads = f", {one.threads} thread{'' if one.threads == 1 else 's'}" if one.device == "cpu" else ""
        tokens = (
            f"rows of the data, about {one.shape.mean_tokens:.0f} tokens"
            if one.shape.sequence_length is None
            else f"rows of {one.shape.sequence_length} tokens"
        )
        groups.setdefault(f"batch {one.shape.batch_size}, {tokens}, {one.device}{threads}", []).append(part)

    def worth(parts: list[LatencyPart]) -> tuple[int, int]:
        return -len({(part.name, part.latency.runtime) for part in parts}), parts[0].latency.shape.batch_size

    return dict(sorted(groups.items(), key=lambda item: worth(item[1])))


def draw_latencies(title: str, parts: Sequence[LatencyPart], runtimes: Sequence[str]) -> Figure:
    """p50 as a point and the way to p99 as a line, for each model and runtime, the fastest on top.

    A runtime has its colour by its place in ``runtimes``, in all charts the same.
    """
    best: dict[tuple[str, str], LatencyPart] = {}
    for part in parts:  # of several of the same the one that was disturbed least
        key = (part.name, part.latency.runtime)
        if key not in best or _quiet(part) < _quiet(best[key]):
            best[key] = part
    ordered = sorted(best.values(), key=lambda part: -part.latency.p50_ms)
    names = [part.name for part in ordered]
    several = len({part.latency.runtime for part in ordered}) > 1
    data: list[dict[str, Any]] = []
    for place, part in enumerate(ordered):
        one = part.latency
        colour = COLOURS[runtimes.index(one.runtime) % len(COLOURS)]
        told = hover(
            f"{part.name}, {one.runtime}",
            f"p50 {one.p50_ms:.2f} ms",
            f"p95 {one.p95_ms:.2f} ms",
            f"p99 {one.p99_ms:.2f} ms",
            f"{one.rows_per_s:,.0f} rows/s; {one.runs} runs",
            "" if one.is_reliable else "measured on a busy machine",
        )
        data.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "x": [one.p50_ms, one.p95_ms, one.p99_ms],
                "y": [place] * 3,
                "line": {"color": colour, "width": 2},
                "marker": {
                    "color": colour,
                    "size": [12, 10, 7],
                    "symbol": ["circle", "line-ns-open", "line-ns-open"],
                    "line": {"width": [0, 2, 2], "color": colour},
                    "opacity": 1,
                },
                "name": one.runtime,
                "legendgroup": one.runtime,
                "showlegend": one.runtime not in [trace["name"] for trace in data],
                "hoverinfo": "text",
                "hovertext": [told] * 3,
            }
        )
    values = [value for part in ordered for value in (part.latency.p50_ms, part.latency.p99_ms)]
    return make_figure(
        f"Latency, {title}: p50, p95 and p99 of {len(ordered)} measurements",
        data,
        x=cost_axis("ms: ● p50, | p95, | p99", values),
        y=names_axis(names),
        height=max(170, 96 + 30 * len(ordered) + (24 if several else 0)),
        legend=several,
    )


def _quiet(part: LatencyPart) -> tuple[bool, float]:
    return not part.latency.is_reliable, part.latency.noise


def draw_bytes(steps: Sequence[Step]) -> Figure | None:
    """The size on disk of each model, the first on top."""
    known = [step for step in steps if step.bytes_on_disk][::-1]
    if not known:
        return None
    amounts = [(step.bytes_on_disk or 0) / 1e6 for step in known]
    sizes = [size(step.bytes_on_disk or 0) for step in known]
    data = bars(
        amounts,
        [hover(step.name, written) for step, written in zip(known, sizes, strict=True)],
        COLOURS[0],
        text=sizes,
        textposition="outside",
        cliponaxis=False,
        textfont={"color": INK, "size": 12},
    )
    return make_figure(
        f"Size on disk of {len(known)} models",
        [data],
        x=axis("MB on disk", rangemode="tozero", range=[0, 1.3 * max(amounts)]),
        y=names_axis([step.name for step in known]),
        height=84 + 32 * len(known),
        bargap=0.35,
    )


def draw_parameters(steps: Sequence[Step]) -> Figure | None:
    """The parameters of each model: embeddings, and the rest, which is what takes time."""
    known = [step for step in steps if step.parameters and step.embedding_parameters is not None][::-1]
    if not known:
        return None
    embeddings = [(step.embedding_parameters or 0) / 1e6 for step in known]
    rest = [(step.parameters or 0) / 1e6 - part for step, part in zip(known, embeddings, strict=True)]
    data = [
        bars(
            values,
            [
                hover(step.name, f"{name}: {value:.2f} M", f"in all {(step.parameters or 0) / 1e6:.2f} M")
                for step, value in zip(known, values, strict=True)
            ],
            colour,
            name=name,
        )
        for name, values, colour in (
            ("layers and classifier", rest, COLOURS[0]),
            ("embeddings", embeddings, COLOURS[4]),
        )
    ]
    return make_figure(
        f"Parameters of {len(known)} models, embeddings apart",
        data,
        x=axis("million parameters", rangemode="tozero"),
        y=names_axis([step.name for step in known]),
        height=110 + 32 * len(known),
        legend=True,
        barmode="stack",
        bargap=0.35,
    )
