"""How much memory this process needed, at most, for a stretch of its work; and how much there is left."""

import gc
import sys
from pathlib import Path

from compress.machine import memory_bytes
from encoder.heap import return_freed_memory

_CLEAR_REFS = Path("/proc/self/clear_refs")
_STATUS = Path("/proc/self/status")


def reset_peak_memory() -> bool:
    """Let the peak start anew from what is in use now; False where the system keeps one peak a process.

    What was freed is given back to the system before, as far as the C library can: it would count as used.
    """
    gc.collect()
    return_freed_memory()
    try:
        _CLEAR_REFS.write_text("5")
    except OSError:
        return False
    return True


def peak_memory_bytes() -> int:
    """The most resident memory since ``reset_peak_memory``, or since the start where that is not possible."""
    try:
        for line in _STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    if sys.platform == "win32":
        import psutil

        return int(psutil.Process().memory_info().peak_wset)
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def available_memory_bytes() -> int:
    """What this process may still take without swapping: of the machine, and of its container."""
    import psutil

    limit = memory_bytes()
    available = int(psutil.virtual_memory().available)
    if limit is None:
        return available
    return max(0, min(available, limit - int(psutil.Process().memory_info().rss)))
