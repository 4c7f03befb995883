"""Rows a second of `enc embed` against a plain loop: padded torch fp32 batches of 32 in arrival order.

    python benchmarks/embed.py MODEL texts.txt [--rows 2000] [--threads 1] [--rounds 3]

Both start from texts and end with mean-pooled vectors of length 1, tokenizing included, loading not. Each run
is a process of its own, in turns. Beside rows a second of wall time stand those of processor time: with one
thread they are what an undisturbed machine gives.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

PLAIN = "plain loop"
RUNTIMES = ("torch-fp32", "onnx-fp32", "onnx-int8")


def run_plain(model: Path, texts: list[str], threads: int) -> tuple[float, float, np.ndarray]:
    """Transformers' model and tokenizer, as an example in their pages would use them."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    torch.set_num_threads(threads)
    tokenizer = AutoTokenizer.from_pretrained(str(model))
    encoder = AutoModel.from_pretrained(str(model), dtype=torch.float32).eval()
    wall, processor = time.perf_counter(), time.process_time()
    vectors = []
    with torch.inference_mode():
        for start in range(0, len(texts), 32):
            inputs = tokenizer(texts[start : start + 32], padding=True, truncation=True, return_tensors="pt")
            hidden = encoder(**inputs).last_hidden_state
            mask = inputs["attention_mask"][..., None]
            mean = (hidden * mask).sum(1) / mask.sum(1)
            vectors.append(torch.nn.functional.normalize(mean).numpy())
    return time.perf_counter() - wall, time.process_time() - processor, np.concatenate(vectors)


def run_enc(model: Path, texts: list[str], threads: int, runtime: str) -> tuple[float, float, np.ndarray]:
    """What `enc embed` does with a piece of a file, writing left out."""
    import torch

    from compress.embedders import open_embedder
    from encoder.embedding import normalize
    from encoder.model_folder import read_config, read_tokenizer
    from encoder.vector_choice import choose

    torch.set_num_threads(threads)
    choice = choose("-1", "mean", read_config(model).num_hidden_layers)
    embed = open_embedder(runtime, model, choice, device="cpu", threads=threads)
    tokenizer = read_tokenizer(model)
    wall, processor = time.perf_counter(), time.process_time()
    vectors = []
    for start in range(0, len(texts), 4096):
        rows, _ = tokenizer.encode(texts[start : start + 4096])
        vectors.append(normalize(embed(rows, lambda count: None)))
    return time.perf_counter() - wall, time.process_time() - processor, np.concatenate(vectors)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("texts", type=Path, help="a text a line")
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--side", help=argparse.SUPPRESS)
    options = parser.parse_args()
    with options.texts.open(encoding="utf-8") as file:
        texts = [line.rstrip("\n") for line in islice(file, options.rows)]
    if options.side:
        run = run_plain if options.side == PLAIN else run_enc
        more = () if options.side == PLAIN else (options.side,)
        wall, processor, vectors = run(options.model, texts, options.threads, *more)
        first = vectors[:64].astype(float).tolist()
        print(json.dumps({"wall": wall, "processor": processor, "vectors": first}))
        return
    found: dict[str, list[dict[str, Any]]] = {side: [] for side in (PLAIN, *RUNTIMES)}
    for _ in range(options.rounds):
        for side in found:
            done = subprocess.run(
                [sys.executable, __file__, *sys.argv[1:], "--side", side], stdout=subprocess.PIPE, check=True
            )
            found[side].append(json.loads(done.stdout.splitlines()[-1]))
    plain = found[PLAIN]
    print(f"{len(texts):,} texts, {options.threads} threads, median of {options.rounds} rounds in turns\n")
    print(f"{'':12}{'rows/s':>9}{'ratio':>8}{'rows/CPU s':>13}{'ratio':>8}{'cosine to plain, least':>25}")
    for side, runs in found.items():
        cells = []
        for clock in ("wall", "processor"):
            seconds = statistics.median(one[clock] for one in runs)
            # A round's runs stood next to each other, so that what disturbed one disturbed the other too.
            ratio = statistics.median(a[clock] / b[clock] for a, b in zip(plain, runs, strict=True))
            cells += [len(texts) / seconds, ratio]
        cosine = (np.array(plain[0]["vectors"]) * np.array(runs[0]["vectors"])).sum(1).min()
        print(f"{side:12}{cells[0]:9.0f}{cells[1]:8.2f}{cells[2]:13.0f}{cells[3]:8.2f}{cosine:25.4f}")


if __name__ == "__main__":
    main()
