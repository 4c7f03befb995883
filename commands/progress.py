"""How a run is shown while it goes on: on stderr, a bar on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

import typer

from commands.exit_codes import INTERRUPTED
from commands.result_tables import scores_line, show_data
from commands.tables import by_trial, duration, open_console, print_indented
from encoder.files import UNFINISHED_SUFFIX
from recipes.forecast import Forecast, Work
from recipes.observer import Observer
from recipes.resuming import Resumable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

    from encoder.data_report import DataReport
    from encoder.training import TrainingProgress

Options = TypeVar("Options", bound=Resumable)
Made = TypeVar("Made")

SECONDS_BETWEEN_LINES = 10.0
SHARE_BETWEEN_LINES = 0.1


def show_progress() -> "TerminalProgress | PlainProgress":
    """The observer that suits where stderr goes to."""
    console = open_console(stderr=True)
    return TerminalProgress(console) if console.is_terminal else PlainProgress(console)


def run_resumable(recipe: Callable[[Options, Observer], Made], options: Options) -> Made:
    """Run ``recipe``, shown on stderr; where it is interrupted, say how it goes on."""
    try:
        with show_progress() as progress:
            return recipe(options, progress)
    except KeyboardInterrupt:
        work = options.output.with_name(options.output.name + UNFINISHED_SUFFIX)
        if not work.exists():
            raise
        sys.stderr.write(f"\nInterrupted; {work} keeps what was done. Add --resume to continue.\n")
        raise typer.Exit(INTERRUPTED) from None


def say_if_not_kept(output: str | None) -> None:
    """The last word on a measurement that was shown and not written anywhere: how to have it written."""
    if output is None:
        sys.stdout.flush()
        sys.stderr.write("\nNot kept. With --output DIR it is, as DIR/run.json, and enc runs lists it.\n")


class Pace:
    """How fast a stage goes, from when it was first heard of; what was done before does not count."""

    def __init__(self) -> None:
        self._start: tuple[float, int] | None = None

    def describe(self, done: int, total: int, unit: str) -> str:
        """``930 rows/s · 42 s left``; without ``unit`` what is left. Empty until something is known."""
        if self._start is None:
            self._start = time.monotonic(), done
        seconds, made = time.monotonic() - self._start[0], done - self._start[1]
        if made <= 0 or seconds <= 0:
            return ""
        rate = f"{made / seconds:,.0f} {unit}/s · " if unit else ""
        return f"{rate}{duration((total - done) * seconds / made)} left"


class PlainProgress:
    """Lines, for a file or a log: stages, notes, and now and then how far it is."""

    def __init__(self, console: "Console") -> None:
        self._console = console
        self._last_time = time.monotonic()
        self._last_share = 0.0
        self._pace = Pace()

    def __enter__(self) -> "PlainProgress":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def stage(self, name: str) -> None:
        """A line."""
        self._last_time, self._last_share = time.monotonic(), 0.0
        self._pace = Pace()
        self._write(name)

    def note(self, text: str) -> None:
        """An indented line."""
        print_indented(self._console, text)

    def data(self, report: "DataReport") -> None:
        """Tables of what was read."""
        show_data(report, self._console)

    def ahead(self, forecast: Forecast) -> None:
        """A line for the whole, and an indented one for each part."""
        self.stage(f"Ahead: {describe_range(forecast)}")
        print_indented(self._console, "\n".join(describe_forecast(forecast)))

    def working(self, done: int, total: int, unit: str = "") -> None:
        """A line at times: after ten seconds and a tenth of the work."""
        rate = self._pace.describe(done, total, unit)
        if self._is_time(done / total):
            self._write(f"  {done:,} of {total:,}{f' · {rate}' if rate else ''}")

    def training(self, progress: "TrainingProgress") -> None:
        """A line at times, and one after each epoch."""
        if progress.validation is not None:
            self._write(f"  {describe_epoch(progress)}")
        elif self._is_time(progress.step / progress.num_steps):
            self._write(f"  step {progress.step:,} of {progress.num_steps:,} · {describe_step(progress)}")

    def _is_time(self, share: float) -> bool:
        now = time.monotonic()
        if now - self._last_time < SECONDS_BETWEEN_LINES or share - self._last_share < SHARE_BETWEEN_LINES:
            return False
        self._last_time, self._last_share = now, share
        return True

    def _write(self, text: str) -> None:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()


class TerminalProgress:
    """Stages and notes as lines that stay, the present stage's work as a bar below them."""

    def __init__(self, console: "Console") -> None:
        self._console = console
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._pace = Pace()

    def __enter__(self) -> "TerminalProgress":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end_bar()

    def stage(self, name: str) -> None:
        """A bold line; the bar of the stage before goes away."""
        self._end_bar()
        self._pace = Pace()
        self._console.print(name, style="bold", markup=False)

    def note(self, text: str) -> None:
        """An indented line."""
        print_indented(self._console, text)

    def data(self, report: "DataReport") -> None:
        """Tables of what was read."""
        show_data(report, self._console)

    def ahead(self, forecast: Forecast) -> None:
        """A line for the whole, and an indented one for each part."""
        self.stage(f"Ahead: {describe_range(forecast)}")
        print_indented(self._console, "\n".join(describe_forecast(forecast)))

    def working(self, done: int, total: int, unit: str = "") -> None:
        """The bar moves."""
        self._move(done, total, self._pace.describe(done, total, unit))

    def training(self, progress: "TrainingProgress") -> None:
        """The bar moves, with loss, speed and the time that is left; a line stays after each epoch."""
        if progress.validation is not None:
            self.note(describe_epoch(progress))
        self._move(progress.step, progress.num_steps, describe_step(progress))

    def _move(self, done: int, total: int, text: str) -> None:
        if self._bar is None:
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

            self._bar = Progress(
                TextColumn(" "),
                BarColumn(bar_width=20),
                MofNCompleteColumn(),
                TextColumn("{task.description}"),
                console=self._console,
                transient=True,
            )
            self._bar.start()
            self._task = self._bar.add_task("", total=total)
        if self._task is not None:
            self._bar.update(self._task, completed=done, total=total, description=text)

    def _end_bar(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = self._task = None


def describe_range(forecast: Forecast) -> str:
    """``about 3 min 05 s to 14 min 20 s``."""
    least, most = duration(forecast.least_seconds), duration(forecast.most_seconds)
    return f"about {least}" if least == most else f"about {least} to {most}, by how much has to be tried"


def describe_forecast(forecast: Forecast) -> Iterator[str]:
    """A line for each part, ``importance of heads and neurons, 1,024 rows: 21 s``; what the times rest on."""
    for work in forecast.works:
        yield f"{work.what}: {_times(work)}{duration(work.seconds)}"
    yield by_trial(forecast.trial_seconds)


def _times(work: Work) -> str:
    """``1 to 7 times ``; nothing for what is done once."""
    if work.least == work.most:
        return "" if work.most == 1 else f"{work.most} times "
    if work.most == 1:
        return "if needed, "
    return f"{work.least} to {work.most} times "


def describe_epoch(progress: "TrainingProgress") -> str:
    """``epoch 1/3 · loss 0.4100 · validation accuracy 0.9520, macro F1 0.9500``."""
    scores = f" · validation {scores_line(progress.validation)}" if progress.validation else ""
    return f"epoch {progress.epoch}/{progress.num_epochs} · loss {progress.loss:.4f}{scores}"


def describe_step(progress: "TrainingProgress") -> str:
    """``epoch 1/3 · loss 0.410 · 93 rows/s · 42 s left``; no loss before there is one."""
    loss = f"loss {progress.loss:.3f} · " if progress.loss else ""
    return (
        f"epoch {progress.epoch}/{progress.num_epochs} · {loss}{progress.rows_per_s:,.0f} rows/s · "
        f"{duration(progress.eta_s)} left"
    )
