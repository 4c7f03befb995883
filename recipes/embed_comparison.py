"""Which layer and which pooling make the best vectors: an `EmbedConfig` in, an `EmbedComparison` out."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from compress.uncertainty import ScoreDifference, score_difference
from encoder.errors import DataError
from encoder.rows import TokenizedRows
from encoder.task import Task
from encoder.vector_choice import POOLINGS, Choice, Pooling, choose
from recipes.account import describe_run
from recipes.data_options import data_options
from recipes.embed_config import EmbedConfig
from recipes.encoders import EncoderResult, FoundEncoder, describe_encoder, find_encoder
from recipes.observer import Observer, Recorder, Silent, counting
from recipes.part import Part
from recipes.result import Run, describe_parent, without_nan
from recipes.scoring import choose_device, describe_cut, describe_encoded

if TYPE_CHECKING:
    from encoder.data import TaskData
    from encoder.model import Encoder
    from encoder.prediction import Precision

METRIC = "spearman"
SIMILARITY = Task(kind="regression", pair=True)
# Means of several layers that are tried beside every single one.
MEANS = ("-2:", "-4:", "1:")
# Of the splits that are there, the first is chosen on, and the first of the others is what is told of it.
CHOSEN_ON = ("validation", "train", "test")
TOLD_ON = ("test", "validation")


class ComparedChoice(Part):
    """Vectors of some layers (as `--layers` takes them), pooled in one way; ``score`` is Spearman's."""

    layers: str
    pooling: Pooling
    score: float | None


class EmbedComparison(Run):
    """One run of `enc embed --compare`. Scores are Spearman's correlation of cosines with the labels.

    ``choices`` are scored on ``split``, and ``best`` is the best there; ``usual`` is the mean of the last
    layer. ``held_out`` are the scores of these two on ``held_out_split``, which nothing was chosen on, and
    ``difference`` is best less usual there; they are ``None`` where there is no other split.
    """

    encoder: EncoderResult
    data: str
    prefix: str
    split: str
    rows: int
    choices: tuple[ComparedChoice, ...]
    best: ComparedChoice
    usual: ComparedChoice
    held_out_split: str | None
    held_out_rows: int | None
    held_out_best: float | None
    held_out_usual: float | None
    difference: ScoreDifference | None
    verdict: str


def compare_choices(config: EmbedConfig, observer: Observer | None = None) -> EmbedComparison:
    """The score of each layer and pooling on the pairs of ``config.compare``.

    Raises:
        ConfigError, DataError, CheckpointError: before anything is computed.
    """
    from encoder.checkpoint import load_encoder

    assert config.compare is not None
    started = time.perf_counter()
    recorder = Recorder(observer or Silent())
    recorder.stage(f"Looking at {config.model}")
    found = find_encoder(config.model, config.max_length)
    device = choose_device(config.device, config.threads)
    data = _read(config, recorder)
    split = next(name for name in CHOSEN_ON if name in data.splits)
    told = next((name for name in TOLD_ON if name in data.splits and name != split), None)

    choices = all_choices(found.config.num_hidden_layers)
    scorer = _Scorer(load_encoder(found.folder).to(device), found, data, config, device, recorder)
    scored = [
        ComparedChoice(layers=choice.layers, pooling=choice.pooling, score=scorer.score(cosines, split))
        for choice, cosines in zip(choices, scorer.cosines(split, choices), strict=True)
    ]
    best = max(range(len(scored)), key=lambda at: -2.0 if (s := scored[at].score) is None else s)
    usual = choices.index(choose(str(found.config.num_hidden_layers), "mean", found.config.num_hidden_layers))
    held_out = _HeldOut() if told is None else scorer.hold_out(told, choices[best], choices[usual])
    return EmbedComparison(
        **describe_run(
            "embed",
            config,
            seconds=time.perf_counter() - started,
            output=None,
            seed=None,
            parent=describe_parent(config.model, found.folder),
            notes=recorder.notes,
        ),
        encoder=describe_encoder(found),
        data=config.compare,
        prefix=config.prefix,
        split=split,
        rows=len(data.labels(split)),
        choices=tuple(scored),
        best=scored[best],
        usual=scored[usual],
        held_out_split=told,
        held_out_rows=None if told is None else len(data.labels(told)),
        held_out_best=held_out.best,
        held_out_usual=held_out.usual,
        difference=held_out.difference,
        verdict=_judge(scored[best], best == usual, held_out.difference, told),
    )


