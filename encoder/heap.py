"""Memory that was freed goes back to the operating system."""

import ctypes
from collections.abc import Callable
from functools import cache


def return_freed_memory() -> None:
    """Give back what lies free between what is in use; does nothing where the C library is not glibc.

    Batches differ in length, so tensors of ever other sizes leave holes that no later one fits, and a
    training run on the CPU grows. It takes some milliseconds.
    """
    _trim()(0)


@cache
def _trim() -> Callable[[int], object]:
    try:
        trim: Callable[[int], object] = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError, TypeError):  # TypeError: Windows has no library without a name
        return lambda pad: None
    return trim
