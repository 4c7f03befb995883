"""The result of `enc depth`: encoders side by side, each layer by layer, and a pipeline on paper."""

from typing import TYPE_CHECKING

from commands.pretrain_report import describe_architecture
from commands.tables import duration, facts_table, make_table, print_indented
from recipes.depth_result import DepthModel, DepthResult, PipelinePart

if TYPE_CHECKING:
    from rich.console import Console


def show_depth(result: DepthResult, console: "Console") -> None:
    """A line for each encoder, then its layers, then the pipeline."""
    if result.models:
        console.print()
        _show_models(result, console)
    for model in result.models:
        console.print()
        _show_layers(model, console)
    if result.models:
        for line in (
            "stream: root mean square of a token's numbers, as the next layer reads them, before its norm.",
            "adds: root mean square of what a sublayer makes, relative to what it reads.",
            "gradient: length of the gradient of a layer's parameters. rank: how many dimensions the tokens "
            "fill (Roy and Vetterli 2007).",
        ):
            print_indented(console, line)
    if result.pipeline is not None:
        console.print()
        _show_pipeline(result.pipeline, console)
    facts = [("whole run", duration(result.seconds))]
    if result.output is not None:
        facts.append(("saved in", result.output))
    console.print()
    console.print(facts_table(facts))


def _show_models(result: DepthResult, console: "Console") -> None:
    title = f"gradients of: {result.learns}, {result.rows:,} rows"
    columns = (
        "",
        "norm",
        "residual",
        "layers",
        "stream\ngrows",
        "last adds\n/ first",
        "gradient\nfirst / last",
    )
    table = make_table(*columns, "rank\nfirst", "rank\nlast", "loss", title=title, texts=3)
    for model in result.models:
        shape = model.architecture
        block = "" if shape.residual_block_size is None else f" of {shape.residual_block_size}"
        table.add_row(
            model.source,
            shape.norm,
            shape.residual + block,
            str(shape.num_hidden_layers),
            _times(model.growth),
            _times(model.dilution),
            _times(model.gradient_ratio),
            f"{model.points[1].effective_rank:.1f}",
            f"{model.points[-1].effective_rank:.1f}",
            f"{model.loss:.4f}",
        )
    console.print(table)


def _show_layers(model: DepthModel, console: "Console") -> None:
    console.print(f"{model.source}: {describe_architecture(model.architecture)}", markup=False)
    table = make_table("layer", "stream", "attention\nadds", "feed-forward\nadds", "gradient", "rank")
    for point in model.points:
        table.add_row(
            "embeddings" if point.depth == 0 else str(point.depth - 1),
            f"{point.stream:.3f}",
            _share(point.attention_share),
            _share(point.feed_forward_share),
            f"{point.gradient:.3g}",
            f"{point.effective_rank:.1f}",
        )
    console.print(table)


def _show_pipeline(found: PipelinePart, console: "Console") -> None:
    title = (
        f"on paper: {found.blocks} blocks through {found.stages} devices with {found.interleave} "
        f"{'piece' if found.interleave == 1 else 'pieces'} each"
    )
    console.print(title, markup=False)
    table = make_table("to piece", "devices", "carries", "of them new there", texts=2)
    for one in found.transitions:
        table.add_row(str(one.piece), f"{one.source} → {one.target}", str(one.sources), str(one.new))
    console.print(table)
    before, after = found.without_cache, found.with_cache
    change = 0.0 if not before else (after - before) / before
    for line in (
        f"{before} → {after} transfers of block sums (the embeddings among them) for a microbatch, forwards: "
        f"{change:+.0%} where devices keep what they have; as many backwards, and {found.microbatches:,} "
        "times that for a batch.",
        f"{found.partial_sums} partial sums go along beside them, as a plain residual's stream does.",
        f"A device waits {found.bubble_share:.1%} of the time of a batch of {found.microbatches:,} "
        "microbatches"
        + (f", without interleaving {found.bubble_share_plain:.1%}." if found.interleave > 1 else " (1F1B)."),
        "This is counted, not measured: nothing was sent anywhere.",
    ):
        print_indented(console, line)


def _times(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}×"


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
