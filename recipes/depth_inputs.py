"""What a look at depth starts from: encoders that are there or made up, and rows for each of them."""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from compress.machine import require_gpu
from encoder.config import EncoderConfig
from encoder.corpus import Corpus, check_corpus, pack_texts, read_corpus
from encoder.errors import CheckpointError, ConfigError, DataError, Problems
from encoder.files import OutputFolder
from encoder.rows import TokenizedRows, offsets_of
from encoder.sources import check_place
from encoder.task import Task
from encoder.tokenizer import Tokenizer
from recipes.data_options import data_options
from recipes.depth_config import DepthConfig
from recipes.encoder_shape import is_shape, read_shape
from recipes.encoders import FoundEncoder, asked_length, find_encoder
from recipes.observer import Observer
from recipes.result import check_output

if TYPE_CHECKING:
    from encoder.data import TaskData

# Of an encoder that is made up: as many as `enc pretrain` makes of a corpus where nobody says otherwise.
MADE_UP_VOCABULARY = 8000
# Its special tokens, by their ids.
MADE_UP_SPECIAL = tuple(range(5))
# Letters that are enough to fill a token; texts beyond what the rows need are not read.
LETTERS_A_TOKEN = 12
SPLITS = ("test", "validation", "train")


@dataclass(frozen=True)
class Subject:
    """An encoder to look at: ``found`` on disk, or made up."""

    source: str
    config: EncoderConfig
    found: FoundEncoder | None


@dataclass(frozen=True)
class Texts:
    """What rows are made of: labelled texts, a corpus, or nothing but chance."""

    labelled: "TaskData | None" = None
    corpus: Corpus | None = None

    @property
    def task(self) -> Task | None:
        """What is learnt, where there are labels."""
        return None if self.labelled is None else self.labelled.task


def look_first(options: DepthConfig) -> tuple[OutputFolder | None, list[Subject]]:
    """All that can be refused before a text is read: the folder to make, and the encoders.

    Raises:
        EncError: all that is wrong.
    """
    problems = Problems()
    folder, subjects = None, list[Subject]()
    with problems.collected():
        folder = check_output(options.output, overwrite=options.overwrite)
    for source in options.models:
        with problems.collected():
            subjects.append(_find(source, asked_length(options)))
    with problems.collected():
        check_corpus(options.corpus)
    if options.data is not None:
        with problems.collected():
            check_place(options.data)
    if options.device == "cuda":
        with problems.collected():
            require_gpu(otherwise="cpu or auto")
    problems.tell(folder)
    return folder, subjects


def _find(source: str, max_length: int | None) -> Subject:
    if is_shape(source) and not Path(source).is_dir():
        config = read_shape(source, vocab_size=MADE_UP_VOCABULARY, option="CONFIG")
        if max_length is not None and max_length > config.max_tokens:
            raise ConfigError(f"--max-length {max_length}: {source} has {config.max_tokens} positions")
        return Subject(source, config, None)
    try:
        found = find_encoder(source, max_length)
    except CheckpointError as error:
        if "no such folder" in str(error):
            raise CheckpointError(
                f"{error} (an encoder to make is a .toml file, or tiny, mini, small, medium or base)"
            ) from error
        raise
    return Subject(source, found.config, found)


def usual_length(options: DepthConfig, subjects: Sequence[Subject]) -> int:
    """Tokens in a row: as asked for, otherwise no more than each of ``subjects`` holds."""
    held = [
        one.config.max_tokens if one.found is None else one.found.tokenizer.max_length for one in subjects
    ]
    return asked_length(options) or min(options.max_length, *held)


def read_texts(options: DepthConfig, observer: Observer) -> Texts:
    """The texts that the options name; DataError or ConfigError where they cannot be read."""
    if options.data is not None:
        from encoder.data import read_data

        observer.stage(f"Reading {options.data}")
        return Texts(labelled=read_data(options.data, data_options(options)))
    if options.corpus:
        observer.stage(f"Reading {', '.join(options.corpus)}")
        return Texts(
            corpus=read_corpus(
                options.corpus, text_column=options.text_column, encoding=options.encoding, fraction=0.0
            )
        )
    return Texts()


