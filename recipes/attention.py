"""Where each head looks in a text, and what the answer owes to it: an `AttentionConfig` in, a `Seen` out."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from encoder.errors import ConfigError
from encoder.files import OutputFolder
from encoder.rows import TokenizedRows
from encoder.task import Task
from recipes.account import describe_run
from recipes.attention_config import AttentionConfig
from recipes.attention_heads import HeadResult, look_at_heads
from recipes.attention_residual import ResidualResult, check_residual, look_at_residual
from recipes.data_options import data_options
from recipes.encoders import EncoderResult, FoundEncoder, describe_encoder, find_encoder
from recipes.observer import Observer, Recorder, Silent
from recipes.part import Part
from recipes.result import Run, describe_parent, read_result
from recipes.scoring import choose_device

if TYPE_CHECKING:
    from encoder.model import Classifier

# More weights than this are more than a page should hold: 64 MB of it.
MOST_WEIGHTS = 24_000_000


class TokenResult(Part):
    """A token as a reader knows it; ``sequence`` is 0 or 1, the text it stands in, or None if special."""

    text: str
    sequence: int | None


class Answer(Part):
    """What the model makes of the text. ``output`` is the number of the logit; a regression has no label."""

    label: str | None
    probability: float | None
    logit: float
    output: int


class AttentionResult(Run):
    """One run of `enc attention`. ``importance_from`` says what importance was found on.

    Either heads were looked at, or ``residual``: what sublayers take of each other.
    """

    encoder: EncoderResult
    text: str
    text_pair: str | None
    tokens: tuple[TokenResult, ...]
    answer: Answer | None
    importance_from: str | None
    heads: tuple[HeadResult, ...]
    residual: ResidualResult | None = None


@dataclass(frozen=True)
class Seen:
    """The result, and the weights of each head that is there, by layer and number: float32 [T, T]."""

    result: AttentionResult
    weights: Mapping[tuple[int, int], NDArray[np.float32]]


def attention(config: AttentionConfig, observer: Observer | None = None) -> Seen:
    """The attention of the text of ``config``, head by head.

    Raises:
        ConfigError, DataError, CheckpointError: before anything is computed.
    """
    started = time.perf_counter()
    recorder = Recorder(observer or Silent())
    if config.page is not None:
        OutputFolder(config.page, overwrite=config.overwrite).check_file()
    recorder.stage(f"Looking at {config.model}")
    found = find_encoder(config.model, config.max_length)
    _check_head(config, found)
    _check_pair(config, found.task)
    if config.residual:
        check_residual(found.config, config.model)
    device = choose_device(config.device, config.threads)
    tokens, row = _tokenize(config, found, recorder)
    rows = None if config.data is None else _read_rows(config, found, recorder)

    recorder.stage("Looking at the text")
    views, weights = _look_at_text(config, found, tokens, row, rows, device, recorder)
    result = AttentionResult(
        **describe_run(
            "attention",
            config,
            seconds=time.perf_counter() - started,
            output=config.page,
            seed=None,
            parent=describe_parent(config.model, found.folder),
            notes=recorder.notes,
        ),
        encoder=describe_encoder(found),
        text=config.text,
        text_pair=config.pair,
        tokens=tuple(tokens),
        **views,
    )
    return Seen(result, weights)


def _look_at_text(
    config: AttentionConfig,
    found: FoundEncoder,
    tokens: Sequence[TokenResult],
    row: TokenizedRows,
    rows: TokenizedRows | None,
    device: str,
    observer: Observer,
) -> tuple[dict[str, Any], dict[tuple[int, int], NDArray[np.float32]]]:
    """The answer and what is known of heads or sublayers, by field of the result; and the heads' weights."""
    from encoder.checkpoint import load_classifier, load_encoder

    model, answer, output = None, None, None
    if found.task is None:
        encoder = load_encoder(found.folder).to(device)
    else:
        model = load_classifier(found.folder).to(device)
        encoder = model.encoder
        answer = _answer(model, row, device)
        output = answer.output
    if config.residual:
        residual = look_at_residual(encoder, model, row, output)
        return {"answer": answer, "importance_from": None, "heads": (), "residual": residual}, {}
    importance, source = _find_importance(config, found, model, rows, device, observer)
    special = [token.sequence is None for token in tokens]
    heads, weights = look_at_heads(found.config, encoder, model, row, output, special, importance)
    return {"answer": answer, "importance_from": source, "heads": heads}, weights


