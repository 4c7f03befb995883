"""What the sublayers of a model take of those before them: a map in a terminal, and a page."""

import html
from typing import TYPE_CHECKING

from commands.page import make_page
from commands.tables import facts_table, make_table, print_indented

if TYPE_CHECKING:
    from rich.console import Console

    from recipes.attention import AttentionResult
    from recipes.attention_residual import ResidualResult

# How dark a cell is, by how many times an equal share the weight is.
SHADES = ((0.25, "·"), (0.75, "░"), (1.5, "▒"), (3.0, "▓"), (float("inf"), "█"))
DARKEST = 4.0
BAR = 8
STYLE = """
:root { --blue:58,120,235; --red:208,70,30; }
@media (prefers-color-scheme: dark) { :root { --blue:96,156,255; --red:255,128,84; } }
.text { border-left:3px solid var(--line); padding-left:.6rem; overflow-wrap:anywhere; }
.map { overflow-x:auto; } table { border-collapse:collapse; font-size:.8rem; }
th { font-weight:normal; text-align:left; white-space:nowrap; padding:0 .5rem; }
thead th { writing-mode:vertical-rl; padding:.3rem 0; }
td.w { border:1px solid var(--line); min-width:1.4rem; height:1.4rem; text-align:center; font-size:.65rem; }
td.e { padding-left:.8rem; white-space:nowrap; }
td.e span { display:inline-block; height:.7rem; margin-left:.4rem; }
"""
WORDS = (
    "A column is a sublayer, or the end; its cells are what it takes of each source, in percent, the mean "
    "over the tokens of this text. A cell is as dark as its weight is larger than an equal share.",
    "The effect is an experiment: the logit, less what it is when nobody reads this source and the others "
    "are weighed anew. Effects do not add up. A weight says how much is read, not what it is worth.",
)


def show_residual(result: "AttentionResult", residual: "ResidualResult", console: "Console") -> None:
    """The map, a line a source, with its effect; and where the page lies."""
    from rich.text import Text

    console.print()
    with_effect = result.answer is not None
    gap = "" if len(residual.readers) > 30 else " "
    columns = ["source", "read by each sublayer, and at the end", *(["effect"] if with_effect else [])]
    table = make_table(*columns, title="what each sublayer takes of those before it", texts=2)
    for number, source in enumerate(residual.sources):
        cells = [_shade(reader.weights, number) for reader in residual.readers]
        line: list[str | Text] = [source.name, Text(gap.join(cells), no_wrap=True)]
        line += [f"{source.effect:+.4f}"] if source.effect is not None else []
        table.add_row(*line)
    console.print(table)
    print_indented(console, "█ three times an equal share and more, ▓ ▒ ░ less, · next to nothing.")
    print_indented(console, "A weight says how much is read, not what it is worth; the effect does.")
    console.print()
    facts = [("text", f"{len(result.tokens)} tokens")]
    if (answer := result.answer) is not None:
        label = "" if answer.label is None else f"{answer.label}, "
        facts.append(("answer", f"{label}logit {answer.logit:.4f}"))
    if result.output is not None:
        facts.append(("page", f"{result.output}: open it in a browser; it needs no network"))
    console.print(facts_table(facts))


def _share(weights: tuple[float, ...], number: int) -> float | None:
    """How many times an equal share the weight of a source is; ``None`` where it comes later."""
    return weights[number] * len(weights) if number < len(weights) else None


def _shade(weights: tuple[float, ...], number: int) -> str:
    share = _share(weights, number)
    return " " if share is None else next(shade for limit, shade in SHADES if share < limit)


def render_residual_page(result: "AttentionResult", residual: "ResidualResult") -> str:
    """One file of HTML with all that it needs inside, without scripts."""
    title = f"What sublayers of {result.encoder.source} take of those before them"
    texts = [result.text] if result.text_pair is None else [result.text, result.text_pair]
    answer = ""
    if result.answer is not None:
        label = "" if result.answer.label is None else f"<b>{html.escape(result.answer.label)}</b>, "
        answer = f"<p>Answer: {label}logit {result.answer.logit:.3f}</p>"
    readers = "".join(f"<th scope=col>{reader.name}</th>" for reader in residual.readers)
    body = f"""<main>
<h1>{html.escape(title)}</h1>
{"".join(f"<p class=text>{html.escape(text)}</p>" for text in texts)}
{answer}
<div class="map"><table>
<thead><tr><th></th>{readers}{"" if result.answer is None else "<th>effect</th>"}</tr></thead>
<tbody>
{_lines(residual)}
</tbody>
</table></div>
{"".join(f"<p class=quiet>{line}</p>" for line in WORDS)}
</main>"""
    return make_page(title, STYLE, body)


def _lines(residual: "ResidualResult") -> str:
    most = max((abs(source.effect or 0.0) for source in residual.sources), default=0.0) or 1.0
    lines = []
    for number, source in enumerate(residual.sources):
        cells = []
        for reader in residual.readers:
            share = _share(reader.weights, number)
            if share is None:
                cells.append("<td></td>")
                continue
            dark, weight = min(1.0, share / DARKEST), reader.weights[number]
            cells.append(
                f'<td class=w style="background:rgba(var(--blue),{dark:.2f})" '
                f'title="{reader.name} takes {weight:.3f} of {source.name}">{100 * weight:.0f}</td>'
            )
        effect = ""
        if source.effect is not None:
            hue, width = "red" if source.effect < 0 else "blue", BAR * abs(source.effect) / most
            bar = f'<span style="width:{width:.2f}rem;background:rgb(var(--{hue}))"></span>'
            effect = f"<td class=e>{source.effect:+.4f}{bar}</td>"
        lines.append(f"<tr><th scope=row>{source.name}</th>{''.join(cells)}{effect}</tr>")
    return "\n".join(lines)
