"""The sections of the page of a report, each left out where it has no data."""

import html
from collections import Counter
from collections.abc import Iterator, Sequence

from commands.report_charts import draw_candidates, draw_steps, find_far
from commands.report_charts_classes import MOST_CLASSES, draw_class_scores, draw_confusion
from commands.report_charts_cost import draw_bytes, draw_latencies, draw_parameters, group_latencies
from commands.report_charts_layers import draw_heads, draw_layers, draw_probe, draw_profile, draw_units
from commands.report_charts_training import draw_losses, draw_sweep, draw_validation
from commands.report_figure import Figure
from commands.report_tables import facts, latency_table, steps_table
from commands.tables import count, duration
from encoder.metrics import METRIC_TITLES
from recipes.report import Report
from recipes.report_parts import ClassPart

# Groups of latencies that get a chart; all are in the table.
MOST_GROUPS = 2


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

    def plot(self, figure: Figure | None) -> str:
        """The place that ``figure`` is drawn into; nothing where there is none."""
        if figure is None:
            return ""
        name = f"figure-{len(self.figures) + 1}"
        self.figures[name] = figure
        label, height = html.escape(figure.label), f"height:{figure.height}px"
        if figure.min_width:
            height += f";min-width:{figure.min_width}px"
        plot = f'<div class="plot" id="{name}" style="{height}" role="img" aria-label="{label}"></div>'
        return f'<div class="scroll">{plot}</div>' if figure.min_width else plot


def add_steps(page: Page, report: Report) -> None:
    if not report.steps:
        return
    figure = draw_steps(report)
    if figure is None:
        page.add("steps", "The models", steps_table(report))
        return
    timed = sum(step.p50_ms is not None for step in report.steps if step.score) > 1
    what = "latency" if timed else "size"
    metric = METRIC_TITLES.get(report.rows.metric, report.rows.metric) if report.rows else "Score"
    page.add(
        "steps",
        f"{metric[:1].upper()}{metric[1:]} against {what}",
        _lead(_front_sentence(report, what)),
        page.plot(figure),
        _note(*_steps_notes(report, timed=timed)),
        steps_table(report),
    )


def add_candidates(page: Page, report: Report) -> None:
    for part in report.candidates:
        if figure := draw_candidates(part):
            chosen = [one.name for one in part.candidates if one.chosen]
            sentence = f"{len(part.candidates):,} candidates" + (
                f"; chosen: {_listed(chosen)}." if chosen else "."
            )
            page.add(
                "candidates",
                f"What the search of {part.name} looked at",
                _lead(" ".join(part.verdict) or sentence),
                page.plot(figure),
                _note(sentence if part.verdict else ""),
            )


def add_layers(page: Page, report: Report) -> None:
    """Freezing, removal, profiles, probes: what is told layer by layer."""
    for sweep in report.sweeps:
        seeds = len(sweep.sweep.seeds)
        page.add(
            "freezing",
            f"How many layers can stay frozen: {sweep.name}",
            _lead(" ".join(sweep.sweep.verdict.sentences[:-1] or sweep.sweep.verdict.sentences)),
            page.plot(draw_sweep(sweep)),
            _note(
                "Bars: standard deviation over the seeds." if seeds > 1 else "One seed: no spread is known.",
                sweep.sweep.verdict.sentences[-1],
            ),
            half=True,
        )
    for part in report.removals:
        gone = part.units_before - part.units_after
        sentence = f"{gone:,} of {part.units_before:,} {part.unit} of {part.parent} were removed."
        heads, layers = part.unit == "heads", part.unit == "layers"
        scored = any(layer.importance for layer in part.layers)
        note = ""
        if layers:
            note = "Crosses: removed." + (
                " Shade: how much the loss rises without the layer alone." if scored else ""
            )
        if heads:
            note = "Crosses: removed." + (
                " Shade: the share of all heads that matter less."
                if scored
                else " The heads were not scored."
            )
        page.add(
            "removed",
            f"{part.unit[:1].upper()}{part.unit[1:]} removed: {part.name}",
            _lead(sentence),
            page.plot(draw_heads(part) if heads else draw_layers(part) if layers else draw_units(part)),
            _note(note),
            half=not layers,
        )
    for profile in report.profiles:
        if figure := draw_profile(profile):
            disturbed = any(not row.is_reliable for row in profile.profile.rows)
            page.add(
                "profile",
                f"Where the time goes: {profile.model}",
                _lead(profile.advice),
                page.plot(figure),
                _note(
                    f"{profile.profile.runtime} on {profile.profile.device_name}, "
                    f"{count(profile.profile.threads, 'thread')}.",
                    "Other work disturbed some lengths." if disturbed else "",
                ),
                half=True,
            )
    for probe in report.probes:
        page.add(
            "probe",
            f"What each layer knows: {probe.encoder}",
            _lead(" ".join(probe.sentences)),
            page.plot(draw_probe(probe)),
            half=True,
        )


def add_training(page: Page, report: Report) -> None:
    score, loss = draw_validation(report.trainings), draw_losses(report.trainings)
    if score is None and loss is None:
        return
    page.add(
        "training",
        "Training",
        f'<div class="pair"><div>{page.plot(score)}</div><div>{page.plot(loss)}</div></div>',
        _note("A ring marks the epoch that was kept." if score else ""),
    )


