"""What a chain would do, as a table: each step with what it makes, needs and takes."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from commands.tables import by_trial, duration, facts_table, make_table, print_indented, size
from recipes.plan import Plan, PlannedStep

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

BOUNDS = {"exact": "", "about": "", "uneven": "", "roughly": "~ ", "at most": "≤ ", "at least": "≥ "}


def show_plan(plan: Plan, console: "Console") -> None:
    """All of a plan: what each step is, what it comes to, and what that rests on."""
    console.print()
    for step in plan.steps:
        print_indented(console, f"{step.folder}: {_sentence(step)}")
    console.print()
    console.print(_steps_table(plan))
    for line in _remarks(plan):
        print_indented(console, line)
    console.print()
    console.print(facts_table(_facts(plan)))


def _sentence(step: PlannedStep) -> str:
    """``enc distill of 01-finetune, layers = 3``."""
    options = _options(step)
    return f"enc {step.command} of {', '.join(step.models)}{f', {options}' if options else ''}"


def _steps_table(plan: Plan) -> "Table":
    table = make_table("step", "layers", "parameters", "MACs\na token", "on disk", "time")
    for step in plan.steps:
        bound = BOUNDS[step.size or "exact"]
        made = step.parameters is not None
        table.add_row(
            step.folder,
            str(step.layers) if made else "",
            f"{bound if step.size != 'at least' else ''}{step.parameters:,}" if made else "",
            f"{(step.macs_per_token or 0) / 1e6:.2f} M" if made else "",
            f"{bound}{size(step.bytes_on_disk or 0)}" if made else "",
            "done" if step.done else f"~ {duration(step.seconds)}",
        )
    for column in table.columns:
        column.no_wrap = True
    return table


def _options(step: PlannedStep) -> str:
    """``layers = 3, control = false``."""
    return ", ".join(f"{name} = {_value(value)}" for name, value in step.options.items())


def _value(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    return value if isinstance(value, str) else json.dumps(value)


def _remarks(plan: Plan) -> Iterator[str]:
    sizes = {step.size for step in plan.steps}
    yield "Sizes follow from the shapes; those without a sign are exact, as far as they are shown."
    if "roughly" in sizes:
        yield "~: the layers differ, and which of them stay is found out on the way."
    if "at most" in sizes:
        yield "≤: the gate of a step decides how much goes; it may be less."
    if "at least" in sizes:
        yield "≥: in int8, unless parts have to stay in float to keep the score."
    yield by_trial(plan.trial_seconds)


def _facts(plan: Plan) -> Iterator[tuple[str, str]]:
    rows = ", ".join(f"{amount:,} {name}" for name, amount in plan.rows.items())
    yield "recipe", f"{plan.recipe}: {plan.description}" if plan.description else plan.recipe
    yield "model", plan.model
    yield "data", f"{plan.data}: {rows} rows, {plan.tokens:.1f} tokens in a training row"
    if all(step.done for step in plan.steps):
        yield "to do", "nothing: every step was done before with these options and inputs"
    else:
        least = any(step.size == "at least" for step in plan.steps)
        yield (
            "disk",
            f"{size(plan.disk_bytes)}, or a little more" if least else f"{size(plan.disk_bytes)} at most",
        )
        yield "time", f"about {duration(plan.seconds)}"
    yield "would be in", plan.output
