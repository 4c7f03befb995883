"""Does `enc bench` find what a plain loop with a clock finds? Side by side, in the same minute.

    python benchmarks/bench_agreement.py MODEL [--peer ../shared/peers/hf_latency.py] \
        [--rounds 5] [--threads 2]

MODEL is a fine-tuned model folder. For each runtime these take turns, each in a process of its own:

- enc: `enc bench`.
- loop: a few lines around the same model: in torch our classifier, in ONNX Runtime our graph. Five runs to
  warm up, then the median of --repeats. Both time the same work, so they must agree.
- peer, with --peer: a script that times the model as Transformers runs and exports it. That is other work
  and may take another time; it shows how far enc is from the usual way. It is called with --only RUNTIME
  and needs Transformers; give another environment's Python with --peer-python.

Prints medians over the rounds, in milliseconds, and the median of the rounds' ratios: 1.10 is 10 % more in
enc than in the other. An asterisk marks what enc itself called disturbed in one of the rounds. Exits with 1
if enc and the loop differ by more than 15 % in a case.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compress.latency import Latency
from compress.process import default_threads
from compress.runtimes import RUNTIMES, pad_rows, runs_a_graph, write_graph
from compress.workload import from_grid
from encoder.model_folder import read_config, resolve_model
from encoder.rows import TokenizedRows

AGREES = 1.15
WARM_UP_RUNS = 5
PEER_NAMES = {
    "torch-fp32": "torch-fp32",
    "torch-bf16": "torch-bf16",
    "onnx-fp32": "ort-fp32",
    "onnx-int8": "ort-int8",
}

# What one side finds in one round: case, as "8x128" → milliseconds.
Medians = dict[str, float]


@dataclass
class Found:
    """What all sides found in all rounds, and which cases enc itself called disturbed."""

    rounds: dict[str, list[Medians]] = field(default_factory=dict)
    disturbed: set[str] = field(default_factory=set)

    def median(self, side: str, case: str) -> float:
        """Of the rounds."""
        return statistics.median(one[case] for one in self.rounds[side])

    def ratio(self, side: str, case: str) -> float:
        """Enc's milliseconds to those of ``side``, a round at a time, as a machine drifts; their median."""
        pairs = zip(self.rounds["enc"], self.rounds[side], strict=True)
        return statistics.median(ours[case] / other[case] for ours, other in pairs)

    def agrees(self, side: str, case: str) -> bool:
        """Whether the ratio is within 15 %, in either direction."""
        return 1 / AGREES <= self.ratio(side, case) <= AGREES


def main() -> int:
    """Let the sides take turns and print a table for each runtime; the exit code says whether enc agrees."""
    options = _options()
    if options.loop:
        print(json.dumps(loop(options)))
        return 0
    others = ["loop", "peer"] if options.peer else ["loop"]
    near = dict.fromkeys(others, 0)
    with tempfile.TemporaryDirectory() as work:
        for runtime in options.runtimes:
            found = _take_turns(options, runtime, Path(work))
            _print_table(runtime, options.grid, found)
            for side in others:
                near[side] += sum(found.agrees(side, case) for case in options.grid)
    cases = len(options.runtimes) * len(options.grid)
    print(f"\nenc beside the loop, the same work: {near['loop']} of {cases} within 15 %")
    if options.peer:
        print(f"enc beside the peer, other work: {near['peer']} of {cases} within 15 %")
    return 0 if near["loop"] == cases else 1


def _options() -> argparse.Namespace:
    def names(text: str) -> list[str]:
        return text.split(",")

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=resolve_model, help="a fine-tuned model folder")
    parser.add_argument("--peer", help="the peer's script")
    parser.add_argument("--peer-python", default=sys.executable)
    parser.add_argument("--grid", type=names, default="1x16,1x64,1x128,8x128", help="rows x tokens")
    parser.add_argument("--runtimes", type=names, default=",".join(RUNTIMES))
    parser.add_argument("--threads", type=int, default=default_threads(None))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=30, help="timed runs of a case in a round, at least")
    parser.add_argument("--seconds", type=float, default=1.0, help="enc's --min-seconds")
    parser.add_argument("--loop", help=argparse.SUPPRESS)  # a runtime: be its loop and nothing else
    parser.add_argument("--graph", help=argparse.SUPPRESS)  # what the loop opens in ONNX Runtime
    return parser.parse_args()


def _take_turns(options: argparse.Namespace, runtime: str, work: Path) -> Found:
    graph = work / f"{runtime}.onnx"
    if runs_a_graph(runtime):
        write_graph(runtime, options.model, graph)
    found = Found()
    sides: list[tuple[str, Callable[[], Medians]]] = [
        ("enc", lambda: _ask_enc(options, runtime, found.disturbed)),
        ("loop", lambda: _ask_loop(options, runtime, graph)),
    ]
    if options.peer:
        sides.append(("peer", lambda: _ask_peer(options, runtime, work)))
    for number in range(options.rounds):
        print(f"{runtime}, round {number + 1} of {options.rounds}", file=sys.stderr, flush=True)
        first = number % len(sides)  # each is first in turn
        for side, ask in sides[first:] + sides[:first]:
            found.rounds.setdefault(side, []).append(ask())
    return found


