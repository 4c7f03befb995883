"""The charts of a report that look into a model: its heads, neurons and layers, and where its time goes."""

from collections.abc import Sequence
from typing import Any

from commands.importance_map import ranks
from commands.report_figure import (
    BACK,
    COLOURS,
    HEAT,
    LINE,
    QUIET,
    Figure,
    axis,
    bars,
    hover,
    make_figure,
    names_axis,
)
from recipes.report_parts import (
    ProbePart,
    ProfilePart,
    RemovalPart,
)

# A part of a profile → how the chart calls it; all other parts together are the rest.
PROFILE_PARTS = {
    "projections": "attention: projections",
    "scores and mixing": "attention: scores, mixing",
    "feed-forward": "feed-forward",
}
REST = "all else"


def draw_heads(part: RemovalPart) -> Figure:
    """Layers by heads: the darker, the more important; a cross on what was removed."""
    known = ranks(part.layers)
    columns = 1 + max((head for layer in part.layers for head in layer.heads_before or ()), default=0)
    z: list[list[float | None]] = []
    told: list[list[str]] = []
    crosses: list[tuple[int, int]] = []
    for layer in part.layers:
        before, after = layer.heads_before or (), set(layer.heads_after or ())
        row: list[float | None] = []
        row_told: list[str] = []
        for head in range(columns):
            name = f"layer {layer.layer}, head {head}"
            if head not in before:
                row.append(None)
                row_told.append(hover(name, "gone before"))
                continue
            place = before.index(head)
            rank = known.get((layer.layer, place))
            row.append(50.0 if rank is None else rank)
            score = layer.importance[place] if layer.importance is not None else None
            row_told.append(
                hover(
                    name,
                    "kept" if head in after else "removed",
                    "" if score is None else f"importance {score:.3g}",
                    "" if rank is None else f"{rank}% of the heads matter less",
                )
            )
            if head not in after:
                crosses.append((head, layer.layer))
        z.append(row)
        told.append(row_told)
    data = [_heat(z, told, [layer.layer for layer in part.layers], known=bool(known)), _crosses(crosses)]
    return make_figure(
        f"Importance of {part.units_before} heads, {part.units_before - part.units_after} of them removed",
        data,
        x=axis(
            "head", grid=False, tickmode="linear", dtick=1, range=[-0.5, columns - 0.5], constrain="domain"
        ),
        y=axis("layer", grid=False, tickmode="linear", dtick=1, autorange="reversed"),
        height=110 + 26 * len(part.layers),
        legend=False,
    )


def draw_layers(part: RemovalPart) -> Figure:
    """The layers in a row: the darker, the more important where that was measured; a cross on what went."""
    worth = [layer.importance[0] if layer.importance else None for layer in part.layers]
    most = max((value for value in worth if value is not None), default=0.0)
    z = [50.0 if value is None or most <= 0 else 100 * max(0.0, value) / most for value in worth]
    told = [
        hover(
            f"layer {layer.layer}",
            "kept" if layer.after else "removed",
            "" if value is None else f"the loss rises by {value:.4f} without it alone",
        )
        for layer, value in zip(part.layers, worth, strict=True)
    ]
    places = list(range(len(part.layers)))
    heat = _heat([list(z)], [told], [0], known=False)
    crosses = _crosses([(place, 0) for place in places if not part.layers[place].after])
    return make_figure(
        f"{part.units_after} of {part.units_before} layers kept",
        [heat, crosses],
        x=axis(
            "layer",
            grid=False,
            tickmode="array",
            tickvals=places,
            ticktext=[str(layer.layer) for layer in part.layers],
            range=[-0.5, len(places) - 0.5],
        ),
        y=axis("", grid=False, showticklabels=False, range=[-0.5, 0.5]),
        height=126,
        margin={"l": 12, "r": 12, "t": 8, "b": 44},
    )


def draw_units(part: RemovalPart) -> Figure:
    """How many neurons of each layer stay."""
    layers = part.layers[::-1]
    told = [
        hover(f"layer {layer.layer}", f"{layer.after:,} of {layer.before:,} {part.unit} left")
        for layer in layers
    ]
    data = [
        bars(values, told, colour, name=name)
        for name, values, colour in (
            ("kept", [layer.after for layer in layers], COLOURS[0]),
            ("removed", [layer.before - layer.after for layer in layers], LINE),
        )
    ]
    return make_figure(
        f"{part.units_after:,} of {part.units_before:,} {part.unit} left, by layer",
        data,
        x=axis(part.unit, rangemode="tozero"),
        y=names_axis([str(layer.layer) for layer in layers], "layer"),
        height=120 + 26 * len(layers),
        legend=True,
        barmode="stack",
        bargap=0.25,
    )


