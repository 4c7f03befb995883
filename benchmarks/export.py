"""What exported graphs lose and gain: parity with torch, scores in 8 bits, and latency beside a peer's.

    python benchmarks/export.py --run runs/trec6=../shared/data/trec6 [--run …] \
        [--peer ../shared/peers/hf_latency.py] [--peer-python PYTHON] \
        [--grid 1x16,1x64,1x128,8x128] [--rounds 3] [--threads 2] [--test-rows 500]

A run is a fine-tuned model and the data it was fine-tuned on; a pruned or distilled one is as good. For each,
the test rows (validation rows where there are none) go through torch and through every graph in batches of
like lengths: the largest difference of a logit, the share of rows with the same label, the score. The static
int8 graph is calibrated on training rows.

Then the graphs are timed, each in a process of its own, in turns with the peer's runtimes on the same weights
if --peer is given (it needs a model that Transformers can open) and with torch as enc runs it. All are fed
what the peer feeds: random tokens, no padding. Milliseconds are medians over the rounds of a round's p50.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from compress.process import default_threads
from encoder.rows import TokenizedRows

GRAPHS = ("portable", "fused", "int8", "int8 static")
PEERS = ("torch-fp32", "torch-bf16", "ort-fp32", "ort-fused", "ort-int8", "openvino-fp32", "openvino-bf16")
WARM_UP_RUNS = 5
CALIBRATION_ROWS = 256

# Case, as "8x128" → milliseconds.
Medians = dict[str, float]


def main() -> None:
    """Print the tables of every run."""
    options = _options()
    if options.loop:
        print(json.dumps(_loop(options)))
        return
    for pair in options.run:
        source, _, data = pair.partition("=")
        with tempfile.TemporaryDirectory() as work:
            _write_and_compare(Path(source), data, Path(work), options)
            if options.rounds:
                _time(Path(source), Path(work), options)


def _options() -> argparse.Namespace:
    def names(text: str) -> list[str]:
        return text.split(",")

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--run", action="append", default=[], metavar="MODEL=DATA")
    parser.add_argument("--peer", help="the peer's script")
    parser.add_argument("--peer-python", default=sys.executable)
    parser.add_argument("--peer-runtimes", type=names, default=",".join(PEERS))
    parser.add_argument("--grid", type=names, default="1x16,1x64,1x128,8x128", help="rows x tokens")
    parser.add_argument("--rounds", type=int, default=3, help="0: no latency")
    parser.add_argument("--repeats", type=int, default=30, help="timed runs of a case in a round")
    parser.add_argument("--threads", type=int, default=default_threads(None))
    parser.add_argument("--test-rows", type=int, default=0, help="the first of them; 0: all")
    parser.add_argument("--max-length", type=int, default=128)
    parser.add_argument("--loop", help=argparse.SUPPRESS)  # a graph: time it and nothing else
    parser.add_argument("--vocab-size", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


def _write_and_compare(folder: Path, data: str, work: Path, options: argparse.Namespace) -> None:
    """Write the graphs of a model into ``work`` and print what they do to logits and score."""
    from compress.onnx_graph import save_graph
    from compress.sensitivity import run_graph
    from encoder.checkpoint import load_classifier
    from encoder.metrics import main_metric, score
    from encoder.prediction import predict_logits

    model = load_classifier(folder)
    rows, calibration = _rows(folder, data, options)
    expected, labels = predict_logits(model, rows), rows.labels
    assert labels is not None
    metric = main_metric(model.task)

    def judged(logits: NDArray[np.float32]) -> float:
        return score(model.task, logits, labels)[metric]

    whole = judged(expected)
    print(f"\n{folder}: {len(rows):,} rows of {data}, {metric} {whole:.4f} in torch")
    print(f"{'':14}{'max |Δlogit|':>14}{'same label':>12}{metric:>12}{'points':>9}{'MB':>8}")
    for name, graph in _graphs(model, calibration):
        path = work / f"{name.replace(' ', '-')}.onnx"
        save_graph(graph, path)
        found = run_graph(graph, rows, threads=options.threads)
        same = float((found.argmax(1) == expected.argmax(1)).mean())
        print(
            f"{name:14}{np.abs(found - expected).max():>14.2e}{same:>12.2%}{judged(found):>12.4f}"
            f"{(judged(found) - whole) * 100:>+9.2f}{path.stat().st_size / 1e6:>8.1f}",
            flush=True,
        )


def _rows(folder: Path, data: str, options: argparse.Namespace) -> tuple[TokenizedRows, TokenizedRows]:
    """The rows that are scored, and those for calibration."""
    from encoder.data import DataOptions, read_data
    from encoder.model_folder import read_task, read_tokenizer
    from recipes.observer import Silent
    from recipes.scoring import tokenize

    tokenizer = read_tokenizer(folder)
    read = read_data(data, DataOptions(), task=read_task(folder))
    split = "test" if "test" in read.splits else "validation"
    length = min(options.max_length, tokenizer.max_length)
    splits = tokenize(read, tokenizer, max_length=length, names=["train", split], observer=Silent())
    rows, train = splits.rows[split], splits.rows["train"]
    if options.test_rows:
        rows = rows.select(np.arange(min(len(rows), options.test_rows)))
    return rows, train.select(np.random.default_rng(0).permutation(len(train))[:CALIBRATION_ROWS])


def _graphs(model, calibration: TokenizedRows) -> Iterator:  # type: ignore[no-untyped-def, type-arg]
    from compress.onnx_graph import build_graph
    from compress.quantization import quantize_dynamic, quantize_static

    yield "portable", build_graph(model)
    fused = build_graph(model, form="fused")
    yield "fused", fused
    yield "int8", quantize_dynamic(fused)
    yield "int8 static", quantize_static(fused, calibration)


def _time(folder: Path, work: Path, options: argparse.Namespace) -> None:
    """Let the graphs and the peer's runtimes take turns, and print a line for each."""
    from encoder.model_folder import read_config

    vocab_size = read_config(folder).vocab_size
    found: dict[str, list[Medians]] = defaultdict(list)
    sides = [*GRAPHS, *(options.peer_runtimes if options.peer else [])]
    with tempfile.TemporaryDirectory() as peers_work:
        for number in range(options.rounds):
            first = number % len(sides)  # each is first in turn
            for side in sides[first:] + sides[:first]:
                print(f"round {number + 1} of {options.rounds}: {side}", file=sys.stderr, flush=True)
                if side in GRAPHS:
                    graph = work / f"{side.replace(' ', '-')}.onnx"
                    own = ["--loop", str(graph), "--vocab-size", str(vocab_size)]
                    answer = _ask([sys.executable, __file__, *own], options)
                else:
                    peer = [options.peer_python, options.peer, "--model", str(folder)]
                    answer = _ask([*peer, "--only", side, "--work", peers_work], options)
                if answer is not None:
                    found[side].append(answer)
    print(f"\np50 in milliseconds, {options.threads} threads, median of {options.rounds} rounds")
    print(f"{'':16}" + "".join(f"{case:>10}" for case in options.grid))
    for side in sides:
        if found[side]:
            medians = (statistics.median(one[case] for one in found[side]) for case in options.grid)
            name = side if side in GRAPHS else f"peer {side}"
            print(f"{name:16}" + "".join(f"{median:>10.2f}" for median in medians), flush=True)


