"""Pretraining with every kind of residual: at equal steps and parameters, and deep against wide.

    python benchmarks/pretrain.py [--corpus bbc-news] [--steps 300] [--seeds 2] [--threads 1] \
        [--parts kinds,shapes] [--json FILE]

``kinds``: encoders of 12 layers that differ in nothing but norm and residual. ``shapes``: shallow and wide
against deep and narrow with as many parameters in the layers, and so nearly as much arithmetic, for sums and
for attention residuals (Kimi Team 2026, arXiv 2603.15031, find the best shape deeper with these).

All see the same rows, in batches of --batch-size rows of --max-length tokens; a seed decides weights, order
and what is hidden. Tokens are hardly more than letters (--vocab-size), positions are rotary, and weights
start larger than usual (--initializer-range): with words, 300 steps teach an encoder of this size nothing but
how frequent each is. Gradients, stream and what layers add are those of `enc depth`, on held-out rows. ``kept
MB`` is what one step keeps for its backward pass beside the weights, every tensor once; ``CPU s`` is the
processor time of a step, the median. The whole takes about half an hour of one thread that is not disturbed;
--steps 5 tries it out.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from compress.size import macs_per_token
from encoder.batches import Batch
from encoder.config import ClassifierConfig, EncoderConfig, LayerShape
from encoder.corpus import pack_texts, read_corpus
from encoder.depth import gradient_norms, measure_depth
from encoder.errors import EncError
from encoder.language_model import MaskedLanguageModel, score_guesses
from encoder.masking import MaskedTokens, Masking
from encoder.model import initialise_
from encoder.rounded_weights import rounded_weights_
from encoder.rows import TokenizedRows
from encoder.tokenizer_training import train_tokenizer_
from encoder.training import TrainingProgress, train_
from encoder.training_config import TrainingConfig

WARM_UP_STEPS = 3
DEPTH_ROWS = 32


@dataclass(frozen=True)
class Variant:
    """An encoder and how it is trained; ``rate`` is a factor on the learning rate."""

    name: str
    norm: str = "pre"
    residual: str = "add"
    block: int | None = None
    warmup_ratio: float = 0.1
    rate: float = 1.0
    num_layers: int = 12
    hidden_size: int = 128
    num_heads: int = 4


KINDS = (
    Variant("post-norm", norm="post"),
    Variant("post-norm, no warm-up", norm="post", warmup_ratio=0.0),
    Variant("post-norm, a quarter of the rate", norm="post", rate=0.25),
    Variant("post-norm, a quarter, no warm-up", norm="post", rate=0.25, warmup_ratio=0.0),
    Variant("pre-norm"),
    Variant("attention residuals", residual="attention"),
    Variant("in blocks of 6 sublayers", residual="block_attention", block=6),
)
# As many parameters in the layers: 12·L·D² within a few percent.
WIDTHS = ((3, 256, 8), (12, 128, 4), (24, 90, 3))
SHAPES = tuple(
    Variant(
        f"{layers} × {width}, {what}",
        residual=residual,
        num_layers=layers,
        hidden_size=width,
        num_heads=heads,
    )
    for layers, width, heads in WIDTHS
    for what, residual in (("sums", "add"), ("attention", "attention"))
)


@dataclass(frozen=True)
class Texts:
    """What all encoders see."""

    train: TokenizedRows
    held_out: TokenizedRows
    masking: Masking


def main() -> None:
    """Train every encoder with every seed, print a JSON line each, then the tables."""
    options = _options()
    torch.set_num_threads(options.threads)
    texts, lines = _read(options), []
    done: dict[tuple[Variant, int], dict[str, Any]] = {}
    for part in options.parts.split(","):
        for variant in {"kinds": KINDS, "shapes": SHAPES}[part]:
            for seed in range(options.seeds):
                key = (replace(variant, name=""), seed)
                if key not in done:
                    done[key] = _run(variant, seed, texts, options)
                    lines.append(asdict(variant) | {"seed": seed} | done[key])
                    print(json.dumps(lines[-1]), flush=True)
        print()
    for part, title in (("kinds", _title(options)), ("shapes", "Deep and narrow against shallow and wide")):
        if part in options.parts.split(","):
            variants = {"kinds": KINDS, "shapes": SHAPES}[part]
            print(f"\n### {title}\n")
            print(_table(variants, done, options.seeds))
    if options.json:
        Path(options.json).write_text(json.dumps(lines, indent=1) + "\n")


def _title(options: argparse.Namespace) -> str:
    tokens = options.steps * options.batch_size * options.max_length
    return f"12 layers, hidden size 128, {options.steps} steps ({tokens:,} tokens of {options.corpus})"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpus", default="bbc-news")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--parts", default="kinds,shapes")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--max-length", type=int, default=32)
    parser.add_argument("--vocab-size", type=int, default=64)
    parser.add_argument("--learning-rate", type=float, default=2e-3)
    parser.add_argument("--initializer-range", type=float, default=0.04)
    parser.add_argument("--held-out-rows", type=int, default=256)
    parser.add_argument("--precision", default="bf16", choices=("fp32", "bf16"))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", help="a file for all numbers")
    return parser.parse_args()


def _read(options: argparse.Namespace) -> Texts:
    corpus = read_corpus([options.corpus], text_column=None, encoding=None, fraction=0.05)
    with tempfile.TemporaryDirectory() as folder:
        tokenizer = train_tokenizer_(
            Path(folder),
            lambda: corpus.texts(held_out=False),
            kind="unigram",
            vocab_size=options.vocab_size,
            lowercase=True,
            max_tokens=options.max_length,
        )
    mask = tokenizer.token_id("mask_token")
    assert mask is not None
    train, held_out = (
        pack_texts(corpus.texts(held_out=side), tokenizer, options.max_length).rows for side in (False, True)
    )
    draw, needed = np.random.default_rng(0), options.steps * options.batch_size
    if len(train) < needed:
        raise SystemExit(f"{options.corpus}: {len(train):,} rows; {options.steps} steps need {needed:,}")
    return Texts(
        train.select(draw.permutation(len(train))[:needed]),
        held_out.select(draw.permutation(len(held_out))[: options.held_out_rows]),
        Masking(mask, tokenizer.special_ids, tokenizer.vocab_size),
    )


def _config(variant: Variant, texts: Texts, options: argparse.Namespace) -> EncoderConfig:
    width, heads = variant.hidden_size, variant.num_heads
    layer = LayerShape(heads=tuple(range(heads)), head_size=width // heads, intermediate_size=4 * width)
    return EncoderConfig(
        family="bert",
        vocab_size=texts.masking.vocab_size,
        hidden_size=width,
        embedding_size=width,
        max_position_embeddings=options.max_length,
        type_vocab_size=0,
        position_embedding="rotary",
        layers=(layer,) * variant.num_layers,
        norm=variant.norm,
        residual=variant.residual,
        residual_block_size=variant.block,
        hidden_dropout=0.0,
        attention_dropout=0.0,
        initializer_range=options.initializer_range,
    )


def _run(variant: Variant, seed: int, texts: Texts, options: argparse.Namespace) -> dict[str, Any]:
    """All numbers of one encoder."""
    model = MaskedLanguageModel(_config(variant, texts, options))
    initialise_(model, model.config, seed)
    start = _depth(model, texts)
    kept = _kept_bytes(model, texts, options)
    masking, marks = replace(texts.masking, seed=seed), list[float]()

    def mark(progress: TrainingProgress) -> None:
        marks.append(time.process_time())

    training = TrainingConfig(
        num_epochs=1,
        batch_size=options.batch_size,
        learning_rate=options.learning_rate * variant.rate,
        warmup_ratio=variant.warmup_ratio,
        layer_decay=1.0,
        best_metric="loss",
        precision=options.precision,
        seed=seed,
    )
    with tempfile.TemporaryDirectory() as folder:
        try:
            outcome = train_(
                model, texts.train, None, training,
                work_folder=Path(folder),
                objective=MaskedTokens(masking, texts.train),
                validate=lambda: score_guesses(model, texts.held_out, masking),
                on_progress=mark,
            )  # fmt: skip
        except EncError as error:
            return {"diverged": str(error).splitlines()[0]}
    (epoch,) = outcome.epochs
    assert epoch.validation is not None
    # Counted as if a classifier saw all tokens, as a language model's head does.
    all_tokens = model.config.model_copy(update={"classifier": ClassifierConfig(pooling="mean")})
    steps = np.diff(marks[WARM_UP_STEPS:-1])  # the last one has the scoring in it
    return {
        "loss": epoch.validation["loss"],
        "accuracy": epoch.validation["accuracy"],
        "training_loss": epoch.loss,
        "layer_parameters": sum(p.numel() for p in model.encoder.layers.parameters()),
        "macs_per_token": macs_per_token(all_tokens, options.max_length, num_outputs=0),
        "cpu_s_per_step": float(np.median(steps)) if len(steps) else None,
        "kept_bytes": kept,
        "start": start,
        "end": _depth(model, texts),
    }


def _depth(model: MaskedLanguageModel, texts: Texts) -> dict[str, Any]:
    """What `enc depth` shows of the model, on held-out rows."""
    model.eval()
    index = np.arange(min(DEPTH_ROWS, len(texts.held_out)))
    hidden = MaskedTokens(texts.masking, texts.held_out)
    batch = hidden.prepare(Batch.from_rows(texts.held_out.select(index)), index, 0)
    found = measure_depth(model.encoder, [batch])
    hidden.summed_loss(model(batch), batch, index).backward()
    gradients = gradient_norms(model, model.encoder)
    model.zero_grad()
    adds = [
        attention.made / attention.read + feed_forward.made / feed_forward.read
        for attention, feed_forward in zip(found.attention, found.feed_forward, strict=True)
    ]
    return {
        "gradient_ratio": gradients[1] / gradients[-1],
        "growth": found.streams[-1] / found.streams[0],
        "dilution": adds[-1] / adds[0],
        "rank": found.effective_ranks[-1],
        "streams": found.streams,
        "adds": adds,
        "gradients": gradients,
        "ranks": found.effective_ranks,
    }


def _kept_bytes(model: MaskedLanguageModel, texts: Texts, options: argparse.Namespace) -> int:
    """Bytes that a forward pass of one batch keeps for the backward pass, parameters left out."""
    index = np.arange(options.batch_size)
    batch = MaskedTokens(texts.masking, texts.train).prepare(
        Batch.from_rows(texts.train.select(index)), index, 0
    )
    own = {p.untyped_storage().data_ptr() for p in model.parameters()}
    kept: dict[int, Tensor] = {}

    def keep(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor  # holds it, so that no address comes twice
        return tensor

    model.train()
    bf16 = options.precision == "bf16"
    rounding: AbstractContextManager[Mapping[Tensor, Tensor]] = (
        rounded_weights_(model) if bf16 else nullcontext({})
    )
    with rounding as rounded:
        own |= {weight.untyped_storage().data_ptr() for weight in rounded.values()}
        with (
            torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor),
            torch.autocast("cpu", torch.bfloat16, enabled=bf16),
        ):
            model(batch)
    return sum(one.untyped_storage().nbytes() for place, one in kept.items() if place not in own)


def _table(variants: Sequence[Variant], done: dict[tuple[Variant, int], dict[str, Any]], seeds: int) -> str:
    head = (
        "| encoder | held-out loss, by seed | mean | right | gradient first/last, at first | in the end | "
        "stream grows | last adds / first | rank | CPU s | kept MB | M parameters in layers | M MACs/token |"
    )
    lines = [head, "| --- " + "| ---: " * (head.count("|") - 2) + "|"]
    for variant in variants:
        rows = [done[replace(variant, name=""), seed] for seed in range(seeds)]
        if broken := [row["diverged"] for row in rows if "diverged" in row]:
            lines.append(f"| {variant.name} | {broken[0]} |")
            continue

        def mean(*path: str, rows: list[dict[str, Any]] = rows) -> float:
            values = []
            for row in rows:
                value: Any = row
                for key in path:
                    value = value[key]
                values.append(float("nan") if value is None else value)
            return statistics.mean(values)

        cells = [
            ", ".join(f"{row['loss']:.4f}" for row in rows),
            f"{mean('loss'):.4f}",
            f"{mean('accuracy'):.1%}",
            *(f"{mean(when, 'gradient_ratio'):.2f}" for when in ("start", "end")),
            *(f"{mean('end', name):.2f}" for name in ("growth", "dilution")),
            f"{mean('end', 'rank'):.1f}",
            f"{mean('cpu_s_per_step'):.3f}",
            f"{mean('kept_bytes') / 1e6:.1f}",
            f"{mean('layer_parameters') / 1e6:.3f}",
            f"{mean('macs_per_token') / 1e6:.3f}",
        ]
        lines.append(f"| {variant.name} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
