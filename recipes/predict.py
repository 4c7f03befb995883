"""Label texts with a fine-tuned model, a chunk at a time: as many texts as you like in bounded memory."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from compress.deployed import warn_of_cpu
from encoder.errors import ConfigError, DataError
from encoder.rows import TokenizedRows
from encoder.task import Task, in_words
from encoder.text_stream import stream_texts
from recipes.observer import Observer, Silent
from recipes.predict_config import PredictConfig
from recipes.prediction import Prediction
from recipes.ranking import choose_ranking, rank
from recipes.result import Encoded
from recipes.scoring import (
    EXPORTED_BATCH_ROWS,
    FineTuned,
    choose_device_of,
    describe_cut,
    find_fine_tuned,
)

CHUNK_ROWS = 512
LINES_SUFFIX = ".txt"
THRESHOLD = 0.5

Row = tuple[str, str | None]
# Rows to logits float32 [R, C].
Compute = Callable[[TokenizedRows], NDArray[np.float32]]


@dataclass(frozen=True)
class Predictions:
    """The predictions of a model of this ``task``, in the order of the texts; made as they are asked for.

    ``ranked``: candidates of a query, the best first.
    """

    task: Task
    rows: Iterator[list[Prediction]]
    ranked: bool = False


def predict(
    config: PredictConfig, *, lines: Iterable[bytes] = (), observer: Observer | None = None
) -> Predictions:
    """Predictions for ``config.texts``, ``config.input`` or, where neither is given, ``lines``.

    A line that is empty is a text too, so that predictions can be put beside their lines. The last thing told
    to ``observer`` is what was cut.

    Raises:
        ConfigError, DataError, CheckpointError: a wrong model or file before any prediction, a broken line
            when it is reached.
    """
    observer = observer or Silent()
    found = find_fine_tuned(config.model, config.max_length, exported=True)
    own_task = found.task
    device = choose_device_of(found, config.device, config.threads)
    for note in warn_of_cpu(found.export):
        observer.note(note)
    if config.threshold is not None and own_task.kind != "multi_label":
        raise ConfigError(
            f"--threshold {config.threshold}: {config.model} is a {in_words(own_task.kind)} model; only of "
            "several labels are those above a threshold given"
        )
    pair = config.pair or own_task.pair
    ranking = None
    if config.query is not None:
        if not pair:
            raise ConfigError(f"--query: {config.model} takes single texts; if it takes pairs say so: --pair")
        ranking = choose_ranking(own_task, config.rank_by, config.model)
        rows = _rows_of_candidates(config, observer)
    elif config.texts:
        rows = _rows_of_texts(config.texts, pair)
    elif config.input is None:
        rows = _rows_of_lines(lines, "stdin", pair, config.encoding)
    else:
        rows = _rows_of_file(config.input, pair, config, observer)
    threshold = THRESHOLD if config.threshold is None else config.threshold
    compute = _open(found, device, config.threads)
    task = own_task.model_copy(update={"pair": pair})
    made = _predict_chunks(rows, found, compute, threshold, observer)
    if ranking is None:
        return Predictions(task, made)
    return Predictions(task, rank(made, ranking, config.top), ranked=True)


def _open(found: FineTuned, device: str, threads: int | None) -> Compute:
    """What computes the logits of rows; with an exported model without torch, and in this process: it is the
    only one here, and to start another takes longer than most predictions."""
    if found.export is not None:
        from compress.process import default_threads
        from compress.runtimes import open_runtime, run_in_batches

        runtime = open_runtime(
            found.export.runtime, found.folder, device=device, threads=default_threads(threads)
        )
        return lambda rows: run_in_batches(runtime, rows, EXPORTED_BATCH_ROWS)
    from encoder.checkpoint import load_classifier
    from encoder.prediction import predict_logits

    model = load_classifier(found.folder).to(device)
    return lambda rows: predict_logits(model, rows, device=device)


def _predict_chunks(
    rows: Iterator[Row], found: FineTuned, compute: Compute, threshold: float, observer: Observer
) -> Iterator[list[Prediction]]:
    from encoder.metrics import activate

    task, max_length = found.task, found.max_length
    total = Encoded(rows=0, rows_cut=0, tokens=0, tokens_lost=0, tokens_unknown=0)
    while chunk := list(islice(rows, CHUNK_ROWS)):
        pairs = [second for _, second in chunk if second is not None] or None
        encoded, stats = found.tokenizer.encode([text for text, _ in chunk], pairs, max_length=max_length)
        total = Encoded(**{key: getattr(total, key) + getattr(stats, key) for key in Encoded.model_fields})
        outputs = activate(task, compute(encoded))
        yield [
            _prediction(task, row, output, threshold)
            for row, output in zip(chunk, outputs.tolist(), strict=True)
        ]
    if total.rows_cut:
        observer.note(describe_cut({"given": total}, max_length))


def _prediction(task: Task, row: Row, output: Sequence[float], threshold: float) -> Prediction:
    text, pair = row
    if task.kind == "regression":
        return Prediction(text, pair, value=output[0])
    order = np.argsort(-np.array(output), kind="stable").tolist()
    chosen = order[:1] if task.kind == "single_label" else [i for i in order if output[i] > threshold]
    return Prediction(text, pair, tuple(task.labels[i] for i in chosen), tuple(output))


def _rows_of_candidates(config: PredictConfig, observer: Observer) -> Iterator[Row]:
    assert config.query is not None
    assert config.candidates is not None
    found = stream_texts(config.candidates, text_column=config.text_column, encoding=config.encoding)
    for note in found.notes:
        observer.note(note)
    query = config.query
    return ((query, text) for piece in found.pieces(CHUNK_ROWS, 0) for text in piece)


def _rows_of_texts(texts: Sequence[str], pair: bool) -> Iterator[Row]:
    if not pair:
        return ((text, None) for text in texts)
    if len(texts) % 2:
        raise ConfigError(
            f"{len(texts)} text{'s' if len(texts) > 1 else ''}; the model takes pairs, "
            "so give first and second texts in turn"
        )
    return iter(zip(texts[::2], texts[1::2], strict=True))


def _rows_of_lines(lines: Iterable[bytes], name: str, pair: bool, encoding: str | None) -> Iterator[Row]:
    from encoder.reading import decode

    for number, line in enumerate(lines, 1):
        problems: list[str] = []
        text = decode(line, name=name, encoding=encoding, problems=problems)
        if text is None:
            # decode counts lines within what it is given, which is this line alone
            raise DataError.from_problems([p.replace(f"{name}:1:", f"{name}:{number}:", 1) for p in problems])
        text = text.rstrip("\r\n")
        if not pair:
            yield text, None
            continue
        first, tab, second = text.partition("\t")
        if not tab:
            raise DataError(
                f"{name}:{number}: no tab; the model takes pairs, a line holds both texts with a tab between"
            )
        yield first, second


def _rows_of_file(path: Path, pair: bool, config: PredictConfig, observer: Observer) -> Iterator[Row]:
    from encoder.texts import read_texts

    if path.suffix.lower() == LINES_SUFFIX:
        return _rows_of_line_file(path, pair, config.encoding)
    found = read_texts(
        path,
        pair=pair,
        text_column=config.text_column,
        text_pair_column=config.text_pair_column,
        encoding=config.encoding,
    )
    for note in found.notes:
        observer.note(note)
    if found.pairs is None:
        return ((text, None) for text in found.texts)
    return zip(found.texts, found.pairs, strict=True)


def _rows_of_line_file(path: Path, pair: bool, encoding: str | None) -> Iterator[Row]:
    try:
        file = path.open("rb")
    except OSError as error:
        raise DataError(f"--input {path}: cannot be read: {error.strerror}") from error

    def rows() -> Iterator[Row]:
        with file:
            yield from _rows_of_lines(file, str(path), pair, encoding)

    return rows()