def draw_profile(part: ProfilePart) -> Figure | None:
    """The share of the time of attention, feed-forward and all else at each length."""
    rows = sorted(
        (row for row in part.profile.rows if row.shape.sequence_length is not None),
        key=lambda row: row.shape.sequence_length or 0,
    )
    rows += [row for row in part.profile.rows if row.shape.sequence_length is None]
    if not rows:
        return None
    names = [
        "the data" if row.shape.sequence_length is None else f"{row.shape.sequence_length:,}" for row in rows
    ]
    totals = [sum(row.part_ms.values()) for row in rows]
    colours = (COLOURS[0], COLOURS[5], COLOURS[1], COLOURS[4])
    data = []
    for name, colour in zip((*PROFILE_PARTS.values(), REST), colours, strict=True):
        shares = [
            sum(share for own, share in row.shares.items() if PROFILE_PARTS.get(own, REST) == name)
            for row in rows
        ]
        data.append(
            {
                "type": "bar",
                "name": name,
                "x": list(range(len(rows))),
                "y": [100 * share for share in shares],
                "marker": {"color": colour},
                "text": [f"{share:.0%}" if share >= 0.07 else "" for share in shares],
                "textposition": "inside",
                "insidetextanchor": "middle",
                "textangle": 0,
                "textfont": {"size": 11, "color": BACK},
                "hoverinfo": "text",
                "hovertext": [
                    hover(
                        f"{length} tokens", f"{name}: {share:.1%}", f"{share * total:.2f} of {total:.2f} ms"
                    )
                    for length, share, total in zip(names, shares, totals, strict=True)
                ],
            }
        )
    return make_figure(
        "Share of the time by length: attention, feed-forward, all else",
        data,
        x=names_axis(names, "tokens a row"),
        y=axis("% of the time", range=[0, 100]),
        height=380,
        legend=True,
        barmode="stack",
        bargap=0.25,
    )


def draw_probe(part: ProbePart) -> Figure:
    """The accuracy of a linear classifier on each layer, beside its controls."""
    layers = [one.layer for one in part.layers]
    data = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": name,
            "x": layers,
            "y": values,
            "error_y": {"type": "data", "array": spreads, "color": colour, "thickness": 1.2, "width": 4},
            "line": {"color": colour, "width": 2},
            "marker": {"color": colour, "size": 8},
            "hoverinfo": "text",
            "hovertext": [
                hover(f"layer {layer}" if layer else "embeddings", f"{name}: {value:.4f} ± {spread:.4f}")
                for layer, value, spread in zip(layers, values, spreads, strict=True)
            ],
        }
        for name, values, spreads, colour in (
            (
                "this model",
                [one.accuracy for one in part.layers],
                [one.accuracy_spread for one in part.layers],
                COLOURS[0],
            ),
            (
                "random weights",
                [one.random_weights for one in part.layers],
                [one.random_weights_spread for one in part.layers],
                COLOURS[4],
            ),
        )
    ]
    return make_figure(
        f"Accuracy of linear probes by layer of {part.encoder}",
        data,
        x=axis("layer (0: embeddings)", grid=False, tickmode="linear", dtick=1 if len(layers) < 16 else 2),
        y=axis("accuracy", tickformat=".2f"),
        height=340,
        legend=True,
    )


def _heat(
    z: list[list[float | None]], told: list[list[str]], layers: list[int], *, known: bool
) -> dict[str, Any]:
    return {
        "type": "heatmap",
        "z": z,
        "y": layers,
        "zmin": 0,
        "zmax": 100,
        "colorscale": HEAT,
        "xgap": 2,
        "ygap": 2,
        "showscale": known,
        "colorbar": {
            "thickness": 10,
            "len": 0.9,
            "outlinewidth": 0,
            "tickvals": [0, 50, 99],
            "ticktext": ["least", "half", "most"],
            "tickfont": {"color": QUIET, "size": 11},
        },
        "hoverinfo": "text",
        "hovertext": told,
    }


def _crosses(places: Sequence[tuple[int, int]]) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "removed",
        "x": [head for head, _ in places],
        "y": [layer for _, layer in places],
        "marker": {
            "symbol": "x-thin-open",
            "size": 9,
            "color": COLOURS[6],
            "line": {"width": 2, "color": COLOURS[6]},
        },
        "hoverinfo": "skip",
    }
