"""Some texts through the tokenizers library: the ids of their tokens, cut to fit."""

from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import tokenizers
from numpy.typing import NDArray

from encoder.errors import DataError
from encoder.tokenizer_folder import TokenizerFolder


@dataclass(frozen=True)
class Chunk:
    """Some rows as they leave the tokenizer, all tokens end to end, and the tokens of each."""

    input_ids: NDArray[np.int32]
    token_type_ids: NDArray[np.int8]
    lengths: NDArray[np.int64]
    rows_cut: int
    tokens_lost: int

    @classmethod
    def empty(cls) -> "Chunk":
        return cls(
            np.zeros(0, np.int32), np.zeros(0, np.int8), np.zeros(0, np.int64), rows_cut=0, tokens_lost=0
        )


def encode_chunk(folder: TokenizerFolder, inputs: list[Any], limit: int, first_row: int) -> Chunk:
    """Tokenize ``inputs``, texts or pairs of texts, into rows of at most ``limit`` tokens.

    Raises ``DataError`` for text that is not valid Unicode; ``first_row`` is the number of the first one.
    """
    encodings = _encode_batch(folder.backend, inputs, first_row)
    whole_lengths = np.array([len(encoding) for encoding in encodings], dtype=np.int64)
    total = int(whole_lengths.sum())
    input_ids = np.fromiter(chain.from_iterable(e.ids for e in encodings), np.int32, total)
    token_type_ids = np.zeros(total, dtype=np.int8)
    if folder.uses_token_types:
        token_type_ids = np.fromiter(chain.from_iterable(e.type_ids for e in encodings), np.int8, total)

    long_rows = np.flatnonzero(whole_lengths > limit)
    kept = np.ones(total, dtype=bool)
    offsets = np.concatenate([[0], whole_lengths.cumsum()])
    for row in long_rows:
        kept[offsets[row] : offsets[row + 1]] = kept_tokens(encodings[row], limit, folder.truncation_side)
    return Chunk(
        input_ids=input_ids[kept],
        token_type_ids=token_type_ids[kept],
        lengths=np.minimum(whole_lengths, limit),
        rows_cut=len(long_rows),
        tokens_lost=total - int(kept.sum()),
    )


def kept_tokens(encoding: tokenizers.Encoding, limit: int, side: str) -> NDArray[np.bool_]:
    """Which tokens of a row that is too long stay: the special ones, and of the texts what fits beside.

    bool [T]; the others are cut from the ``side`` left or right. The library's own truncation also builds all
    that it cuts off, for a pair as the product of the pieces of both texts: gigabytes for two long documents.
    """
    text = np.array([-1 if index is None else index for index in encoding.sequence_ids])
    first, second = np.flatnonzero(text == 0), np.flatnonzero(text == 1)
    room = limit - int(np.count_nonzero(text == -1))
    kept = np.ones(len(text), dtype=bool)
    for tokens, stay in zip((first, second), _longest_first(len(first), len(second), room), strict=True):
        cut = len(tokens) - stay
        kept[tokens[:cut] if side == "left" else tokens[stay:]] = False
    return kept


def _longest_first(first: int, second: int, room: int) -> tuple[int, int]:
    """How many tokens of two texts stay in ``room``, when tokens go from the longer text until they fit.

    Both end up equal if both must be cut; an odd token stays with the longer text, or with the second.
    """
    short, long = sorted((first, second))
    if short + long > room:
        short = min(short, room // 2)
        long = room - short
    return (long, short) if first > second else (short, long)


def _encode_batch(
    backend: tokenizers.Tokenizer, inputs: list[Any], first_row: int
) -> list[tokenizers.Encoding]:
    try:
        return backend.encode_batch_fast(inputs)
    except (UnicodeEncodeError, TypeError) as error:
        # One row of the chunk is to blame; find it.
        for row, text in enumerate(inputs):
            problem = unicode_problem(text)
            if problem:
                raise DataError(f"row {first_row + row}: {problem}") from error
        raise


def unicode_problem(text: str | tuple[str, str]) -> str:
    """What keeps ``text`` from being encoded as UTF-8, an empty string when nothing does."""
    for part in (text,) if isinstance(text, str) else text:
        try:
            part.encode()
        except UnicodeEncodeError as error:
            return (
                f"the text holds {part[error.start]!r} at character {error.start}, half of a Unicode pair, "
                "which no tokenizer can read; remove it or read the file with another --encoding"
            )
    return ""
