"""The sections of a report that look into models and their making: layers, training, classes."""

import html
from collections.abc import Sequence
from typing import TypeVar

from commands.report_cards import Page, lead, note
from commands.report_charts_classes import MOST_CLASSES, draw_class_scores, draw_confusion
from commands.report_charts_depth import CHARTS, draw_depth
from commands.report_charts_layers import draw_heads, draw_layers, draw_probe, draw_profile, draw_units
from commands.report_charts_training import draw_losses, draw_sweep, draw_validation
from encoder.wording import counted
from recipes.report import Report
from recipes.report_parts import ClassPart, DepthPart, ProfilePart, RemovalPart, SweepPart, TrainingPart

# Of more trainings or prunings than this the page shows those of one line.
MOST_PARTS = 6

Named = TypeVar("Named", RemovalPart, TrainingPart)


def add_layers(page: Page, report: Report) -> None:
    """Freezing, removal, profiles, probes: what is told layer by layer. Halves first, so that they pair."""
    for sweep in report.sweeps:
        _add_sweep(page, sweep)
    removals = _of_line(report, report.removals)
    for part in removals:
        if part.unit != "layers":
            _add_removal(page, part)
    for profile in report.profiles:
        _add_profile(page, profile)
    for probe in report.probes:
        page.add(
            "probe",
            f"What each layer knows: {probe.encoder}",
            lead(" ".join(probe.sentences)),
            page.plot(draw_probe(probe), "No chart: no layer was probed."),
            half=True,
        )
    for depth in report.depths:
        _add_depth(page, depth)
    for part in removals:
        if part.unit == "layers":
            _add_removal(page, part)


def _add_depth(page: Page, part: DepthPart) -> None:
    plots = "".join(
        f"<div><h3>{html.escape(title)}</h3>"
        f"{page.plot(draw_depth(part, title), 'No chart: this is not defined here.')}</div>"
        for title in CHARTS
    )
    page.add(
        "depth",
        f"Tokens and gradients with depth: {part.name}",
        f'<div class="pair">{plots}</div>',
        note(f"{part.rows:,} rows; gradients are of: {part.learns}. Effective rank: Roy and Vetterli 2007."),
    )


def _add_sweep(page: Page, part: SweepPart) -> None:
    *words, test = part.sweep.verdict.sentences
    page.add(
        "freezing",
        f"How many layers can stay frozen: {part.name}",
        lead(" ".join(words) or test),
        page.plot(draw_sweep(part), "No chart: the score is defined at no point."),
        note(
            "Bars: standard deviation over the seeds."
            if len(part.sweep.seeds) > 1
            else "One seed: no spread is known.",
            test if words else "",
        ),
        half=True,
    )


def _add_removal(page: Page, part: RemovalPart) -> None:
    gone = part.units_before - part.units_after
    scored = any(layer.importance for layer in part.layers)
    draw, shade = {
        "heads": (draw_heads, "the share of all heads that matter less"),
        "layers": (draw_layers, "how much the loss rises without the layer alone"),
    }.get(part.unit, (draw_units, ""))
    page.add(
        "removed",
        f"{part.unit[:1].upper()}{part.unit[1:]} removed: {part.name}",
        lead(f"{gone:,} of {part.units_before:,} {part.unit} of {part.parent} were removed."),
        page.plot(draw(part), f"No chart: there were no {part.unit}."),
        note("Crosses: removed." if shade else "", f"Shade: {shade}." if shade and scored else ""),
        half=part.unit != "layers",
    )


def _add_profile(page: Page, part: ProfilePart) -> None:
    profile = part.profile
    disturbed = any(not row.is_reliable for row in profile.rows)
    page.add(
        "profile",
        f"Where the time goes: {part.model}",
        lead(part.advice),
        page.plot(draw_profile(part), "No chart: no length was timed."),
        note(
            f"{profile.runtime} on {profile.device_name}, {counted(profile.threads, 'thread')}.",
            "Other work disturbed some lengths." if disturbed else "",
        ),
        half=True,
    )


def add_training(page: Page, report: Report) -> None:
    """Scores and losses by epoch."""
    parts = _of_line(report, report.trainings)
    score, loss = draw_validation(parts), draw_losses(parts)
    if score is None and loss is None:
        return
    more = len(report.trainings) - len(parts)
    page.add(
        "training",
        "Training",
        '<div class="pair">'
        f"<div>{page.plot(score, 'No validation score was kept, so there is no chart of it.')}</div>"
        f"<div>{page.plot(loss, 'No loss was kept, so there is no chart of it.')}</div></div>",
        note(
            "A ring marks the epoch that was kept." if score else "",
            f"{counted(more, 'more training')} of other models left out." if more else "",
        ),
    )


def _of_line(report: Report, parts: Sequence[Named]) -> list[Named]:
    """``parts``, at most `MOST_PARTS` of them: those of the line that the headline is about go first."""
    if len(parts) <= MOST_PARTS or report.headline is None:
        return list(parts)[:MOST_PARTS]
    line: set[str] = set()
    number: int | None = report.headline.step
    while number is not None:
        step = report.step(number)
        line.add(step.name)
        number = step.parent
    chosen = sorted(parts, key=lambda part: part.name not in line)[:MOST_PARTS]
    return [part for part in parts if part in chosen]


def add_classes(page: Page, report: Report) -> None:
    """How each class fares, and what is taken for what."""
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
        f"The weakest class of {last.name} is {worst.label}: F1 {worst.f1:.3f} "
        f"on {counted(worst.rows, 'row')}."
        if worst
        else ""
    )
    rows = f"{last.split} rows"
    told = f"In brackets: {rows} of the class." + (
        f" The {MOST_CLASSES} weakest of {number:,} classes." if number > MOST_CLASSES else ""
    )
    page.add(
        "classes",
        "Score by class",
        lead(sentence),
        page.plot(draw_class_scores(parts), "No chart: F1 is defined for no class."),
        note(told),
        half=True,
    )
    if last.per_class.confusions and (figure := draw_confusion(last.per_class, last.name)):
        most = last.per_class.confusions[0]
        page.add(
            "confusion",
            f"What is taken for what: {last.name}",
            lead(f"Most often {most.label} is taken for {most.predicted}: {counted(most.rows, 'row')}."),
            page.plot(figure),
            note(
                f"Lines: the true class; columns: what the model says; {rows}.",
                "Shade: the share of the true class.",
                f"The {MOST_CLASSES} most confused of {number:,} classes." if number > MOST_CLASSES else "",
            ),
            half=True,
        )


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