def _ask_enc(options: argparse.Namespace, runtime: str, disturbed: set[str]) -> Medians:
    lengths: dict[str, list[str]] = {}  # by batch size: a grid of enc has every length with every batch size
    for case in options.grid:
        batch_size, _, length = case.partition("x")
        lengths.setdefault(batch_size, []).append(length)
    medians: Medians = {}
    for batch_size, together in lengths.items():
        flags = f"--runtimes {runtime} --batch-sizes {batch_size} --sequence-lengths {','.join(together)} "
        flags += f"--min-runs {options.repeats} --min-seconds {options.seconds} --threads {options.threads}"
        enc = str(Path(sys.executable).with_name("enc"))
        answer = _last_json([enc, "bench", str(options.model), "--json", *flags.split()], options.threads)
        for row in answer["rows"]:
            latency = Latency(**row["latency"])
            medians[str(latency.shape)] = latency.p50_ms
            if not latency.is_reliable:
                disturbed.add(str(latency.shape))
    return medians


def _ask_loop(options: argparse.Namespace, runtime: str, graph: Path) -> Medians:
    command = [sys.executable, __file__, str(options.model), "--loop", runtime, "--graph", str(graph)]
    return _last_json(command + _common_flags(options), options.threads)


def _ask_peer(options: argparse.Namespace, runtime: str, work: Path) -> Medians:
    command = [options.peer_python, options.peer, "--model", str(options.model), "--work", str(work)]
    command += ["--only", PEER_NAMES[runtime]]
    medians: Medians = _last_json(command + _common_flags(options), options.threads)["p50_ms"]
    return medians


def _common_flags(options: argparse.Namespace) -> list[str]:
    flags = f"--grid {','.join(options.grid)} --threads {options.threads} --repeats {options.repeats}"
    return flags.split()


def _last_json(command: Sequence[str], threads: int) -> dict[str, Any]:
    """What a command prints as JSON: all of its output, or the last line."""
    environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    text = done.stdout.strip()
    answer: dict[str, Any] = json.loads(text if text.startswith("{\n") else text.splitlines()[-1])
    return answer


def _print_table(runtime: str, grid: Sequence[str], found: Found) -> None:
    others = [side for side in ("loop", "peer") if side in found.rounds]
    heads = "".join(f"{side + ' ms':>10}{'enc/' + side:>10}" for side in others)
    print(f"\n{runtime}\n{'':8}{'enc ms':>10}{heads}")
    for case in grid:
        cells = "".join(
            f"{found.median(side, case):>10.2f}{found.ratio(side, case):>10.2f}" for side in others
        )
        mark = "  *" if case in found.disturbed else ""
        print(f"{case:8}{found.median('enc', case):>10.2f}{cells}{mark}", flush=True)


def loop(options: argparse.Namespace) -> Medians:
    """The plain loop, in this process; never torch and ONNX Runtime in the same one."""
    vocab_size = read_config(options.model).vocab_size
    medians: Medians = {}
    with ExitStack() as stack:
        bind = _open_graph(options) if runs_a_graph(options.loop) else _open_model(options, stack)
        for case in options.grid:
            batch_size, length = map(int, case.split("x"))
            grid = from_grid([batch_size], [length], vocab_size=vocab_size, max_tokens=length)
            run = bind(grid.cases[0].batches[0])
            for _ in range(WARM_UP_RUNS):
                run()
            seconds = []
            for _ in range(options.repeats):
                started = time.perf_counter()
                run()
                seconds.append(time.perf_counter() - started)
            medians[case] = statistics.median(seconds) * 1e3
    return medians


def _open_graph(options: argparse.Namespace) -> Callable[[TokenizedRows], Callable[[], object]]:
    import onnxruntime

    session_options = onnxruntime.SessionOptions()
    session_options.intra_op_num_threads = options.threads
    session = onnxruntime.InferenceSession(options.graph, session_options, providers=["CPUExecutionProvider"])
    names = {node.name for node in session.get_inputs()}

    def bind(rows: TokenizedRows) -> Callable[[], object]:
        inputs = {name: array for name, array in pad_rows(rows).items() if name in names}
        return lambda: session.run(None, inputs)

    return bind


def _open_model(
    options: argparse.Namespace, stack: ExitStack
) -> Callable[[TokenizedRows], Callable[[], object]]:
    import torch

    from encoder.batches import Batch
    from encoder.checkpoint import load_classifier
    from encoder.packing import Packing

    torch.set_num_threads(options.threads)
    model = load_classifier(options.model)
    stack.enter_context(torch.inference_mode())
    if options.loop == "torch-bf16":
        stack.enter_context(torch.autocast("cpu", torch.bfloat16))

    def bind(rows: TokenizedRows) -> Callable[[], object]:
        batch = Batch.from_rows(rows)

        def run() -> object:
            # A packing remembers what it derives from the lengths; a new batch would have to derive it.
            packing = Packing.from_lengths(batch.packing.lengths)
            return model(Batch(batch.input_ids, batch.token_type_ids, packing))

        return run

    return bind


if __name__ == "__main__":
    sys.exit(main())
