"""What a model is timed on: fixed grids of batch size × length, or the data's own rows.

A speed-up against a baseline padded to 512 is mostly the padding's. On data, therefore, rows keep their own
lengths, and a batch is padded, if at all, to its own longest row.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict

from encoder.errors import ConfigError
from encoder.rows import TokenizedRows

# At most so many inputs for a batch size, and, once there are MIN_BATCHES, so many tokens: an input is timed
# at least five times, and a slow model on long texts must not take minutes.
MAX_BATCHES = 64
MIN_BATCHES = 2
MAX_TOKENS = 16_384


class Shape(BaseModel):
    """The shapes of a case's inputs.

    ``sequence_length`` is T where all rows have one length, else ``None``: the data's own lengths.
    ``padding`` is the share of a rectangle [B, T] that would be padding, a batch being as wide as its longest
    row: what a padded runtime computes for nothing. A packed one does not have it.
    """

    model_config = ConfigDict(frozen=True)

    batch_size: int
    sequence_length: int | None
    mean_tokens: float
    max_tokens: int
    padding: float
    batches: int

    def __str__(self) -> str:
        """``8x128`` for a grid, ``batch 32, data`` for data."""
        if self.sequence_length is None:
            return f"batch {self.batch_size}, data"
        return f"{self.batch_size}x{self.sequence_length}"


@dataclass(frozen=True)
class Case:
    """Batches of one batch size, each an input of its own: timed one by one and all in turn."""

    batch_size: int
    sequence_length: int | None
    batches: tuple[TokenizedRows, ...]

    @property
    def shape(self) -> Shape:
        """What the inputs look like."""
        lengths = [batch.lengths for batch in self.batches]
        cells = sum(len(rows) * int(rows.max()) for rows in lengths)
        tokens = sum(int(rows.sum()) for rows in lengths)
        return Shape(
            batch_size=self.batch_size,
            sequence_length=self.sequence_length,
            mean_tokens=tokens / self.rows,
            max_tokens=max(int(rows.max()) for rows in lengths),
            padding=1 - tokens / cells,
            batches=len(self.batches),
        )

    @property
    def rows(self) -> int:
        """Rows of all batches together."""
        return sum(len(batch) for batch in self.batches)

    @property
    def tokens(self) -> int:
        """Tokens of all batches together, padding not counted."""
        return sum(len(batch.input_ids) for batch in self.batches)


@dataclass(frozen=True)
class Workload:
    """The cases to time, in this order."""

    cases: tuple[Case, ...]

    def save(self, path: Path) -> None:
        """Write to ``path`` (.npz): the way into another process."""
        arrays = {}
        for index, case in enumerate(self.cases):
            arrays[f"{index}.case"] = np.array([case.batch_size, case.sequence_length or 0])
            arrays[f"{index}.batches"] = np.array([len(batch) for batch in case.batches])
            arrays[f"{index}.lengths"] = np.concatenate([batch.lengths for batch in case.batches])
            arrays[f"{index}.input_ids"] = np.concatenate([batch.input_ids for batch in case.batches])
            arrays[f"{index}.token_type_ids"] = np.concatenate(
                [batch.token_type_ids for batch in case.batches]
            )
        np.savez(path, allow_pickle=False, **arrays)

    @classmethod
    def load(cls, path: Path) -> "Workload":
        """What ``save`` wrote."""
        cases = []
        with np.load(path, allow_pickle=False) as arrays:
            for index in range(sum(name.endswith(".case") for name in arrays.files)):
                batch_size, sequence_length = (int(number) for number in arrays[f"{index}.case"])
                rows = TokenizedRows(
                    input_ids=arrays[f"{index}.input_ids"],
                    token_type_ids=arrays[f"{index}.token_type_ids"],
                    offsets=np.concatenate([[0], np.cumsum(arrays[f"{index}.lengths"])]).astype(np.int64),
                )
                ends = np.cumsum(arrays[f"{index}.batches"])
                batches = np.split(np.arange(len(rows)), ends[:-1])
                cases.append(
                    Case(batch_size, sequence_length or None, tuple(rows.select(batch) for batch in batches))
                )
        return cls(tuple(cases))


def from_grid(
    batch_sizes: Sequence[int],
    sequence_lengths: Sequence[int],
    *,
    vocab_size: int,
    max_tokens: int,
    seed: int = 0,
) -> Workload:
    """Every batch size with every length (shorter lengths first), of random ids below ``vocab_size``.

    Raises:
        ConfigError: a batch size or length below 1, or a length above ``max_tokens``, the model's limit.
    """
    problems = [f"batch size {size} is below 1" for size in batch_sizes if size < 1]
    problems += [f"sequence length {length} is below 1" for length in sequence_lengths if length < 1]
    problems += [
        f"sequence length {length} is beyond the model's {max_tokens} tokens; choose at most {max_tokens}"
        for length in sequence_lengths
        if length > max_tokens
    ]
    if not batch_sizes or not sequence_lengths:
        problems.append("a grid needs at least one batch size and one sequence length")
    if problems:
        raise ConfigError.from_problems(problems)
    random = np.random.default_rng(seed)
    cases = []
    for length in sequence_lengths:
        for size in batch_sizes:
            ids = random.integers(0, vocab_size, size * length, dtype=np.int32)
            rows = TokenizedRows(ids, np.zeros(size * length, np.int8), np.arange(size + 1) * length)
            cases.append(Case(size, length, (rows,)))
    return Workload(tuple(cases))


def from_rows(
    rows: TokenizedRows,
    batch_sizes: Sequence[int] = (1, 32),
    *,
    max_batches: int = MAX_BATCHES,
    max_tokens: int = MAX_TOKENS,
    seed: int = 0,
) -> Workload:
    """The data's own rows, a case for each batch size; one larger than the data is made as large as the data.

    Batch size 1: single rows at even steps through the sorted lengths, so that few of them have the lengths
    of all. Larger: rows drawn at random and batched as they come, as a server would meet them. The inputs of
    a case are put in random order, so that no neighbours in time are alike in length. A case has at most
    ``max_batches`` of them and, once there are two, ``max_tokens`` tokens.

    Raises:
        ConfigError: a batch size below 1, or no rows that hold a token.
    """
    problems = [f"batch size {size} is below 1" for size in batch_sizes if size < 1]
    filled = np.flatnonzero(rows.lengths > 0)
    if len(filled) == 0:
        problems.append("there are no rows to measure on")
    if problems:
        raise ConfigError.from_problems(problems)
    random = np.random.default_rng(seed)
    cases = []
    for size in sorted({min(size, len(filled)) for size in batch_sizes}):
        if size == 1:
            by_length = filled[np.argsort(rows.lengths[filled], kind="stable")]
            affordable = int(max_tokens / rows.lengths[filled].mean())
            count = min(max_batches, len(by_length), max(MIN_BATCHES, affordable))
            middles = (np.arange(count) + 0.5) * len(by_length) / count
            index = by_length[middles.astype(np.int64)].reshape(count, 1)
            index = random.permutation(index)
        else:
            count = min(max_batches, len(filled) // size)
            index = random.permutation(filled)[: count * size].reshape(count, size)
        cases.append(Case(size, None, _within_budget([rows.select(batch) for batch in index], max_tokens)))
    return Workload(tuple(cases))


def _within_budget(batches: Sequence[TokenizedRows], max_tokens: int) -> tuple[TokenizedRows, ...]:
    kept: list[TokenizedRows] = []
    tokens = 0
    for batch in batches:
        if len(kept) >= MIN_BATCHES and tokens + len(batch.input_ids) > max_tokens:
            break
        tokens += len(batch.input_ids)
        kept.append(TokenizedRows(batch.input_ids, batch.token_type_ids, batch.offsets))
    return tuple(kept)
