import os
import signal
from pathlib import Path
from typing import Any

import pytest

from compress.process import WorkerProcess, default_threads
from compress.sessions import Sessions
from compress.workload import Workload
from encoder.errors import CheckpointError, ConfigError, EncError

ECHO = """
import json, os, sys
for line in sys.stdin:
    request = json.loads(line)
    code = request.pop("code")
    print(json.dumps(eval(code)), flush=True)
"""


@pytest.fixture
def echo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module whose process answers with the value of an expression."""
    (tmp_path / "echo_worker.py").write_text(ECHO)
    monkeypatch.syspath_prepend(str(tmp_path))
    return "echo_worker"


def test_the_child_imports_from_the_path_of_its_parent(echo: str) -> None:
    with WorkerProcess("x", threads=1, module=echo) as worker:
        assert worker.ask("eval", code="{'file': __file__}")["file"].endswith("echo_worker.py")


def test_a_folder_of_the_users_with_our_name_is_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "compress").mkdir()
    (tmp_path / "compress/__init__.py").write_text("raise RuntimeError('the wrong one')")
    Workload(()).save(tmp_path / "none.npz")
    monkeypatch.chdir(tmp_path)
    with WorkerProcess("x", threads=1) as worker, pytest.raises(ConfigError, match="unknown runtime"):
        worker.ask("open", runtime="abacus", model="m", device="cpu", threads=1, workload="none.npz")


def test_threads_are_fixed_in_the_child_and_only_there(echo: str) -> None:
    before = dict(os.environ)
    with WorkerProcess("x", threads=3, module=echo) as worker:
        assert worker.ask("eval", code="{'n': os.environ['OMP_NUM_THREADS']}") == {"n": "3"}
    assert dict(os.environ) == before


def test_an_interrupt_does_not_wait_for_what_a_worker_is_doing(echo: str) -> None:
    with pytest.raises(KeyboardInterrupt), WorkerProcess("x", threads=1, module=echo) as worker:
        worker.send("eval", code="__import__('time').sleep(60)")
        raise KeyboardInterrupt
    assert worker._process.returncode == -signal.SIGKILL


def test_an_interrupt_while_a_worker_loads_its_model_ends_it(
    tiny_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []

    class Interrupted(WorkerProcess):
        def receive(self) -> dict[str, Any]:
            made.append(self)
            raise KeyboardInterrupt

    monkeypatch.setattr("compress.sessions.WorkerProcess", Interrupted)
    with Sessions(Workload(()), threads=1) as sessions, pytest.raises(KeyboardInterrupt):
        sessions.open("torch-fp32", tiny_folder, device="cpu")
    assert [one._process.returncode for one in made] == [-signal.SIGKILL]


def test_a_crash_shows_what_the_process_last_said(echo: str) -> None:
    with (
        WorkerProcess("torch-fp32 on out/model", threads=1, module=echo) as worker,
        pytest.raises(EncError, match=r"(?s)torch-fp32 on out/model failed.*exit code 1.*ZeroDivisionError"),
    ):
        worker.ask("eval", code="1/0")


def test_a_killed_process_is_said_to_lack_memory(echo: str) -> None:
    with (
        WorkerProcess("x", threads=1, module=echo) as worker,
        pytest.raises(EncError, match="killed, most likely because memory ran out"),
    ):
        worker.ask("eval", code="os.kill(os.getpid(), 9)")


def test_an_error_of_the_users_doing_keeps_its_kind(echo: str) -> None:
    with (
        WorkerProcess("x", threads=1, module=echo) as worker,
        pytest.raises(CheckpointError, match="no weights"),
    ):
        worker.ask("eval", code="{'error': 'no weights', 'kind': 'CheckpointError'}")


def test_the_process_is_gone_afterwards_even_after_an_error(echo: str) -> None:
    with pytest.raises(KeyError), WorkerProcess("x", threads=1, module=echo) as worker:
        pid = worker.ask("eval", code="{'pid': os.getpid()}")["pid"]
        raise KeyError
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_default_threads_are_the_physical_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compress.process.usable_physical_cores", lambda: 7)
    assert default_threads(None) == 7
    assert default_threads(2) == 2
    with pytest.raises(ConfigError, match="threads is 0; expected at least 1"):
        default_threads(0)
