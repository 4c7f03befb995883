"""Is the interval of a speed-up honest? A model is compared with itself, again and again.

    python benchmarks/bench_self.py MODEL [--tries 10] [--runtime torch-fp32] [--length 64] [--threads N]

Prints each try's ratio and interval and how many of the intervals contain 1: of 95 % intervals about 19 in 20
do. Exits with 1 if it is fewer than 9 in 10.
"""

import argparse
import sys
from pathlib import Path

from compress.comparison import compare_latency
from compress.workload import from_grid
from encoder.model_folder import read_config, resolve_model


def main() -> int:
    """Run the tries; the exit code says whether enough intervals contain 1."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("model", help="a fine-tuned model folder")
    parser.add_argument("--tries", type=int, default=10)
    parser.add_argument("--runtime", default="torch-fp32")
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--threads", type=int)
    options = parser.parse_args()
    folder: Path = resolve_model(options.model)
    config = read_config(folder)
    grid = from_grid([1], [options.length], vocab_size=config.vocab_size, max_tokens=config.max_tokens)
    inside = 0
    for number in range(options.tries):
        comparison = compare_latency(
            [folder, folder], grid, runtimes=[options.runtime], threads=options.threads, seed=number
        )
        (compared,) = comparison.compared
        inside += compared.speedup.is_noise
        print(f"{number + 1:3d}  {compared.speedup}", flush=True)
    print(f"{inside} of {options.tries} intervals contain 1")
    return 0 if inside >= 0.9 * options.tries else 1


if __name__ == "__main__":
    sys.exit(main())
