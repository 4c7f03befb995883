"""What a run is going to do, told beforehand: its parts, how often each is done, and how long it takes."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Work:
    """A part of a run: ``what`` is done, ``seconds`` each time, ``least`` to ``most`` times."""

    what: str
    seconds: float
    least: int = 1
    most: int = 1


@dataclass(frozen=True)
class Forecast:
    """All parts in their order; their times are by a trial of ``trial_seconds``."""

    works: tuple[Work, ...]
    trial_seconds: float = 0.0

    @property
    def least_seconds(self) -> float:
        """Where nothing is done that can be left out."""
        return sum(work.least * work.seconds for work in self.works)

    @property
    def most_seconds(self) -> float:
        """Where everything is done as often as it may be."""
        return sum(work.most * work.seconds for work in self.works)

    @property
    def seconds(self) -> float:
        """In the middle between the two."""
        return (self.least_seconds + self.most_seconds) / 2
