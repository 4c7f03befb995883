"""What a layer made of some rows, kept in memory or in a file: the rows' activations at one depth."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from encoder.errors import EncError
from encoder.rows import offsets_of, token_index


class Store(Protocol):
    """A tensor [N, D] whose rows are read and written in spans: ``lengths`` tokens from ``starts`` on."""

    dtype: torch.dtype

    def read(self, starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> Tensor:
        """The spans end to end, a copy on the CPU."""

    def write(self, starts: NDArray[np.int64], lengths: NDArray[np.int64], values: Tensor) -> None:
        """Put ``values``, the spans end to end, in their places. Errors: EncError where the disk is full."""

    def close(self) -> None:
        """Let go of memory and disk."""


class InMemory:
    """A ``Store`` in a tensor."""

    def __init__(self, values: Tensor) -> None:
        self.values, self.dtype = values, values.dtype

    def read(self, starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> Tensor:
        """See ``Store``."""
        return self.values.index_select(0, torch.from_numpy(token_index(starts, lengths)))

    def write(self, starts: NDArray[np.int64], lengths: NDArray[np.int64], values: Tensor) -> None:
        """See ``Store``."""
        self.values.index_copy_(0, torch.from_numpy(token_index(starts, lengths)), values)

    def close(self) -> None:
        """See ``Store``."""
        self.values = self.values[:0].clone()


class InFile:
    """A ``Store`` in a file in ``folder`` that has no name, so that it is gone however the process ends.

    It is read and written, not mapped: pages of a mapping would count as memory of the process, and a full
    disk would end it by a signal instead of an OSError.
    """

    def __init__(self, num_tokens: int, width: int, dtype: torch.dtype, folder: Path) -> None:
        self.dtype, self._width, self._folder = dtype, width, folder
        self._bytes_a_token = width * dtype.itemsize
        folder.mkdir(parents=True, exist_ok=True)
        self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 (``close`` closes it)
        self._file.truncate(num_tokens * self._bytes_a_token)

    def read(self, starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> Tensor:
        """See ``Store``."""
        values = torch.empty(int(lengths.sum()), self._width, dtype=self.dtype)
        for start, part in self._parts(starts, lengths, values):
            self._file.seek(start)
            while part and (count := self._file.readinto(part)):
                part = part[count:]
        return values

    def write(self, starts: NDArray[np.int64], lengths: NDArray[np.int64], values: Tensor) -> None:
        """See ``Store``."""
        try:
            for start, part in self._parts(starts, lengths, values.contiguous()):
                self._file.seek(start)
                while part:
                    part = part[self._file.write(part) :]
        except OSError as error:
            raise EncError(f"{self._folder}: activations cannot be stored: {error.strerror}") from error

    def close(self) -> None:
        """See ``Store``."""
        self._file.close()

    def _parts(
        self, starts: NDArray[np.int64], lengths: NDArray[np.int64], values: Tensor
    ) -> Sequence[tuple[int, memoryview]]:
        """Of each span where it lies in the file, and its bytes in ``values``."""
        content = memoryview(values.view(torch.uint8).numpy().reshape(-1))  # type: ignore[arg-type]
        size = self._bytes_a_token
        ends = np.cumsum(lengths)
        return [
            (int(start) * size, content[int(end - length) * size : int(end) * size])
            for start, length, end in zip(starts, lengths, ends, strict=True)
        ]


def open_store(num_tokens: int, width: int, dtype: torch.dtype, folder: Path | None) -> Store:
    """Room for ``num_tokens`` vectors: in a file in ``folder`` or, where that is ``None``, in memory."""
    if folder is None:
        return InMemory(torch.empty(num_tokens, width, dtype=dtype))
    return InFile(num_tokens, width, dtype, folder)


@dataclass(frozen=True)
class Activations:
    """What layer ``depth`` − 1 made of R rows; row ``r`` is tokens ``offsets[r]:offsets[r+1]`` of ``store``.

    After the last layer a classifier needs a row's first token only, so the rows may be that short.
    """

    depth: int
    offsets: NDArray[np.int64]
    store: Store

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of each row, int64 [R]."""
        return np.diff(self.offsets)

    def read(self) -> Tensor:
        """All of them, [N, D]."""
        return self.store.read(self.offsets[:-1], self.lengths)

    def read_rows(self, index: NDArray[np.int64]) -> Tensor:
        """Those of the rows ``index`` end to end, [n, D]."""
        return self.store.read(self.offsets[:-1][index], self.lengths[index])

    def write_rows(self, index: NDArray[np.int64], values: Tensor) -> None:
        """Put ``values`` [n, D], those of the rows ``index`` end to end, in their places."""
        self.store.write(self.offsets[:-1][index], self.lengths[index], values.to("cpu", self.store.dtype))

    def select(self, index: NDArray[np.int64]) -> "Activations":
        """Those of the rows ``index``, in memory."""
        return Activations(self.depth, offsets_of(self.lengths[index]), InMemory(self.read_rows(index)))
