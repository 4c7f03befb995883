"""What `enc attention` found, in a terminal: one head token by token, or all heads in short."""

from typing import TYPE_CHECKING

from commands.tables import facts_table, make_table, print_indented
from recipes.attention import AttentionResult, Seen
from recipes.attention_heads import HeadResult

if TYPE_CHECKING:
    from rich.console import Console

# Of each token so many of those that it looks at are shown, and of all heads so many.
SHOWN_TOKENS, SHOWN_HEADS = 3, 5
BAR = 10


def show_attention(seen: Seen, console: "Console", *, layer: int | None, head: int | None) -> None:
    """The head that was named, or else those with the largest effects; and where the page lies."""
    result = seen.result
    console.print()
    if layer is not None and head is not None:
        _show_head(seen, console, layer, head)
    else:
        _show_strongest(result, console)
    print_indented(console, "A weight shows where a head looks, not why the model decided.")
    console.print()
    facts = [("text", f"{len(result.tokens)} tokens")]
    if (answer := result.answer) is not None:
        found = f"{answer.logit:.4f}"
        if answer.label is not None:
            found = f"{answer.label}, probability {answer.probability:.4f}, logit {answer.logit:.4f}"
        facts.append(("answer", found))
    if result.output is not None:
        facts.append(("page", f"{result.output}: open it in a browser; it needs no network"))
    console.print(facts_table(facts))


def _show_head(seen: Seen, console: "Console", layer: int, head: int) -> None:
    from rich.text import Text

    result, weights = seen.result, seen.weights[layer, head]
    found = next(one for one in result.heads if (one.layer, one.head) == (layer, head))
    names = [token.text for token in result.tokens]
    table = make_table("token", "looks at", title=f"layer {layer}, head {head}", texts=2)
    for name, row in zip(names, weights, strict=True):
        cells = Text()
        for place in (-row).argsort(kind="stable")[:SHOWN_TOKENS]:
            share = float(row[place])
            cells.append(f"{'█' * round(BAR * share)} ", style="blue")
            cells.append(f"{names[place]} {share:.2f}   ")
        table.add_row(Text(name), cells)
    console.print(table)
    print_indented(console, _describe(found, result))


def _show_strongest(result: AttentionResult, console: "Console") -> None:
    there = [one for one in result.heads if not one.is_gone]
    by_effect = result.answer is not None
    if by_effect:
        there.sort(key=lambda one: -abs(one.effect or 0.0))
    else:
        there.sort(key=lambda one: one.entropy_bits or 0.0)
    title = "the largest effects on the answer" if by_effect else "the heads that look most sharply"
    columns = ["layer", "head", "entropy", "distance", "on special"]
    columns += ["effect"] if by_effect else []
    columns += ["importance"] if result.importance_from else []
    table = make_table(*columns, title=title, texts=0)
    for one in there[:SHOWN_HEADS]:
        cells = [str(one.layer), str(one.head), f"{one.entropy_bits:.2f} bits", f"{one.distance_tokens:.1f}"]
        cells.append(f"{one.special_share:.0%}")
        cells += [f"{one.effect:+.4f}"] if by_effect else []
        if result.importance_from:
            cells.append("–" if one.importance is None else f"{one.importance:.2e}")
        table.add_row(*cells)
    console.print(table)


def _describe(head: HeadResult, result: AttentionResult) -> str:
    parts = [
        f"entropy {head.entropy_bits:.2f} bits, {head.distance_tokens:.1f} tokens away on average, "
        f"{head.special_share:.0%} of the weight on special tokens"
    ]
    if head.effect is not None and result.answer is not None:
        what = "the value" if result.answer.label is None else f"the logit of {result.answer.label}"
        parts.append(
            f"without this head {what} would be {result.answer.logit - head.effect:.4f} instead of "
            f"{result.answer.logit:.4f}"
        )
    if head.importance is not None:
        parts.append(f"importance {head.importance:.2e} ({result.importance_from})")
    return "; ".join(parts) + "."
