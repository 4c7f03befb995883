"""The splits of a data set on their way to a score: tokenized, predicted, judged."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from compress.deployed import Export, read_export
from compress.machine import list_gpus, require_gpu, supports_bf16
from compress.uncertainty import ScoreInterval, score_interval
from encoder.config import EncoderConfig
from encoder.errors import ConfigError
from encoder.metrics import main_metric, score
from encoder.model_folder import is_exported, read_config, read_task, read_tokenizer, resolve_model
from encoder.rows import TokenizedRows, length_sorted_batches
from encoder.task import Task
from recipes.class_scores import PerClass, score_classes
from recipes.models import no_classifier
from recipes.observer import Observer, counting
from recipes.result import Encoded, Result, read_result, without_nan

if TYPE_CHECKING:
    from encoder.data import TaskData
    from encoder.model import Classifier
    from encoder.tokenizer import EncodingStats, Tokenizer

# Rows that an exported model computes at once; it pads them to the longest.
EXPORTED_BATCH_ROWS = 32
# Beyond this share of unknown tokens the vocabulary is hardly one for these texts.
MANY_UNKNOWN = 0.05


@dataclass(frozen=True)
class Splits:
    """Tokenized rows with labels by split, and what tokenizing did to each."""

    rows: Mapping[str, TokenizedRows]
    encoded: Mapping[str, Encoded]


@dataclass(frozen=True)
class Scored:
    """The logits of a split, float32 [R, C], their scores, and the interval of the main one.

    ``interval`` is ``None`` where it is not known: one row, or a score that is not defined. ``per_class`` is
    ``None`` for regression.
    """

    logits: NDArray[np.float32]
    scores: dict[str, float | None]
    interval: ScoreInterval | None
    per_class: PerClass | None = None


@dataclass(frozen=True)
class FineTuned:
    """A fine-tuned model's folder, looked at but not loaded; ``source`` is how it was called.

    ``max_length`` is that of its fine-tuning. ``export`` describes the graph of an exported model; it is
    ``None`` for one in torch.
    """

    source: str
    folder: Path
    config: EncoderConfig
    tokenizer: "Tokenizer"
    task: Task
    max_length: int
    result: Result | None
    export: Export | None


def find_fine_tuned(source: str, max_length: int | None, *, exported: bool = False) -> FineTuned:
    """The classifier at ``source``; ``max_length``, where it is given, replaces its own.

    ``exported``: one that `enc export` wrote is welcome too.

    Raises:
        CheckpointError: no model there, or an encoder without a classifier.
    """
    return look_at(source, resolve_model(source, exported=exported), max_length)


def look_at(source: str, folder: Path, max_length: int | None = None) -> FineTuned:
    """As ``find_fine_tuned``, of a model whose ``folder`` is known."""
    config, tokenizer = read_config(folder), read_tokenizer(folder)
    result = read_result(folder)
    export = read_export(folder) if is_exported(folder) else None
    own = result.model.max_length if result else tokenizer.max_length
    if export is not None:
        own = export.max_length
    task = read_task(folder)
    if task is None:
        raise no_classifier(source)
    return FineTuned(source, folder, config, tokenizer, task, max_length or own, result, export)


def tokenize(
    data: "TaskData", tokenizer: "Tokenizer", *, max_length: int, names: Sequence[str], observer: Observer
) -> Splits:
    """The splits ``names`` of ``data`` as rows of at most ``max_length`` tokens; says what had to be cut."""
    from encoder.token_cache import encode_cached

    observer.stage("Tokenizing")
    rows, encoded = {}, {}
    texts = {name: data.texts(name) for name in names}
    count = counting(sum(map(len, texts.values())), observer)
    for name in names:
        made, stats = encode_cached(
            tokenizer, texts[name], data.pairs(name), max_length=max_length, on_rows=count
        )
        rows[name] = replace(made, labels=data.labels(name))
        encoded[name] = describe_encoded(stats)
    for note in (describe_cut(encoded, max_length), _describe_unknown(encoded)):
        if note:
            observer.note(note)
    return Splits(rows, encoded)


def score_split(
    model: "Classifier",
    rows: TokenizedRows,
    *,
    device: str,
    observer: Observer,
) -> Scored:
    """The scores of ``model`` on ``rows``, computed in float32."""
    from encoder.prediction import predict_logits

    logits = predict_logits(model, rows, device=device, on_rows=counting(len(rows), observer))
    assert rows.labels is not None
    return judge_logits(model.task, logits, rows.labels)


def main_score(model: "Classifier", rows: TokenizedRows, *, device: str, observer: Observer) -> float | None:
    """The main score alone, of one trial among others; ``None`` where it is not defined."""
    from encoder.prediction import predict_logits

    logits = predict_logits(model, rows, device=device, on_rows=counting(len(rows), observer))
    assert rows.labels is not None
    return without_nan(score(model.task, logits, rows.labels))[main_metric(model.task)]


def find_logits(
    found: FineTuned, rows: TokenizedRows, *, device: str, threads: int | None, observer: Observer
) -> NDArray[np.float32]:
    """Logits [R, C] of the model ``found``; those of an exported one come from a process without torch."""
    if found.export is not None:
        from compress.process import default_threads
        from compress.sessions import fresh_logits

        return fresh_logits(
            found.export.runtime,
            found.folder,
            rows,
            length_sorted_batches(rows.lengths, EXPORTED_BATCH_ROWS),
            device=device,
            threads=default_threads(threads),
            on_rows=counting(len(rows), observer),
        )
    from encoder.checkpoint import load_classifier
    from encoder.prediction import predict_logits

    model = load_classifier(found.folder).to(device)
    return predict_logits(model, rows, device=device, on_rows=counting(len(rows), observer))


def judge_logits(task: Task, logits: NDArray[np.float32], labels: NDArray[np.generic]) -> Scored:
    """The scores of ``logits`` [R, C], the interval of the main one, and how each class fares."""
    return Scored(
        logits,
        without_nan(score(task, logits, labels)),
        find_interval(task, logits, labels),
        score_classes(task, logits, labels),
    )


def find_interval(
    task: Task, logits: NDArray[np.float32], labels: NDArray[np.generic]
) -> ScoreInterval | None:
    """The interval of the main metric; ``None`` where resampling the rows cannot tell."""
    interval = score_interval(task, logits, labels, metric=main_metric(task))
    known = np.isfinite([interval.score, interval.low, interval.high]).all() and interval.low < interval.high
    return interval if known else None


def describe_encoded(stats: "EncodingStats") -> Encoded:
    """What tokenizing did to a split, as run.json has it."""
    return Encoded(**{key: getattr(stats, key) for key in Encoded.model_fields})


def describe_cut(encoded: Mapping[str, Encoded], max_length: int) -> str:
    """A sentence on what was cut; each split that lost something with its share of rows and tokens."""
    parts = [
        f"{stats.rows_cut:,} of {stats.rows:,} {name} rows ({stats.rows_cut / stats.rows:.1%}), "
        f"{stats.tokens_lost / (stats.tokens + stats.tokens_lost):.1%} of their tokens"
        for name, stats in encoded.items()
        if stats.rows_cut
    ]
    if not parts:
        return f"No text is longer than {max_length} tokens; nothing is cut."
    return f"Cut at {max_length} tokens: {'; '.join(parts)}."


def _describe_unknown(encoded: Mapping[str, Encoded]) -> str:
    tokens = sum(stats.tokens for stats in encoded.values())
    unknown = sum(stats.tokens_unknown for stats in encoded.values())
    if tokens == 0 or unknown / tokens < MANY_UNKNOWN:
        return ""
    return (
        f"{unknown / tokens:.0%} of the tokens are unknown to the model's vocabulary: "
        "was it trained on texts of this language?"
    )


def choose_device(wanted: Literal["auto", "cpu", "cuda"], threads: int | None) -> str:
    """``cpu`` or ``cuda``, and let so many ``threads`` compute and tokenize on the CPU.

    Raises:
        ConfigError: a GPU is wanted and there is none.
    """
    if threads is not None:
        import torch

        from encoder.tokenizer import limit_threads

        torch.set_num_threads(threads)
        limit_threads(threads)
    if wanted == "cuda":
        require_gpu(otherwise="cpu or auto")
    return "cuda" if wanted != "cpu" and list_gpus() else "cpu"


def choose_device_of(found: FineTuned, wanted: Literal["auto", "cpu", "cuda"], threads: int | None) -> str:
    """As ``choose_device``, for the model ``found``; one that is exported is asked without loading torch.

    Raises:
        ConfigError: it cannot run there on this machine.
    """
    if found.export is None:
        return choose_device(wanted, threads)
    from compress.runtimes import why_unavailable

    device: str = wanted
    if wanted == "auto":
        device = "cuda" if found.export.precision == "fp16" else "cpu"
    if why := why_unavailable(found.export.runtime, device):
        raise ConfigError(f"{found.source} cannot run on {device}: {why}")
    return device


def choose_precision(wanted: Literal["auto", "fp32", "bf16"], device: str) -> Literal["fp32", "bf16"]:
    """What ``auto`` means on this machine: bf16 where ``device`` has it in hardware."""
    if wanted == "auto":
        return "bf16" if supports_bf16(device) else "fp32"
    return wanted