def _check_head(config: AttentionConfig, found: FoundEncoder) -> None:
    if config.layer is None or config.head is None:
        return
    layers = found.config.layers
    if config.layer >= len(layers):
        raise ConfigError(f"--layer {config.layer}: {found.source} has layers 0 to {len(layers) - 1}")
    heads = layers[config.layer].heads
    if config.head not in heads:
        there = ", ".join(map(str, heads)) or "none"
        raise ConfigError(f"--head {config.head}: the heads of layer {config.layer} are {there}")


def _check_pair(config: AttentionConfig, task: Task | None) -> None:
    if task is not None and task.pair and config.pair is None:
        raise ConfigError(f"--pair is missing: {config.model} was fine-tuned on pairs of texts")


def _tokenize(
    config: AttentionConfig, found: FoundEncoder, observer: Observer
) -> tuple[list[TokenResult], TokenizedRows]:
    pairs = None if config.pair is None else [config.pair]
    row, stats = found.tokenizer.encode([config.text], pairs, max_length=found.max_length)
    if stats.rows_cut:
        observer.note(f"Cut at {found.max_length} tokens; {stats.tokens_lost:,} are left out.")
    number = len(row.input_ids) ** 2 * sum(shape.num_attention_heads for shape in found.config.layers)
    if number > MOST_WEIGHTS and not config.residual:
        heads = sum(shape.num_attention_heads for shape in found.config.layers)
        longest = int((MOST_WEIGHTS / heads) ** 0.5)
        raise ConfigError(
            f"a text of {len(row.input_ids)} tokens has {number:,} attention weights, more than a page can "
            f"hold; cut it with --max-length {longest}, or give a shorter one"
        )
    pieces = found.tokenizer.spell(config.text, config.pair, max_length=found.max_length)
    return [TokenResult(text=piece.text, sequence=piece.sequence) for piece in pieces], row


def _answer(model: "Classifier", row: TokenizedRows, device: str) -> Answer:
    from encoder.metrics import activate
    from encoder.prediction import predict_logits

    logits = predict_logits(model, row, device=device)
    output = int(logits[0].argmax())
    if model.task.kind == "regression":
        return Answer(label=None, probability=None, logit=float(logits[0, 0]), output=0)
    return Answer(
        label=model.task.labels[output],
        probability=float(activate(model.task, logits)[0, output]),
        logit=float(logits[0, output]),
        output=output,
    )


def _read_rows(config: AttentionConfig, found: FoundEncoder, observer: Observer) -> TokenizedRows:
    """Training rows with their labels, as many as are asked for."""
    from dataclasses import replace

    from encoder.data import read_data

    assert config.data is not None
    if found.task is None:
        raise ConfigError(f"--data: {config.model} has no classifier, so no loss to find importance by")
    observer.stage(f"Reading {config.data}")
    data = read_data(config.data, data_options(config), task=found.task)
    split = next(name for name in ("train", "validation", "test") if name in data.splits)
    rows, _ = found.tokenizer.encode(data.texts(split), data.pairs(split), max_length=found.max_length)
    drawn = np.random.default_rng(0).permutation(len(rows))[: config.rows]
    return replace(rows, labels=data.labels(split)).select(drawn)


def _find_importance(
    config: AttentionConfig,
    found: FoundEncoder,
    model: "Classifier | None",
    rows: TokenizedRows | None,
    device: str,
    observer: Observer,
) -> tuple[dict[tuple[int, int], float], str | None]:
    """The importance of heads by layer and number, and what it was found on.

    Without rows it is what run.json has of a pruning of heads, also of those that it removed.
    """
    if rows is not None and model is not None:
        from compress.importance import score_units

        observer.stage("Scoring the heads")
        scores = score_units(
            model,
            rows,
            "heads",
            "fisher",
            device=device,
            on_done=lambda done, total: observer.working(done, total),
        )
        known = {
            (layer, head): float(scores[layer][place])
            for layer, shape in enumerate(found.config.layers)
            for place, head in enumerate(shape.heads)
        }
        return known, f"the Fisher information of {len(rows):,} rows of {config.data}"
    result = read_result(found.folder)
    pruning = None if result is None else result.pruning
    if pruning is None or pruning.unit != "heads" or not pruning.rows:
        return {}, None
    known = {
        (layer.layer, head): score
        for layer in pruning.layers
        for head, score in zip(layer.heads_before or (), layer.importance or (), strict=False)
    }
    return known, f"what the heads were pruned by ({pruning.method}, {pruning.rows:,} rows)"
