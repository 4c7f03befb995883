import sys

import psutil
import pytest
import torch

from encoder.heap import _trim, return_freed_memory


@pytest.mark.skipif(sys.platform != "linux" or not hasattr(_trim(), "argtypes"), reason="glibc only")
def test_holes_between_tensors_go_back_to_the_system() -> None:
    process = psutil.Process()
    # Small enough to come from the heap, and those that stay keep it from shrinking at its end.
    tensors = [torch.ones(16_000) for _ in range(4000)]  # 256 MB
    kept = tensors[::2]
    full = process.memory_info().rss
    del tensors
    return_freed_memory()
    assert full - process.memory_info().rss > 60e6
    assert float(kept[-1].sum()) == 16_000
