"""Claims about who works on an output: one process, until it ends, however it ends."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from encoder import output_lock
from encoder.errors import ConfigError
from encoder.files import OutputFolder
from encoder.output_lock import held, hold, lock_file

WORKS = """
import sys
from pathlib import Path
from encoder.files import OutputFolder
folder = OutputFolder(Path(sys.argv[1]), overwrite=True)
folder.check()
(folder.open() / "made").write_text("much")
print("works", flush=True)
sys.stdin.read()
folder.finish()
"""


@contextmanager
def working(output: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that works on ``output`` until its standard input is closed."""
    with subprocess.Popen(
        [sys.executable, "-c", WORKS, str(output)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "works\n"
        try:
            yield other
        finally:
            if other.poll() is None:
                other.communicate()


@pytest.mark.parametrize("way", [{}, {"overwrite": True}, {"resume": True}])
def test_what_another_process_works_on_is_refused_and_stays(tmp_path: Path, way) -> None:
    output = tmp_path / "run"
    with working(output) as other:
        folder = OutputFolder(output, **way)
        for check in (folder.check, folder.check_file):
            with pytest.raises(ConfigError, match=rf"another enc \(process {other.pid}\) is working on it"):
                check()
        assert (folder.work / "made").read_text() == "much"
    assert (output / "made").read_text() == "much"
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_the_same_place_by_another_spelling_is_the_same_place(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    with working(tmp_path / "a" / "run"):
        monkeypatch.chdir(tmp_path / "a")
        for spelt in (Path("run"), Path("../a/run"), tmp_path / "link" / "run"):
            with pytest.raises(ConfigError, match="is working on it"):
                hold(spelt)


def test_a_killed_process_leaves_what_can_be_resumed(tmp_path: Path) -> None:
    with working(tmp_path / "run") as other:
        other.kill()
        other.wait()
    folder = OutputFolder(tmp_path / "run", resume=True)
    folder.check()
    assert (folder.open() / "made").read_text() == "much"
    folder.finish()
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_what_a_killed_process_has_started_holds_nothing(tmp_path: Path) -> None:
    code = WORKS.replace(
        "print(", "import os, subprocess\nsubprocess.Popen(['sleep', '60'])\nready, begun = os.pipe()\n"
        "child = os.fork()\nif child == 0:\n    import time\n    os.write(begun, b'1')\n    time.sleep(60)\n"
        "os.read(ready, 1)\nprint(child, flush=True)\nprint("
    )  # fmt: skip
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "run")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
    ) as other:  # fmt: skip
        try:
            assert other.stdout is not None
            forked = int(other.stdout.readline())
            assert other.stdout.readline() == "works\n"
            other.kill()
            other.wait()
            os.kill(forked, 0)
            OutputFolder(tmp_path / "run", overwrite=True).check()
        finally:
            os.killpg(other.pid, 9)


def test_a_process_is_not_in_its_own_way(tmp_path: Path) -> None:
    first, second = OutputFolder(tmp_path / "run"), OutputFolder(tmp_path / "run")
    first.check()
    second.check()
    first.open()
    first.finish()
    assert not lock_file(tmp_path / "run").exists()


def test_a_refused_output_leaves_no_trace(tmp_path: Path) -> None:
    with held(tmp_path / "deep" / "er" / "run"):
        assert lock_file(tmp_path / "deep" / "er" / "run").exists()
    assert not list(tmp_path.iterdir())
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="which is no folder"):
        OutputFolder(tmp_path / "file" / "run").check()


def test_without_locks_it_goes_on(tmp_path: Path, monkeypatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(output_lock.fcntl, "flock", refuse)
    assert not hold(tmp_path / "run").is_held
    monkeypatch.setattr(output_lock, "fcntl", None)
    folder = OutputFolder(tmp_path / "run")
    folder.check()
    folder.open()
    folder.finish()
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_two_that_start_at_once_are_one_that_works(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom pathlib import Path\nfrom encoder.output_lock import hold\n"
        "sys.stdin.readline()\nlock = hold(Path(sys.argv[1]))\nprint('works', flush=True)\nsys.stdin.read()"
    )
    several = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path / "new" / "run")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )
        for _ in range(3)
    ]  # fmt: skip
    for one in several:
        assert one.stdin is not None
        one.stdin.write("\n")
        one.stdin.flush()
    until = time.monotonic() + 60
    while sum(one.poll() is None for one in several) > 1 and time.monotonic() < until:
        time.sleep(0.02)
    said = [one.communicate()[0] for one in several]  # which closes what they write to
    assert sorted(said) == ["", "", "works\n"]
