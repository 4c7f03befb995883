"""A pruning as a map of what went, a table of before and after, and then the model that was made."""

import shlex
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

import typer

from commands.before_and_after import add_score, add_speedups, make_before_and_after
from commands.exit_codes import GATE_FAILED
from commands.importance_map import draw_map
from commands.progress import run_resumable
from commands.result_tables import show_result
from commands.tables import duration, number, open_console, print_indented, size
from encoder.wording import counted, signed_points
from recipes.observer import Observer
from recipes.pruning_options import PruningOptions
from recipes.pruning_result import PruningResult
from recipes.result import Result

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

METHODS = {
    "fisher": "by the squared gradient of the loss at their gates (Fisher)",
    "gradient": "by the gradient of the loss at their gates",
    "ablation": "by the loss without each of them",
    "magnitude": "by the size of their output weights",
    "random": "at random",
    "named": "by name",
    "importance": "one after another, by the loss without each of them",
    "top": "from the top",
    "alternate": "at even steps",
}

Options = TypeVar("Options", bound=PruningOptions)


def run_and_show(recipe: Callable[[Options, Observer], Result], options: Options, *, as_json: bool) -> None:
    """Run ``recipe``, show its result, and end with exit code 1 where ``max_drop`` was not met."""
    result = run_resumable(recipe, options)
    assert result.pruning is not None
    if as_json:
        sys.stdout.write(result.to_json())
    else:
        console = open_console()
        show_pruning(result, console)
        folder = shlex.quote(str(options.output))
        console.print(
            f"\nCompare it: enc bench {shlex.quote(options.model)} {folder}", markup=False, soft_wrap=True
        )
    if result.pruning.failure is not None:
        sys.stdout.flush()
        sys.stderr.write(f"{result.pruning.failure}.\n")
        raise typer.Exit(GATE_FAILED)


def show_pruning(result: Result, console: "Console") -> None:
    """The whole of a finished pruning."""
    pruning = result.pruning
    assert pruning is not None
    console.print()
    for line in _what_went(pruning):
        print_indented(console, line)
    console.print()
    for text in draw_map(pruning):
        console.print(text, no_wrap=True, soft_wrap=True)
    console.print()
    console.print(_before_and_after(result, pruning))
    for line in _remarks(result, pruning):
        print_indented(console, line)
    show_result(result, console)


def _what_went(pruning: PruningResult) -> Iterator[str]:
    gone = pruning.units_before - pruning.units_after
    scored = f" on {counted(pruning.rows, f'{pruning.rows_split} row')}" if pruning.rows else ""
    answers = ", against the model's own answers" if pruning.rows and pruning.targets == "model" else ""
    rounds = f", in {pruning.steps} steps" if pruning.steps > 1 else ""
    yield (
        f"{gone:,} of {pruning.units_before:,} {pruning.unit} removed ({pruning.sparsity:.1%}), chosen "
        f"{METHODS[pruning.method]}{scored}{answers}{rounds}."
    )
    if pruning.repair_rows:
        yield f"Output weights solved for again on {counted(pruning.repair_rows, 'training row')}."
    if pruning.recover_epochs:
        when = "after each step" if pruning.recover_each_step else "afterwards"
        teacher = ", the model before being the teacher" if pruning.recover_teacher else ""
        yield f"Trained for {counted(pruning.recover_epochs, 'epoch')} {when}{teacher}."
    for trial in pruning.trials:
        fall = "not defined" if trial.drop is None else f"{signed_points(-trial.drop)} points"
        stay = f"{counted(trial.units, pruning.unit.removesuffix('s'))} stay{'s' if trial.units == 1 else ''}"
        yield f"Tried: {stay} ({trial.sparsity:.0%} gone): {fall} on validation."


def _before_and_after(result: Result, pruning: PruningResult) -> "Table":
    """Scores, sizes and times, each before and after."""
    table = make_before_and_after()
    for split in result.scores:
        add_score(table, result, split, pruning.before[split])
        if pruning.control is not None and pruning.control.split == split:
            table.add_row(f"  {pruning.unit} at random", "", *_control_cells(pruning))
    one, other = pruning.size_before, result.size
    if other is not None:
        table.add_row(
            "parameters",
            f"{one.parameters:,}",
            f"{other.parameters:,}",
            _less(one.parameters, other.parameters),
        )
        for length, before in one.macs_per_token.items():
            after = other.macs_per_token.get(length, before)
            name = f"MACs a token, {length:,} tokens"
            table.add_row(name, f"{before / 1e6:.2f} M", f"{after / 1e6:.2f} M", _less(before, after))
        table.add_row(
            "on disk",
            size(one.bytes_on_disk),
            size(other.bytes_on_disk),
            _less(one.bytes_on_disk, other.bytes_on_disk),
        )
    add_speedups(table, pruning.speedups, pruning.latency_before, result.latency)
    return table


def _control_cells(pruning: PruningResult) -> tuple[str, str]:
    assert pruning.control is not None
    known = [score for score in pruning.control.scores if score is not None]
    if not known:
        return "–", "not defined"
    untrained = ", untrained" if pruning.recover_epochs else ""
    spread = f"{number(min(known))}–{number(max(known))} in {counted(len(known), 'draw')}{untrained}"
    return number(sum(known) / len(known)), spread


def _less(before: float, after: float) -> str:
    return f"{after / before - 1:+.1%}" if before else ""


def _remarks(result: Result, pruning: PruningResult) -> Iterator[str]:
    splits = " or ".join(result.scores)
    if pruning.rows or pruning.repair_rows:
        yield f"No {splits} row had a part in choosing or repairing."
    if pruning.trials or pruning.recover_epochs:
        yield "How much goes, or which epoch is kept, was decided on validation rows, never on test rows."
    yield (
        f"Silenced and removed give the same logits (largest difference {pruning.masked_difference:.1g}); so "
        f"do the saved model in a fresh process and the one in memory ({pruning.reloaded_difference:.1g})."
    )
    yield f"Choosing and removing took {duration(pruning.seconds)}."