def choose_tokenizer(
    subjects: Sequence[Subject], texts: Texts, options: DepthConfig, observer: Observer
) -> Tokenizer | None:
    """What made-up encoders read texts with: the tokenizer of the first that is there, else one made of them.

    ``None`` where they need none.
    """
    if texts == Texts() or all(subject.found is not None for subject in subjects):
        return None
    for subject in subjects:
        if subject.found is not None:
            observer.note(f"Encoders that are made up have the tokenizer of {subject.source}.")
            return subject.found.tokenizer
    from encoder.tokenizer_training import train_tokenizer_

    observer.stage("Making a tokenizer for encoders that are made up")
    limit = min(subject.config.max_tokens for subject in subjects)
    with tempfile.TemporaryDirectory() as folder:
        return train_tokenizer_(
            Path(folder),
            lambda: _all_texts(texts, options),
            kind="wordpiece",
            vocab_size=MADE_UP_VOCABULARY,
            lowercase=True,
            max_tokens=limit,
        )


def make_rows(
    subject: Subject, tokenizer: Tokenizer | None, texts: Texts, options: DepthConfig
) -> tuple[EncoderConfig, TokenizedRows, tuple[int, ...], int]:
    """The encoder's config, its rows, its special tokens and the one that hides others.

    Raises:
        ConfigError, DataError: it cannot read the texts, or there are none.
    """
    own = tokenizer if subject.found is None else subject.found.tokenizer
    config = subject.config
    if texts == Texts():
        special = MADE_UP_SPECIAL if subject.found is None else subject.found.tokenizer.special_ids
        mask = MADE_UP_SPECIAL[-1] if own is None else own.token_id("mask_token")
        return config, _random_rows(config, special, options), special, special[-1] if mask is None else mask
    assert own is not None
    if subject.found is None:
        config = config.model_copy(
            update={"vocab_size": own.vocab_size, "pad_token_id": own.pad_token_id or 0}
        )
    mask = own.token_id("mask_token")
    if texts.labelled is not None:
        return config, _labelled_rows(texts.labelled, own, options), own.special_ids, mask or 0
    if mask is None:
        raise ConfigError(f"{subject.source}: its tokenizer has no token to hide others with; give --data")
    rows = pack_texts(_all_texts(texts, options), own, options.max_length).rows
    if not len(rows):
        raise DataError(f"{', '.join(options.corpus)}: no texts")
    return config, rows.select(_drawn(len(rows), options)), own.special_ids, mask


def _all_texts(texts: Texts, options: DepthConfig) -> Iterator[list[str]]:
    """Texts with some more letters than the rows need, drawn from where they come."""
    if texts.labelled is not None:
        yield texts.labelled.texts(_split(texts.labelled))
        return
    assert texts.corpus is not None
    letters = 0
    for piece in texts.corpus.texts(held_out=False):
        yield piece
        letters += sum(map(len, piece))
        if letters > options.rows * options.max_length * LETTERS_A_TOKEN:
            return


def _split(data: "TaskData") -> str:
    return next(name for name in SPLITS if name in data.splits)


def _labelled_rows(data: "TaskData", tokenizer: Tokenizer, options: DepthConfig) -> TokenizedRows:
    split = _split(data)
    texts, pairs, labels = data.texts(split), data.pairs(split), data.labels(split)
    chosen = _drawn(len(texts), options)
    rows, _ = tokenizer.encode(
        [texts[row] for row in chosen],
        None if pairs is None else [pairs[row] for row in chosen],
        max_length=options.max_length,
    )
    return replace(rows, labels=labels[chosen])


def _drawn(count: int, options: DepthConfig) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    return np.sort(np.random.default_rng(options.seed).permutation(count)[: options.rows])


def _random_rows(config: EncoderConfig, special: Sequence[int], options: DepthConfig) -> TokenizedRows:
    length = min(options.max_length, config.max_tokens)
    ordinary = np.setdiff1d(np.arange(config.vocab_size), special)
    drawn = np.random.default_rng(options.seed).integers(0, len(ordinary), options.rows * length)
    return TokenizedRows(
        ordinary[drawn].astype(np.int32),
        np.zeros(len(drawn), dtype=np.int8),
        offsets_of(np.full(options.rows, length)),
    )
