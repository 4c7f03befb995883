"""The page of `enc report`: one file of HTML with charts, tables and words, and no request to anywhere."""

import html
import re
from importlib import metadata

from commands.page import embed_data, make_page
from commands.report_cards import Page
from commands.report_sections import add_candidates, add_latencies, add_origin, add_sizes, add_steps
from commands.report_sections_inside import add_classes, add_layers, add_training
from commands.report_style import SCRIPT, STYLE
from commands.report_tables import figures_of
from encoder.wording import counted
from recipes.report import Report


def render_report(report: Report) -> str:
    """The whole page."""
    from plotly.offline import get_plotlyjs

    page = Page()
    add_steps(page, report)
    add_candidates(page, report)
    add_layers(page, report)
    add_training(page, report)
    add_classes(page, report)
    add_latencies(page, report)
    add_sizes(page, report)
    add_origin(page, report)
    sections = "\n".join(page.cards())
    figures = {name: {"data": one.data, "layout": one.layout} for name, one in page.figures.items()}
    title = report.headline.sentence if report.headline else f"Runs in {report.folder}"
    made = f"{report.created:%Y-%m-%d %H:%M} UTC"
    body = f"""<main>
<header>
<p class="over">enc report · {html.escape(report.folder)} · {counted(len(report.runs), "run")} · {made}</p>
<h1>{_unbroken(html.escape(title))}</h1>
{_remarks(report)}
</header>
{figures_of(report)}
<noscript><p>This page draws its charts with JavaScript, from numbers inside it.</p></noscript>
<div class="grid">
{sections}
</div>
<footer>Made by enc {html.escape(_version())}, charts by Plotly. All that this file shows is in it.</footer>
</main>
{embed_data("figures", figures)}
<script>{get_plotlyjs()}</script>
<script>{SCRIPT}</script>"""
    return make_page(title, STYLE, body)


def _unbroken(text: str) -> str:
    """No line ends between a number and its unit."""
    return re.sub(r"(\d) (?=(?:MB|kB|GB|ms|points?|layers?|heads)\b)", "\\1\u00a0", text)


def _version() -> str:
    return metadata.version("enc-encoder")


def _remarks(report: Report) -> str:
    if report.headline is None or not report.headline.remarks:
        return ""
    return "<ul>" + "".join(f"<li>{html.escape(line)}</li>" for line in report.headline.remarks) + "</ul>"
