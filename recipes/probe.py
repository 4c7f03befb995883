"""What each layer knows of the labels: a `ProbeConfig` in, a `ProbeResult` out."""

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from encoder.errors import ConfigError
from encoder.probing import Rows, choose_strength, rows_right
from encoder.rows import TokenizedRows
from encoder.task import in_words
from encoder.vector_choice import choose
from recipes.account import describe_run
from recipes.data_options import data_options
from recipes.encoders import FoundEncoder, describe_encoder, find_encoder
from recipes.first_look import look_before_measuring
from recipes.observer import Observer, Recorder, Silent, counting
from recipes.probe_config import ProbeConfig
from recipes.probe_verdict import ProbeResult, Right, judge_probes, summarize
from recipes.result import Encoded, describe_data, describe_parent, read_result, save_run
from recipes.scoring import choose_device, describe_cut, describe_encoded

if TYPE_CHECKING:
    from encoder.data import TaskData
    from encoder.model import Encoder

# Each probe is fitted on this share of the training rows, drawn by its seed.
DRAWN = 0.8
SPLITS = ("train", "validation", "test")
# For each layer, the embeddings first, the vectors of the rows of each split.
Layers = Sequence[Mapping[str, Rows]]


def probe(config: ProbeConfig, observer: Observer | None = None) -> ProbeResult:
    """The accuracy of a linear classifier on each layer's vectors, beside its two controls.

    Raises:
        ConfigError, DataError, CheckpointError: before anything is computed.
    """
    started = time.perf_counter()
    folder = look_before_measuring(config)
    recorder = Recorder(observer or Silent())
    recorder.stage(f"Looking at {config.model}")
    found = find_encoder(config.model, config.max_length)
    device = choose_device(config.device, config.threads)
    data = _read(config, found, recorder)
    rows, encoded = _tokenize(config, found, data, recorder)
    real, random, shuffled = _fit_probes(config, found, rows, device, recorder)
    told = _told(rows)
    labels = rows[told].labels
    assert labels is not None
    result = ProbeResult(
        **describe_run(
            "probe",
            config,
            seconds=time.perf_counter() - started,
            output=config.output,
            seed=0,
            parent=describe_parent(config.model, found.folder),
            notes=recorder.notes,
        ),
        encoder=describe_encoder(found),
        data=describe_data(data, encoded),
        pooling=config.pooling,
        seeds=config.seeds,
        train_rows=round(DRAWN * len(rows["train"])),
        split=told,
        rows=len(labels),
        most_frequent=float(np.bincount(labels.astype(np.int64)).max() / len(labels)),
        layers=tuple(
            summarize(layer, *rights, strength=real.strengths[layer])
            for layer, rights in enumerate(zip(real.right, random.right, shuffled.right, strict=True))
        ),
        verdict=judge_probes(real.right, random.right),
    )
    save_run(result, folder)
    return result


def _fit_probes(
    config: ProbeConfig,
    found: FoundEncoder,
    rows: Mapping[str, TokenizedRows],
    device: str,
    observer: Observer,
) -> tuple["_Probes", "_Probes", "_Probes"]:
    """The probes of the encoder's layers; of the same with random weights; and on shuffled labels."""
    from encoder.checkpoint import load_encoder
    from encoder.model import Encoder, initialise_

    def embed(encoder: "Encoder", what: str) -> Layers:
        observer.stage(f"Computing all {found.config.num_hidden_layers} layers{what}")
        return _embed(encoder.to(device), rows, config, device, observer)

    real, shuffled = _Probes(config, observer), _Probes(config, observer, shuffled=True)
    layers = embed(load_encoder(found.folder), "")
    for seed in range(config.seeds):
        real.fit(layers, seed)
        shuffled.fit(layers, seed)
    del layers
    random = _Probes(config, observer)
    for seed in range(config.seeds):
        encoder = Encoder(found.config)
        initialise_(encoder, found.config, seed)
        random.fit(embed(encoder, f" with random weights ({seed + 1} of {config.seeds})"), seed)
    return real, random, shuffled


