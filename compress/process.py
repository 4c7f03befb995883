"""A worker process as its parent sees it: started, asked, ended."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from typing import IO, Any, Self

import encoder.errors
from compress.machine import usable_physical_cores
from encoder.errors import ConfigError, EncError

# Read by the maths libraries when they are loaded, so it must be set before; in the child alone.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")

# The child imports what its parent imports, from an editable checkout, a wheel or a test's path alike. `-m`
# would put the current folder first, where a folder of the user's may be called `encoder` too.
BOOTSTRAP = """
import json, runpy, sys
sys.path[:] = json.loads(sys.argv[1])
runpy.run_module(sys.argv[2], run_name="__main__")
"""

SHOWN_LINES = 5


def default_threads(threads: int | None) -> int:
    """``threads``, or the physical cores this process may use.

    Raises:
        ConfigError: fewer than 1.
    """
    if threads is None:
        return usable_physical_cores()
    if threads < 1:
        raise ConfigError(f"threads is {threads}; expected at least 1 (default: one for each physical core)")
    return threads


class WorkerProcess:
    """A process that runs ``module`` and answers one JSON line to each JSON line; a context manager.

    ``what`` names its work in errors: "torch-fp32 on out/model".
    """

    def __init__(
        self,
        what: str,
        *,
        threads: int,
        module: str = "compress.worker",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.what = what
        self._stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        fixed = dict.fromkeys(THREAD_VARIABLES, str(threads)) | {"TOKENIZERS_PARALLELISM": "false"}
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", BOOTSTRAP, json.dumps(sys.path), module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env={**os.environ, **fixed, **(environment or {})},
            text=True,
        )

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        """Send a request and wait for its answer.

        Raises:
            EncError: what the worker refused, as the kind of error that it was; or that it crashed, with the
                end of what it wrote to stderr.
        """
        self.send(do, **arguments)
        return self.receive()

    def send(self, do: str, **arguments: Any) -> None:
        """Send a request whose answer is waited for later, while others work on theirs."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # of a process that has ended, which receive() tells
            self._process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
            self._process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        """The answer to what was sent. Errors: see ``ask``."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.endswith("\n"):
            raise EncError(self._describe_crash())
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise getattr(encoder.errors, answer["kind"], EncError)(answer["error"])
        return answer

    def close(self, *, kill: bool = False) -> None:
        """End the process. An idle worker ends by itself when its stdin does; a busy one is killed.

        With ``kill`` at once: whoever was interrupted does not wait for what nobody will read.
        """
        if kill:
            self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._stderr.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close(kill=kind is not None)

    def _describe_crash(self) -> str:
        code = self._process.wait()
        self._stderr.seek(0)
        lines = self._stderr.read().decode(errors="replace").strip().splitlines()
        if code == -getattr(signal, "SIGKILL", 9):
            reason = "its process was killed, most likely because memory ran out; try a smaller batch size"
        elif code < 0:
            reason = f"its process was ended by signal {signal.Signals(-code).name}"
        else:
            reason = f"its process ended with exit code {code}"
        shown = "".join(f"\n  {line}" for line in lines[-SHOWN_LINES:])
        return f"measuring {self.what} failed: {reason}{shown}"
