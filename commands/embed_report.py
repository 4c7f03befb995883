"""The results of `enc embed`: what was made, or the layers and poolings beside each other."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from commands.result_tables import model_words
from commands.tables import duration, facts_table, make_table, number, print_indented, size
from encoder.vector_choice import POOLINGS
from encoder.wording import counted
from recipes.embed import EmbedResult
from recipes.embed_comparison import EmbedComparison
from recipes.encoders import EncoderResult

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


def show_embedding(result: EmbedResult, console: "Console") -> None:
    """What the file holds, and how fast it was made."""
    console.print()
    console.print(facts_table(_facts(result)))


def show_comparison(compared: EmbedComparison, console: "Console") -> None:
    """Layers by poolings, the best marked; then what may be claimed."""
    console.print()
    console.print(_choices_table(compared))
    for line in _remarks(compared):
        print_indented(console, line)
    console.print()
    console.print(
        facts_table([("model", describe(compared.encoder)), ("whole run", duration(compared.seconds))])
    )
    console.print()
    console.print(compared.verdict, markup=False, style="bold")


def describe(encoder: EncoderResult) -> str:
    """``models/e5: bert, 12 layers, hidden size 384, post-norm``."""
    return model_words(encoder.source, encoder)


def _facts(result: EmbedResult) -> Iterable[tuple[str, str]]:
    yield "vectors", f"{result.rows:,} of {result.dimension} numbers, float32"
    scaled = "length 1 each" if result.normalized else "as the model makes them, of any length"
    yield "made of", f"--layers {result.layers} --pooling {result.pooling}, {scaled}"
    if result.prefix:
        yield "prefix", repr(result.prefix)
    yield "model", describe(result.encoder)
    if result.rows_per_s is not None:
        made = result.rows - (result.resumed_from_row or 0)
        threads = f" with {counted(result.threads, 'thread')}" if result.device == "cpu" else ""
        tokens = result.encoded.tokens / max(1, result.encoded.rows)
        yield (
            "speed",
            f"{result.rows_per_s:,.0f} rows/s over {made:,} rows of {tokens:.0f} tokens, "
            f"{result.runtime} on {result.device}{threads}",
        )
    if result.peak_memory_bytes is not None:
        yield "peak memory", size(result.peak_memory_bytes)
    yield "whole run", duration(result.seconds)
    yield "saved in", str(result.output)


def _choices_table(compared: EmbedComparison) -> "Table":
    from rich.text import Text

    title = f"Spearman's correlation on {compared.rows:,} {compared.split} pairs"
    table = make_table("layers", *POOLINGS, title=title)
    scores = {(one.layers, one.pooling): one.score for one in compared.choices}
    for layers in dict.fromkeys(one.layers for one in compared.choices):
        cells = []
        for pooling in POOLINGS:
            best = (layers, pooling) == (compared.best.layers, compared.best.pooling)
            text = number(scores[layers, pooling]) + (" *" if best else "  ")
            cells.append(Text(text, style="bold green" if best else ""))
        table.add_row(_called(layers, compared.encoder.num_hidden_layers), *cells)
    return table


def _called(layers: str, num_layers: int) -> str:
    """What `--layers` stands for, where the number alone does not say it."""
    states = {"0": "embeddings", str(num_layers): "last", "1:": "mean of all layers"}
    if layers.startswith("-"):
        return f"{layers}  mean of the last {layers[1:-1]}"
    return f"{layers}  {states[layers]}" if layers in states else layers


def _remarks(compared: EmbedComparison) -> Iterable[str]:
    yield f"* the best of the {compared.split} pairs. Cosines of vectors against the labels" + (
        f", with the prefix {compared.prefix!r}." if compared.prefix else ", without a prefix."
    )
    if compared.held_out_split is None:
        return
    best, usual = compared.best, compared.usual
    told = (
        f"On {compared.held_out_rows:,} {compared.held_out_split} pairs, which nothing was chosen on: "
        f"{number(compared.held_out_best)} with --layers {best.layers} --pooling {best.pooling}"
    )
    if best != usual:
        told += (
            f", {number(compared.held_out_usual)} with the usual --layers {usual.layers} "
            f"--pooling {usual.pooling}"
        )
    yield f"{told}."
    if (found := compared.difference) is not None:
        yield f"Difference: {found.difference:+.4f}, 95% interval {found.low:+.4f} to {found.high:+.4f}."