class _Probes:
    """The probes of all layers under one condition; ``right[layer]`` is bool [R] for each seed.

    How strong they are is chosen with the first seed, layer by layer, on rows that are not reported on.
    """

    def __init__(self, config: ProbeConfig, observer: Observer, *, shuffled: bool = False) -> None:
        self._config, self._observer, self._shuffled = config, observer, shuffled
        self.strengths: dict[int, float] = {}
        self.right: list[list[Right]] = []

    def fit(self, layers: Layers, seed: int) -> None:
        """Fit the probes of one seed."""
        what = "with shuffled labels " if self._shuffled else ""
        self._observer.stage(f"Fitting probes {what}({seed + 1} of {self._config.seeds})")
        self.right = self.right or [[] for _ in layers]
        for layer, splits in enumerate(layers):
            self.right[layer].append(self._fit_one(layer, splits, seed))
            self._observer.working(layer + 1, len(layers))

    def _fit_one(self, layer: int, splits: Mapping[str, Rows], seed: int) -> Right:
        random = np.random.default_rng([seed, self._shuffled])
        order = random.permutation(len(splits["train"].labels))
        cut = round(DRAWN * len(order))
        drawn, left_out = splits["train"].select(order[:cut]), splits["train"].select(order[cut:])
        if self._shuffled:
            drawn = drawn.with_labels(random.permutation(drawn.labels))
        told = _told(splits)
        if layer not in self.strengths:
            chosen_on = splits["validation"] if told == "test" else left_out
            self.strengths[layer] = choose_strength(drawn, chosen_on)
        return rows_right(drawn, splits[told], self.strengths[layer])


def _told(splits: Mapping[str, object]) -> str:
    """The split that accuracy is told of; nothing is chosen on it."""
    return "test" if "test" in splits else "validation"


def _read(config: ProbeConfig, found: FoundEncoder, observer: Observer) -> "TaskData":
    from encoder.data import read_data

    observer.stage(f"Reading {config.data}")
    data = read_data(config.data, data_options(config, read_result(found.folder), rows_too=False))
    if data.task.kind != "single_label":
        raise ConfigError(
            f"--data {config.data}: {in_words(data.task.kind)}; probes are classifiers, and take one label a "
            "row"
        )
    observer.data(data.report)
    return data


def _tokenize(
    config: ProbeConfig, found: FoundEncoder, data: "TaskData", observer: Observer
) -> tuple[dict[str, TokenizedRows], dict[str, Encoded]]:
    """The rows of each split, of train no more than are asked for; and what tokenizing did."""
    from dataclasses import replace

    rows, encoded = {}, {}
    for name in (name for name in SPLITS if name in data.splits):
        texts, pairs, labels = data.texts(name), data.pairs(name), data.labels(name)
        chosen = np.arange(len(texts))
        if name == "train":
            chosen = np.random.default_rng(0).permutation(len(texts))[: config.train_rows]
        made, stats = found.tokenizer.encode(
            [config.prefix + texts[row] for row in chosen],
            None if pairs is None else [pairs[row] for row in chosen],
            max_length=found.max_length,
        )
        rows[name] = replace(made, labels=labels[chosen])
        encoded[name] = describe_encoded(stats)
    observer.note(describe_cut(encoded, found.max_length))
    return rows, encoded


def _embed(
    encoder: "Encoder",
    rows: Mapping[str, TokenizedRows],
    config: ProbeConfig,
    device: str,
    observer: Observer,
) -> Layers:
    """The vectors of all layers, from one pass over each split."""
    from encoder.embedding import embed_rows

    depth = len(encoder.layers)
    choices = [choose(str(layer), config.pooling, depth) for layer in range(depth + 1)]
    count = counting(sum(len(split) for split in rows.values()), observer, "rows")
    layers: list[dict[str, Rows]] = [{} for _ in choices]
    for name, split in rows.items():
        made = embed_rows(encoder, split, choices, precision=config.precision, device=device, on_rows=count)
        assert split.labels is not None
        for layer, vectors in zip(layers, made, strict=True):
            layer[name] = Rows(vectors, split.labels.astype(np.int64))
    return layers
