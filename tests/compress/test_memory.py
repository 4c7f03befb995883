import sys

import numpy as np
import psutil
import pytest

from compress.memory import available_memory_bytes, peak_memory_bytes, reset_peak_memory


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a peak start anew")
def test_a_peak_before_the_reset_is_forgotten_and_one_after_it_is_seen() -> None:
    size = 200 * 2**20
    np.ones(size, np.int8)
    before = peak_memory_bytes()
    assert reset_peak_memory()
    quiet = peak_memory_bytes()
    assert quiet < before - size // 2
    np.ones(size, np.int8)
    assert peak_memory_bytes() > quiet + size // 2


def test_available_memory_is_what_the_container_leaves(monkeypatch) -> None:
    assert 0 < available_memory_bytes() <= psutil.virtual_memory().total
    used = psutil.Process().memory_info().rss
    monkeypatch.setattr("compress.memory.memory_bytes", lambda: used + 2**20)
    assert available_memory_bytes() < 2**25
    monkeypatch.setattr("compress.memory.memory_bytes", lambda: 2**20)
    assert available_memory_bytes() == 0