def all_choices(num_layers: int) -> list[Choice]:
    """Every layer, the embeddings included, and the means of several; each in all poolings."""
    written = [str(layer) for layer in range(num_layers + 1)]
    written += [layers for layers in MEANS if len(choose(layers, "mean", num_layers).states) < num_layers]
    written += [MEANS[-1]] if num_layers > 1 else []
    return [choose(layers, pooling, num_layers) for layers in dict.fromkeys(written) for pooling in POOLINGS]


def _read(config: EmbedConfig, observer: Observer) -> "TaskData":
    from encoder.data import read_data

    assert config.compare is not None
    observer.stage(f"Reading {config.compare}")
    options = data_options(config).model_copy(update={"task": "regression"})
    data = read_data(config.compare, options, task=SIMILARITY, single_split="test")
    observer.data(replace(data.report, task="how similar pairs of texts are, a number"))
    if all(np.ptp(data.labels(name)) == 0 for name in data.splits):
        raise DataError(f"{config.compare}: all labels are the same; nothing can be compared with them")
    return data


@dataclass(frozen=True)
class _HeldOut:
    """The scores of the best choice and the usual one where nothing was chosen, and best less usual."""

    best: float | None = None
    usual: float | None = None
    difference: ScoreDifference | None = None


class _Scorer:
    """Scores choices on the pairs of a split, by what ``encoder`` makes of their texts."""

    def __init__(
        self,
        encoder: "Encoder",
        found: FoundEncoder,
        data: "TaskData",
        config: EmbedConfig,
        device: str,
        observer: Observer,
    ) -> None:
        self._encoder, self._found, self._data = encoder, found, data
        self._config, self._device, self._observer = config, device, observer

    def cosines(self, split: str, choices: Sequence[Choice]) -> list[NDArray[np.float32]]:
        """The cosine of each pair of ``split``, float32 [R], for each of ``choices``."""
        from encoder.embedding import embed_rows, normalize

        firsts, seconds = self._data.texts(split), self._data.pairs(split)
        assert seconds is not None
        texts = list(dict.fromkeys([*firsts, *seconds]))  # a text of several pairs is embedded once
        place = {text: number for number, text in enumerate(texts)}
        self._observer.stage(f"Embedding the texts of the {split} pairs")
        rows = self._tokenize(texts, split)
        count = counting(len(texts), self._observer, "texts")
        precision: Precision = "bf16" if self._config.runtime == "torch-bf16" else "fp32"
        made = embed_rows(
            self._encoder, rows, choices, precision=precision, device=self._device, on_rows=count
        )
        first, second = [place[text] for text in firsts], [place[text] for text in seconds]
        found_cosines = []
        for vectors in map(normalize, made):
            cosines: NDArray[np.float32] = (vectors[first] * vectors[second]).sum(1)
            found_cosines.append(cosines)
        return found_cosines

    def _tokenize(self, texts: Sequence[str], split: str) -> TokenizedRows:
        most = self._found.max_length
        prefixed = [self._config.prefix + text for text in texts]
        rows, stats = self._found.tokenizer.encode(prefixed, max_length=most)
        if stats.rows_cut:
            self._observer.note(describe_cut({split: describe_encoded(stats)}, most))
        return rows

    def score(self, cosines: NDArray[np.float32], split: str) -> float | None:
        """Spearman's correlation with the labels of ``split``; ``None`` where it is not defined."""
        from encoder.metrics import score

        return without_nan(score(SIMILARITY, cosines[:, None], self._data.labels(split)))[METRIC]

    def hold_out(self, split: str, best: Choice, usual: Choice) -> _HeldOut:
        """Both choices on the pairs of ``split``."""
        best_there, usual_there = self.cosines(split, [best, usual])
        scores = self.score(best_there, split), self.score(usual_there, split)
        if None in scores or best == usual:
            return _HeldOut(*scores)
        labels = self._data.labels(split)
        difference = score_difference(
            SIMILARITY, usual_there[:, None], best_there[:, None], labels, metric=METRIC
        )
        return _HeldOut(*scores, difference)


def _judge(
    best: ComparedChoice, is_usual: bool, difference: ScoreDifference | None, split: str | None
) -> str:
    """What may be claimed, and the options that make the best vectors."""
    options = f"--layers {best.layers} --pooling {best.pooling}"
    if is_usual:
        return f"The mean of the last layer is the best: {options}."
    if difference is None:
        return f"The best here: {options}. No other split says whether it is better on other pairs too."
    if difference.low > 0:
        return f"The best: {options}; better than the mean of the last layer, on the {split} pairs too."
    if difference.high < 0:
        return (
            f"The best where it was chosen: {options}; but on the {split} pairs the mean of the last layer "
            "is better. Stay with it."
        )
    return (
        f"The best: {options}; on the {split} pairs no difference from the mean of the last layer that "
        f"{difference.rows:,} pairs can show."
    )
