import sys
import threading
import time

import pytest

from compress.contention import CoreTime, core_time, waiting_share


def spin(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_the_share_is_of_the_time_in_which_threads_could_run() -> None:
    assert waiting_share(CoreTime(1, 1), CoreTime(4, 2)) == pytest.approx(0.25)
    assert waiting_share(CoreTime(1, 1), CoreTime(1, 1)) == 0
    assert waiting_share(None, CoreTime(1, 1)) is None


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts it")
def test_the_time_of_all_threads_counts_and_sleep_does_not() -> None:
    go, done = threading.Event(), threading.Event()

    def work() -> None:
        spin(0.1)
        go.set()
        done.wait()

    before = core_time()
    thread = threading.Thread(target=work)
    thread.start()
    go.wait()
    time.sleep(0.05)
    after = core_time()
    done.set()
    thread.join()
    if before is None or after is None:
        pytest.skip("this kernel does not count it")
    assert 0.09 < after.running_s - before.running_s < 0.14
