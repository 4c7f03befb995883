"""The result of `enc probe`: layers beside their controls, and what follows."""

from typing import TYPE_CHECKING

from commands.embed_report import describe
from commands.tables import duration, facts_table, make_table, print_indented
from recipes.probe_verdict import ProbeResult

if TYPE_CHECKING:
    from rich.console import Console

BAR = 20


def show_probe(result: ProbeResult, console: "Console") -> None:
    """A line a layer, then the verdict and the hints."""
    title = f"a linear classifier on each layer, on {result.rows:,} {result.split} rows"
    columns = ("layer", "", "accuracy", "random\nweights", "shuffled\nlabels", "selectivity")
    table = make_table(*columns, title=title, texts=2)
    for layer in result.layers:
        bar = "█" * round(BAR * layer.accuracy)
        called = {0: "embeddings", len(result.layers) - 1: f"{layer.layer} (last)"}
        table.add_row(
            called.get(layer.layer, str(layer.layer)),
            bar,
            f"{layer.accuracy:.4f} ±{layer.accuracy_spread:.4f}",
            f"{layer.random_weights:.4f} ±{layer.random_weights_spread:.4f}",
            f"{layer.shuffled_labels:.4f} ±{layer.shuffled_labels_spread:.4f}",
            f"{layer.selectivity:+.4f} ±{layer.selectivity_spread:.4f}",
        )
    console.print()
    console.print(table)
    for line in (
        f"Means of {result.seeds} seeds ± their standard deviation; each drew {result.train_rows:,} training "
        "rows, random weights and shuffled labels of its own.",
        f"The most frequent class is {result.most_frequent:.1%} of the rows. Selectivity is the accuracy "
        "less that with random weights.",
    ):
        print_indented(console, line)
    console.print()
    facts = [("model", describe(result.encoder)), ("pooling", result.pooling)]
    facts.append(("whole run", duration(result.seconds)))
    if result.output is not None:
        facts.append(("saved in", result.output))
    console.print(facts_table(facts))
    console.print()
    for line in result.verdict.sentences:
        console.print(line, markup=False, style="bold")
    for line in result.verdict.hints:
        print_indented(console, line)
