"""Fine-tuning side by side with Transformers' Trainer: rows per second, peak memory, accuracy, ratios.

    python benchmarks/finetune.py --peer ../shared/peers/hf_finetune.py \
        --model ../shared/models/e5-small-12l --data ../shared/data/trec6 [--rows 1600] [--rounds 2]

Both sides get the same training rows, test rows, epochs, batch size, learning rate and maximal length. The
runs take turns (ours, peer, peer at its best, ours, …), so that a machine that gets slower slows all of them;
the ratio is of the medians. The peer's defaults are fp32 and random order; its best is bf16 and grouped by
length.
The peer needs Transformers and accelerate; give another environment's Python with --peer-python.
"""

import argparse
import csv
import json
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

PEERS = {"Trainer, defaults": [], "Trainer, at its best": ["--bf16", "--group-by-length"]}
OURS = "enc"


def main() -> None:
    """Run all sides in turn and print a table."""
    options = _options()
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        rows = _write_data(Path(options.data), data, options.rows)
        print(
            f"{options.model}, {options.data}: {rows} training rows, {options.num_epochs} epochs, "
            f"batch size {options.batch_size}, at most {options.max_length} tokens, {options.rounds} rounds"
        )
        measured: dict[str, list[dict[str, float]]] = {name: [] for name in (OURS, *PEERS)}
        for turn in range(options.rounds):
            print(f"round {turn + 1} of {options.rounds}", file=sys.stderr)
            measured[OURS].append(_run_ours(options, data, Path(folder) / f"run-{turn}"))
            for name, flags in PEERS.items():
                measured[name].append(_run_peer(options, data, flags))
    _print_table(measured)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peer", required=True, help="the peer's script")
    parser.add_argument("--peer-python", default=sys.executable)
    parser.add_argument("--model", required=True)
    parser.add_argument("--data", required=True, help="a folder with train.csv and test.csv")
    parser.add_argument("--rows", type=int, default=0, help="training rows; 0: all")
    parser.add_argument("--num-epochs", type=int, default=1)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--max-length", type=int, default=128)
    parser.add_argument("--learning-rate", type=float, default=1e-4)
    parser.add_argument("--rounds", type=int, default=1)
    return parser.parse_args()


def _write_data(source: Path, target: Path, limit: int) -> int:
    """The rows both sides train on; a validation file, so that neither cuts one off its training rows."""
    target.mkdir()
    with (source / "train.csv").open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    random.Random(0).shuffle(rows)
    held, rows = rows[:64], rows[64:][: limit or None]
    for name, part in (("train", rows), ("validation", held)):
        with (target / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([header, *part])
    (target / "test.csv").write_bytes((source / "test.csv").read_bytes())
    return len(rows)


def _run_ours(options: argparse.Namespace, data: Path, output: Path) -> dict[str, float]:
    command = f"finetune --num-epochs {options.num_epochs} --batch-size {options.batch_size} "
    command += f"--max-length {options.max_length} --learning-rate {options.learning_rate} "
    command += "--label-variants keep --no-latency --json"
    places = ["--model", options.model, "--data", str(data), "--output", str(output)]
    result = _last_json([str(Path(sys.executable).with_name("enc")), *command.split(), *places])
    return {
        "rows/s": result["training"]["rows_per_s"],
        "peak MB": result["training"]["peak_memory_bytes"] / 2**20,
        "accuracy": result["scores"]["test"]["accuracy"],
    }


def _run_peer(options: argparse.Namespace, data: Path, flags: list[str]) -> dict[str, float]:
    command = f"--epochs {options.num_epochs} --batch-size {options.batch_size} "
    command += f"--max-length {options.max_length} --lr {options.learning_rate}"
    places = ["--model", options.model, "--data", str(data)]
    result = _last_json([options.peer_python, options.peer, *command.split(), *places, *flags])
    return {
        "rows/s": result["examples_per_s"],
        "peak MB": float(result["peak_rss_mb"]),
        "accuracy": result["accuracy"],
    }


def _last_json(command: list[str]) -> dict[str, Any]:
    """What a command prints as JSON: all of its output, or the last line."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{command[0]} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    text = done.stdout.strip()
    result: dict[str, Any] = json.loads(text if text.startswith("{\n") else text.splitlines()[-1])
    return result


def _print_table(measured: dict[str, list[dict[str, float]]]) -> None:
    median = {
        name: {key: statistics.median(run[key] for run in runs) for key in runs[0]}
        for name, runs in measured.items()
    }
    print(f"{'':22}{'rows/s':>10}{'peak MB':>10}{'accuracy':>10}{'enc: rows/s':>14}{'memory':>10}")
    for name, row in median.items():
        speed, memory = median[OURS]["rows/s"] / row["rows/s"], median[OURS]["peak MB"] / row["peak MB"]
        ratios = "" if name == OURS else f"{speed:>13.2f}x{memory:>9.2f}x"
        print(f"{name:22}{row['rows/s']:>10.1f}{row['peak MB']:>10.0f}{row['accuracy']:>10.3f}{ratios}")


if __name__ == "__main__":
    main()
