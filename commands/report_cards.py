"""The cards of a report's page, and the figures that its script draws into them."""

import html
from collections import Counter
from collections.abc import Iterator, Sequence

from commands.report_figure import Figure


class Page:
    """A page while it is written: sections of HTML, and the figures that its script draws into them."""

    def __init__(self) -> None:
        self.sections: list[tuple[str, bool]] = []
        self._names: Counter[str] = Counter()
        self.figures: dict[str, Figure] = {}

    def add(self, name: str, title: str, *parts: str, half: bool = False) -> None:
        """A card called ``name``, or ``name-2`` where there is one already; ``parts`` are HTML."""
        self._names[name] += 1
        if self._names[name] > 1:
            name = f"{name}-{self._names[name]}"
        body = "\n".join(part for part in parts if part)
        self.sections.append((f'id="{name}"><h2>{html.escape(title)}</h2>\n{body}\n</section>', half))

    def cards(self) -> Iterator[str]:
        """The sections; two halves stand beside each other, and one that would stand alone is whole."""
        waiting = False
        for place, (section, half) in enumerate(self.sections):
            follows = place + 1 < len(self.sections) and self.sections[place + 1][1]
            alone = half and not waiting and not follows
            waiting = half and not alone and not waiting
            yield f'<section class="{"card half" if half and not alone else "card"}" {section}'

    def plot(self, figure: Figure | None, why_not: str = "") -> str:
        """The place that ``figure`` is drawn into; ``why_not`` where there is none, or nothing in it."""
        if figure is None or figure.is_empty:
            return note(why_not)
        name = f"figure-{len(self.figures) + 1}"
        self.figures[name] = figure
        label, height = html.escape(figure.label), f"height:{figure.height}px"
        if figure.min_width:
            height += f";min-width:{figure.min_width}px"
        plot = f'<div class="plot" id="{name}" style="{height}" role="img" aria-label="{label}"></div>'
        return f'<div class="scroll">{plot}</div>' if figure.min_width else plot


def note(*sentences: str) -> str:
    """Small words below a chart; nothing where there are none."""
    words = " ".join(sentence for sentence in sentences if sentence)
    return f'<p class="note">{html.escape(words)}</p>' if words else ""


def lead(sentences: str) -> str:
    """What a card says before its chart."""
    return f"<p>{html.escape(sentences)}</p>" if sentences else ""


def listed(names: Sequence[str]) -> str:
    """``a, b and c``."""
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)
