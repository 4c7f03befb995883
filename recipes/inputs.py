"""What a measurement runs on: texts in their own lengths, and fixed grids."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from compress.machine import require_gpu
from compress.workload import Case, Workload, from_grid, from_rows
from encoder.cells import read_text_cells
from encoder.columns import choose_columns
from encoder.errors import ConfigError, DataError, Problems
from encoder.files import OutputFolder
from encoder.rows import TokenizedRows
from encoder.sources import check_place, read_source
from encoder.texts import read_texts
from recipes.measurements import MeasuredTexts, describe_texts
from recipes.models import FoundModel, find_models
from recipes.observer import Observer
from recipes.result import check_output

SPLITS = ("test", "validation", "train")


class InputOptions(Protocol):
    """The options that say what to measure on."""

    @property
    def sequence_lengths(self) -> tuple[int, ...]: ...

    @property
    def device(self) -> str: ...

    @property
    def data(self) -> str | None: ...

    @property
    def text_column(self) -> str | None: ...

    @property
    def text_pair_column(self) -> str | None: ...

    @property
    def encoding(self) -> str | None: ...

    @property
    def output(self) -> Path | None: ...

    @property
    def overwrite(self) -> bool: ...


@dataclass(frozen=True)
class Inputs:
    """What a measurement starts from; ``rows`` and what is to be said of them are ``None`` without data.

    ``folder`` is where the result is to be kept, if anywhere.
    """

    folder: OutputFolder | None
    models: Sequence[FoundModel]
    rows: TokenizedRows | None
    texts: MeasuredTexts | None


def read_inputs(
    names: Sequence[str],
    options: InputOptions,
    observer: Observer,
    *,
    other_devices: str,
    exported: bool = False,
) -> Inputs:
    """The folder to make, the models called ``names`` and the texts to measure them on, which are read last.

    ``other_devices`` says what can be chosen where there is no GPU; ``exported`` models are welcome or not.

    Raises:
        EncError: what was asked for cannot be measured, or its result not kept; all that is wrong of it.
    """
    observer.stage(f"Looking at {', '.join(names)}")
    problems = Problems()
    folder, models = None, list[FoundModel]()
    with problems.collected():
        folder = check_output(options.output, overwrite=options.overwrite)
    with problems.collected():
        models = find_models(names, exported=exported)
        check_lengths(models, options.sequence_lengths)
    if options.device == "cuda":
        with problems.collected():
            require_gpu(otherwise=other_devices)
    if options.data is not None:
        with problems.collected():
            check_place(options.data)
    problems.tell(folder)
    rows, texts = read_rows(models, options, observer) or (None, None)
    return Inputs(folder, models, rows, texts)


def check_lengths(models: Sequence[FoundModel], lengths: Sequence[int]) -> None:
    """Raise ``ConfigError`` for each of ``lengths`` that is beyond what one of ``models`` can read."""
    problems = [
        f"--sequence-lengths {length}: {model.source} holds {model.max_tokens} tokens at most"
        for length in lengths
        for model in models
        if length > model.max_tokens
    ]
    if problems:
        raise ConfigError.from_problems(list(dict.fromkeys(problems)))


def make_workload(
    models: Sequence[FoundModel],
    batch_sizes: Sequence[int],
    lengths: Sequence[int],
    rows: TokenizedRows | None,
) -> Workload:
    """A case for each length and batch size, and for ``rows`` with each batch size.

    Token numbers are folded into the smallest vocabulary of ``models``, token types into the fewest, so that
    all of them compute the same cases.
    """
    cases: tuple[Case, ...] = ()
    vocab_size = min(model.config.vocab_size for model in models)
    if lengths:
        limit = min(model.max_tokens for model in models)
        cases += from_grid(batch_sizes, lengths, vocab_size=vocab_size, max_tokens=limit).cases
    if rows is not None:
        types = min(max(1, model.config.type_vocab_size) for model in models)
        folded = TokenizedRows(
            rows.input_ids % vocab_size, np.minimum(rows.token_type_ids, types - 1), rows.offsets
        )
        cases += from_rows(folded, batch_sizes).cases
    return Workload(cases)


def read_rows(
    models: Sequence[FoundModel], options: InputOptions, observer: Observer
) -> tuple[TokenizedRows, MeasuredTexts] | None:
    """The texts of ``options.data`` as rows of the first model's tokenizer; ``None`` without ``data``.

    Of several splits test is taken, otherwise validation, otherwise train; blank texts are left out.

    Raises:
        DataError: nothing can be read, or it has no texts.
    """
    if options.data is None:
        return None
    model = models[0]
    observer.stage(f"Reading {options.data}")
    split, texts, pairs = _read(options.data, options, pair=model.task.pair)
    kept = [row for row, text in enumerate(texts) if text.strip()]
    if not kept:
        raise DataError(f"{options.data}: no texts to measure on")
    tokenizer = model.read_tokenizer()
    limit = min(one.max_length() for one in models)
    rows, stats = tokenizer.encode(
        [texts[row] for row in kept],
        None if pairs is None else [pairs[row] for row in kept],
        max_length=limit,
    )
    for other in models[1:]:
        if other.read_tokenizer().fingerprint != tokenizer.fingerprint:
            observer.note(
                f"{other.source} has another tokenizer; it is measured on the rows of {model.source}'s."
            )
    return rows, describe_texts(options.data, split, rows, stats)


def _read(source: str, options: InputOptions, *, pair: bool) -> tuple[str, list[str], list[str] | None]:
    """The name of a split, its texts and their pairs."""
    if source.lower().endswith(".txt"):
        read = read_texts(Path(source), pair=pair, encoding=options.encoding)
        return "test", read.texts, read.pairs
    found = read_source(source, encoding=options.encoding, single_split="test")
    split = next(name for name in SPLITS if name in found.tables)
    table = found.tables[split]
    columns = choose_columns(
        list(table.columns),
        where=table.name,
        text=options.text_column,
        text_pair=options.text_pair_column,
        need_label=False,
        pair=pair,
    )
    problems: list[str] = []
    texts = read_text_cells(table, columns.text, problems)
    pairs = read_text_cells(table, columns.text_pair, problems) if columns.text_pair and pair else None
    if problems:
        raise DataError.from_problems(problems)
    return split, texts, pairs
