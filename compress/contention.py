"""Whether other processes were in the way: a latency measured on a busy machine is the busy machine's."""

from dataclasses import dataclass
from pathlib import Path

_TASKS = Path("/proc/self/task")
# Waiting for a core beyond this share of the time shows in the median, more so where threads wait for each
# other.
DISTURBED = 0.05


@dataclass(frozen=True)
class CoreTime:
    """Seconds in which the threads of this process had a core, and in which they were ready and had none."""

    running_s: float
    waiting_s: float


def core_time() -> CoreTime | None:
    """Of all threads since their start; ``None`` where the kernel does not count it (Linux does)."""
    running = waiting = 0
    seen = False
    for path in _TASKS.glob("*/schedstat"):
        try:
            words = path.read_text().split()
        except OSError:  # the thread has ended meanwhile
            continue
        running, waiting, seen = running + int(words[0]), waiting + int(words[1]), True
    return CoreTime(running / 1e9, waiting / 1e9) if seen else None


def waiting_share(before: CoreTime | None, after: CoreTime | None) -> float | None:
    """Of the time in which the threads could have run, the fraction in which others had the core."""
    if before is None or after is None:
        return None
    waiting = max(0.0, after.waiting_s - before.waiting_s)
    ready = waiting + max(0.0, after.running_s - before.running_s)
    return waiting / ready if ready > 0 else 0.0


def is_disturbed(cpu_wait: float | None) -> bool:
    """Whether others had the cores for so much of the time that a duration says little about the model.

    ``cpu_wait`` is as ``waiting_share`` gives it; where it is not known, no.
    """
    return cpu_wait is not None and cpu_wait > DISTURBED