def _ask(command: Sequence[str], options: argparse.Namespace) -> Medians | None:
    """What a process that times one side prints; ``None``, and its last words, if it fails."""
    flags = f"--grid {','.join(options.grid)} --threads {options.threads} --repeats {options.repeats}"
    environment = os.environ | {"OMP_NUM_THREADS": str(options.threads)}
    done = subprocess.run([*command, *flags.split()], capture_output=True, text=True, env=environment)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        print("  failed: " + (done.stderr.strip().splitlines() or ["no output"])[-1][:200], file=sys.stderr)
        return None
    answer: dict[str, Medians] = json.loads(lines[-1])
    return answer["p50_ms"]


def _loop(options: argparse.Namespace) -> dict[str, Medians]:
    """Time one graph, in this process, as the peer's script times its own."""
    import onnxruntime

    session_options = onnxruntime.SessionOptions()
    session_options.intra_op_num_threads = options.threads
    session = onnxruntime.InferenceSession(options.loop, session_options, providers=["CPUExecutionProvider"])
    names = {node.name for node in session.get_inputs()}
    medians: Medians = {}
    for case in options.grid:
        shape = tuple(map(int, case.split("x")))
        ids = np.random.default_rng(0).integers(5, options.vocab_size - 5, shape)
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        feed = {name: array for name, array in feed.items() if name in names}
        for _ in range(WARM_UP_RUNS):
            session.run(None, feed)
        seconds = []
        for _ in range(options.repeats):
            started = time.perf_counter()
            session.run(None, feed)
            seconds.append(time.perf_counter() - started)
        medians[case] = statistics.median(seconds) * 1e3
    return {"p50_ms": medians}


if __name__ == "__main__":
    main()
