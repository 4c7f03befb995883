"""The sections of a report on its models, their cost and their origin, each left out where it has no data."""

import html
from collections.abc import Iterator

from commands.report_cards import Page, lead, listed, note
from commands.report_charts import draw_steps, drawn_steps, find_far
from commands.report_charts_cost import draw_bytes, draw_latencies, draw_parameters, group_latencies
from commands.report_charts_search import draw_candidates
from commands.report_tables import facts, latency_table, steps_table
from commands.tables import duration
from encoder.metrics import METRIC_TITLES
from encoder.wording import counted
from recipes.report import Report
from recipes.report_steps import are_timed

# Groups of latencies that get a chart; all are in the table.
MOST_GROUPS = 2


def add_steps(page: Page, report: Report) -> None:
    """Score against latency, a point a model, and the table of them."""
    if not report.steps:
        return
    figure, timed = draw_steps(report), are_timed(report.steps)
    if figure is None:
        page.add("steps", "The models", note(_why_no_chart(report)), steps_table(report))
        return
    what = "latency" if timed else "size"
    metric = METRIC_TITLES.get(report.rows.metric, report.rows.metric) if report.rows else "Score"
    page.add(
        "steps",
        f"{metric[:1].upper()}{metric[1:]} against {what}",
        lead(_front_sentence(report, what)),
        page.plot(figure),
        note(*_steps_notes(report, timed=timed)),
        steps_table(report),
    )


def _why_no_chart(report: Report) -> str:
    number = len(drawn_steps(report))
    if number == 0:
        return "No chart: no model here has both a score and a size or latency."
    return "No chart: only one model here has both a score and a size or latency." if number == 1 else ""


def add_candidates(page: Page, report: Report) -> None:
    """Score against latency of what a compression tried."""
    for part in report.candidates:
        figure = draw_candidates(part)
        chosen = [one.name for one in part.candidates if one.chosen]
        page.add(
            "candidates",
            f"What the search of {part.name} looked at",
            lead(" ".join(part.verdict)),
            page.plot(figure, "No chart: fewer than two candidates have a score."),
            note(
                f"{counted(len(part.candidates), 'candidate')}.",
                f"Chosen: {listed(chosen)}." if chosen else "",
                "Placed by how many times as fast as the original each is, the chosen one at its measured "
                "p50. Hollow: not made and timed, but predicted from a table of times of this machine."
                if figure
                else "",
            ),
        )


def add_latencies(page: Page, report: Report) -> None:
    """Latencies in percentiles, for each device and shape of input."""
    if not report.latencies:
        return
    groups = group_latencies(report.latencies)
    shown = list(groups.items())[:MOST_GROUPS]
    runtimes = sorted({part.latency.runtime for part in report.latencies}, reverse=True)  # torch first
    plots = [
        f"<div><h3>{html.escape(title)}</h3>{page.plot(draw_latencies(title, parts, runtimes))}</div>"
        for title, parts in shown
    ]
    page.add(
        "latency",
        "Latency by runtime and batch",
        f'<div class="pair">{"".join(plots)}</div>',
        f"<details><summary>{counted(len(report.latencies), 'measurement')} as a table</summary>",
        f"{latency_table(groups)}</details>",
    )


def add_sizes(page: Page, report: Report) -> None:
    """What each model takes on disk."""
    steps = [step for step in report.steps if step.bytes_on_disk]
    if not steps:
        return
    plots = (draw_bytes(steps), draw_parameters(steps))
    page.add(
        "size",
        "Size",
        f'<div class="pair">{"".join(f"<div>{page.plot(plot)}</div>" for plot in plots if plot)}</div>',
    )


def add_origin(page: Page, report: Report) -> None:
    """The commands that made all of it, and the machines they ran on."""
    runs = "\n".join(
        f'<p class="run">{html.escape(run.name)} <span>· {run.created:%Y-%m-%d %H:%M} UTC · '
        f"{duration(run.seconds)}{'' if run.seed is None else f' · seed {run.seed}'}</span></p>"
        f"<pre>{html.escape(run.line)}</pre>"
        for run in report.runs
    )
    page.add(
        "commands",
        "Commands",
        lead("Every run, the oldest first, with the options that are not the default."),
        runs,
    )
    page.add(
        "machine", "Machine and versions", *(facts(part, len(report.machines)) for part in report.machines)
    )
    if report.missing or report.left_out:
        lines = [
            f"{html.escape(one.what)}: <code>{html.escape(one.command)}</code>" for one in report.missing
        ]
        lines += [html.escape(line) for line in report.left_out]
        page.add(
            "missing",
            "Not in this report",
            f'<ul class="missing">{"".join(f"<li>{line}</li>" for line in lines)}</ul>',
        )


def _front_sentence(report: Report, what: str) -> str:
    front = [f"{step.number} {step.name}" for step in report.steps if step.front]
    if not front:
        return ""
    names = listed(front)
    cheaper = "faster" if what == "latency" else "smaller"
    if len(front) == 1:
        return f"On the Pareto front: {names}. No other model here is both better and {cheaper}."
    return (
        f"On the Pareto front: {names}. For each of them: no other model here is both better and {cheaper}."
    )


def _steps_notes(report: Report, *, timed: bool) -> Iterator[str]:
    rows = report.rows
    if rows is not None and any(step.score and step.score.low is not None for step in report.steps):
        yield (
            f"Bars: 95% interval of the score on {rows.rows:,} {rows.split} rows; where they overlap, the "
            "order may be chance, and so may the front be."
        )
    if report.timed is not None and timed:
        threads = f", {counted(report.timed.threads, 'thread')}" if report.timed.device == "cpu" else ""
        tokens = (
            f"the data's own rows, {report.timed.mean_tokens:.0f} tokens on average"
            if report.timed.sequence_length is None
            else f"{report.timed.sequence_length} tokens a row"
        )
        yield f"Latency: {report.timed.device_name}{threads}, {tokens}."
        if any(step.gain is not None and step.gain.how != "apart" for step in report.steps):
            yield (
                "What was timed in turns with the first of its line is placed by that ratio; the table has "
                "the p50 that was measured."
            )
    if any(step.placed for step in report.steps):
        yield "Hollow: the ratio was measured under other circumstances, such as another number of threads."
    drawn = drawn_steps(report)
    if elsewhere := [f"{step.number} {step.name}" for step in drawn if not step.is_comparable]:
        yield (
            f"Grey: scored on other rows, so that neither the front nor the order says anything of them: "
            f"{listed(elsewhere)}."
        )
    if far := [
        f"{one.number} {one.name} ({one.score.value:.4f})" for one in find_far(report, drawn) if one.score
    ]:
        yield f"Triangles at the edge lie beyond it: {listed(far)}."
    numbers = {step.number for step in drawn}
    apart = [
        f"{step.number} {step.name}"
        for step in report.steps
        if step.kept and step.score is not None and step.number not in numbers
    ]
    if apart:
        cost = "latency" if timed else "size"
        yield f"Not in the chart, for want of a {cost} or of such a score: {listed(apart)}."