def add_classes(page: Page, report: Report) -> None:
    parts = _chosen_classes(report)
    if not parts:
        return
    last = parts[-1]
    number = len(last.per_class.classes)
    worst = min(
        (one for one in last.per_class.classes if one.f1 is not None and one.rows),
        key=lambda one: one.f1 or 0.0,
        default=None,
    )
    sentence = (
        f"The weakest class of {last.name} is {worst.label}: F1 {worst.f1:.3f} on {count(worst.rows, 'row')}."
        if worst
        else ""
    )
    rows = f"{last.split} rows"
    note = f"In brackets: {rows} of the class." + (
        f" The {MOST_CLASSES} weakest of {number:,} classes." if number > MOST_CLASSES else ""
    )
    page.add(
        "classes",
        "Score by class",
        _lead(sentence),
        page.plot(draw_class_scores(parts)),
        _note(note),
        half=True,
    )
    if last.per_class.confusions and (figure := draw_confusion(last.per_class, last.name)):
        most = last.per_class.confusions[0]
        page.add(
            "confusion",
            f"What is taken for what: {last.name}",
            _lead(f"Most often {most.label} is taken for {most.predicted}: {count(most.rows, 'row')}."),
            page.plot(figure),
            _note(
                f"Lines: the true class; columns: what the model says; {rows}.",
                "Shade: the share of the true class.",
                f"The {MOST_CLASSES} most confused of {number:,} classes." if number > MOST_CLASSES else "",
            ),
            half=True,
        )


def add_latencies(page: Page, report: Report) -> None:
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
        f"<details><summary>{count(len(report.latencies), 'measurement')} as a table</summary>",
        f"{latency_table(groups)}</details>",
    )


def add_sizes(page: Page, report: Report) -> None:
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
    runs = "\n".join(
        f'<p class="run">{html.escape(run.name)} <span>· {run.created:%Y-%m-%d %H:%M} UTC · '
        f"{duration(run.seconds)}{'' if run.seed is None else f' · seed {run.seed}'}</span></p>"
        f"<pre>{html.escape(run.line)}</pre>"
        for run in report.runs
    )
    page.add(
        "commands",
        "Commands",
        _lead("Every run, the oldest first, with the options that are not the default."),
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


def _note(*sentences: str) -> str:
    words = " ".join(sentence for sentence in sentences if sentence)
    return f'<p class="note">{html.escape(words)}</p>' if words else ""


def _lead(sentences: str) -> str:
    return f"<p>{html.escape(sentences)}</p>" if sentences else ""


def _front_sentence(report: Report, what: str) -> str:
    front = [f"{step.number} {step.name}" for step in report.steps if step.front]
    if not front:
        return ""
    names = _listed(front)
    cheaper = "faster" if what == "latency" else "smaller"
    if len(front) == 1:
        return f"On the Pareto front: {names}. No other model here is both better and {cheaper}."
    return f"On the Pareto front: {names}. To each of them, no other model here is both better and {cheaper}."


def _steps_notes(report: Report, *, timed: bool) -> Iterator[str]:
    rows = report.rows
    if rows is not None and any(step.score and step.score.low is not None for step in report.steps):
        yield (
            f"Bars: 95% interval of the score on {rows.rows:,} {rows.split} rows; where they overlap, the "
            "order may be chance, and so may the front be."
        )
    if report.timed is not None and timed:
        threads = f", {count(report.timed.threads, 'thread')}" if report.timed.device == "cpu" else ""
        tokens = (
            f"the data's own rows, {report.timed.mean_tokens:.0f} tokens on average"
            if report.timed.sequence_length is None
            else f"{report.timed.sequence_length} tokens a row"
        )
        yield f"Latency: {report.timed.device_name}{threads}, {tokens}."
        if any(step.gain is not None and step.gain.how != "apart" for step in report.steps):
            yield "What was timed in turns with the first of its line is placed by that ratio."
    if any(step.placed for step in report.steps):
        yield "Hollow: the ratio was measured under other circumstances, such as another number of threads."
    drawn = [step for step in report.steps if step.score is not None and step.score.here]
    drawn = [step for step in drawn if not timed or step.p50_ms is not None]
    if far := [
        f"{one.number} {one.name} ({one.score.value:.4f})" for one in find_far(report, drawn) if one.score
    ]:
        yield f"Triangles at the edge lie beyond it: {_listed(far)}."
    apart = [
        f"{step.number} {step.name}"
        for step in report.steps
        if step.score is not None and (not step.score.here or (timed and step.p50_ms is None))
    ]
    if apart:
        yield f"Not in the chart, for want of a latency or a score on these rows: {_listed(apart)}."


def _chosen_classes(report: Report) -> list[ClassPart]:
    """The first and the last step of the headline; of one that has no scores by class, its nearest."""
    here = [part for part in report.classes if part.here] or list(report.classes)[:1]
    if not here:
        return []
    if report.headline is None:
        return here[-1:]
    line = report.step(report.headline.step).first
    own = [part for part in here if report.step(part.step).first == line] or here
    first = next((part for part in own if part.step == report.headline.first), None)
    last = next((part for part in own if part.step == report.headline.step), own[-1])
    return [last] if first is None or first.step == last.step else [first, last]


def _listed(names: Sequence[str]) -> str:
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)
