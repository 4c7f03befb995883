"""The page of `enc attention`: one file of HTML with all that it needs inside, and no request to anywhere."""

import base64
import html
from typing import TYPE_CHECKING, Any

from commands.attention_style import SCRIPT, STYLE
from commands.page import embed_data, make_page

if TYPE_CHECKING:
    from recipes.attention import AttentionResult, Seen

# Weights in the page are whole numbers from 0 to this.
WHOLE = 65535


def render_page(seen: "Seen") -> str:
    """The whole page, for light and dark and any width."""
    title = f"Attention of {seen.result.encoder.source}"
    body = f"""<main>
<header>
<h1>{html.escape(title)}</h1>
{_answer(seen.result)}
</header>
<noscript><p>This page draws its pictures with JavaScript, from numbers inside it.</p></noscript>
<section aria-label="All heads">
<div class="bar"><label for="measure">Heads by</label> <select id="measure"></select></div>
<div id="grid"></div>
<p id="legend" class="quiet"></p>
</section>
<section id="one" aria-live="polite">
<div class="bar"><h2 id="name"></h2>
<button id="before" aria-label="the head before">‹</button>
<button id="after" aria-label="the next head">›</button></div>
<dl id="facts"></dl>
<p class="quiet">Choose a token to see what it looks at.</p>
<div id="tokens"></div>
<ol id="strongest"></ol>
<div id="matrix"><div id="rows" aria-hidden="true"></div><canvas id="map"></canvas></div>
<p id="readout" class="quiet"></p>
</section>
<section class="words">
{_words(seen.result)}
</section>
</main>
{embed_data("data", _data(seen))}
<script>{SCRIPT}</script>"""
    return make_page(title, STYLE, body)


def _data(seen: "Seen") -> dict[str, Any]:
    result = seen.result
    there = [head for head in result.heads if not head.is_gone]
    weights = b"".join(
        (seen.weights[head.layer, head.head] * WHOLE).round().astype("<u2").tobytes() for head in there
    )
    return {
        "tokens": [[token.text, token.sequence] for token in result.tokens],
        "layers": result.encoder.num_hidden_layers,
        "width": 1 + max((head.head for head in result.heads), default=-1),
        "heads": [
            {
                "layer": head.layer,
                "head": head.head,
                "gone": head.is_gone,
                "entropy": head.entropy_bits,
                "distance": head.distance_tokens,
                "special": head.special_share,
                "effect": head.effect,
                "importance": head.importance,
            }
            for head in result.heads
        ],
        "answer": None if result.answer is None else _called(result),
        "logit": None if result.answer is None else result.answer.logit,
        "importanceFrom": result.importance_from,
        "weights": base64.b64encode(weights).decode("ascii"),
    }


def _called(result: "AttentionResult") -> str:
    """The answer's logit in a sentence."""
    assert result.answer is not None
    return "the value" if result.answer.label is None else f"the logit of “{result.answer.label}”"


def _answer(result: "AttentionResult") -> str:
    texts = [result.text] if result.text_pair is None else [result.text, result.text_pair]
    lines = [f"<p class=text>{html.escape(text)}</p>" for text in texts]
    answer = result.answer
    if answer is None:
        lines.append("<p>An encoder without a classifier: it gives no answer that a head could change.</p>")
    elif answer.label is None:
        lines.append(f"<p>Answer: <b>{answer.logit:.3f}</b></p>")
    else:
        lines.append(
            f"<p>Answer: <b>{html.escape(answer.label)}</b>, probability {answer.probability:.3f}, "
            f"logit {answer.logit:.2f}</p>"
        )
    return "\n".join(lines)


def _words(result: "AttentionResult") -> str:
    lines = [
        "A weight shows where a head looks, not why the model decided: what it takes from there may be next "
        "to nothing, and other paths lead around every head."
    ]
    if result.answer is not None:
        called = html.escape(_called(result))
        lines += [
            f"The effect is an experiment: {called} with all heads, less what it is when this head alone is "
            "silenced. Effects do not add up, because one head can stand in for another.",
            "Of the last layer the classifier sees only the first token; the lines of the others reach no "
            "answer.",
        ]
    lines.append(
        "Entropy: 0 bits is one token, more is more tokens alike. Distance: how many tokens away a head "
        "looks. Both are means over the tokens that look. Weight on special tokens is often a head at rest."
    )
    if result.importance_from is not None:
        lines.append(f"Importance: {html.escape(result.importance_from)}.")
    return "\n".join(f"<p>{line}</p>" for line in lines)
