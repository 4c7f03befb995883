"""How a recipe tells what it is doing. Recipes never print; ``commands/`` decides how this looks."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from encoder.data_report import DataReport
    from encoder.training import TrainingProgress
    from recipes.forecast import Forecast


class Observer(Protocol):
    """Told of a run as it goes on. All methods may do nothing."""

    def stage(self, name: str) -> None:
        """What begins now, as in ``"Reading bbc-news"``; the stage before has ended."""

    def note(self, text: str) -> None:
        """A sentence the user should read: a choice that was made, something found in the data."""

    def data(self, report: "DataReport") -> None:
        """The data has been read; this is what was found."""

    def ahead(self, forecast: "Forecast") -> None:
        """What is going to be done now, and about how long it takes."""

    def working(self, done: int, total: int, unit: str = "") -> None:
        """``done`` of ``total`` units of the present stage are done; with ``unit`` its name, as in "rows"."""

    def training(self, progress: "TrainingProgress") -> None:
        """A training step is done."""


def counting(total: int, observer: Observer, unit: str = "") -> Callable[[int], None]:
    """A function to be told of each few units that are done; ``observer`` hears how many of ``total``."""
    done = 0

    def count(units: int) -> None:
        nonlocal done
        done += units
        observer.working(done, total, unit)

    return count


class Silent:
    """The observer that shows nothing."""

    def stage(self, name: str) -> None:
        """Ignore."""

    def note(self, text: str) -> None:
        """Ignore."""

    def data(self, report: "DataReport") -> None:
        """Ignore."""

    def ahead(self, forecast: "Forecast") -> None:
        """Ignore."""

    def working(self, done: int, total: int, unit: str = "") -> None:
        """Ignore."""

    def training(self, progress: "TrainingProgress") -> None:
        """Ignore."""


class Recorder:
    """An observer that keeps the notes for run.json as it passes everything on."""

    def __init__(self, observer: Observer) -> None:
        self.notes: list[str] = []
        self._observer = observer
        self.stage, self.data, self.ahead = observer.stage, observer.data, observer.ahead
        self.working, self.training = observer.working, observer.training

    def note(self, text: str) -> None:
        """Keep it and pass it on."""
        self.notes.append(text)
        self._observer.note(text)
