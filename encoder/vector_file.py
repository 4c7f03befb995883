"""Vectors on disk: appended piece by piece, so that none is lost, and then a .npy or a .parquet file.

What is unfinished is already the body of a .npy file, behind room for its header. Nothing here holds more
than a piece in memory.
"""

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from encoder.errors import EncError

_NPY_START = b"\x93NUMPY\x01\x00"
# Enough for any number of rows; a multiple of 64, so that mapped numbers are aligned.
_HEADER_BYTES = 128


class UnfinishedVectors:
    """Float32 vectors of ``width`` numbers in the file ``path``; those of an interrupted run are kept."""

    def __init__(self, path: Path, width: int) -> None:
        self.path, self.width = path, width
        self._file = path.open("r+b" if path.exists() else "w+b")
        # A vector that was half written when the run ended is written again.
        self.rows = max(0, path.stat().st_size - _HEADER_BYTES) // (4 * width)
        self._file.truncate(_HEADER_BYTES + self.rows * 4 * width)
        self._file.seek(0, os.SEEK_END)

    def __enter__(self) -> "UnfinishedVectors":
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def append(self, vectors: NDArray[np.float32]) -> None:
        """Add ``vectors`` [R, width]; they are on disk when this returns.

        Raises:
            EncError: the disk is full.
        """
        try:
            self._file.write(np.ascontiguousarray(vectors, dtype="<f4").data)
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise EncError(
                f"{self.path}: {self.rows:,} vectors are written, the next cannot be: {error.strerror}; "
                "make room, then --resume goes on"
            ) from error
        self.rows += len(vectors)

    def finish_npy(self) -> Path:
        """The file as .npy, float32 [rows, width]."""
        shape = f"({self.rows}, {self.width})"
        header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".encode()
        room = _HEADER_BYTES - len(_NPY_START) - 2
        self._file.seek(0)
        self._file.write(_NPY_START + room.to_bytes(2, "little") + header.ljust(room - 1) + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        return self.path

    def finish_parquet(self, texts: Iterable[list[str]], about: Mapping[str, Any]) -> Path:
        """A .parquet file beside it: ``text`` and ``embedding``, a list of ``width`` float32.

        ``texts`` are those of the vectors, in their order, in pieces of any size; ``about`` is kept as JSON
        under the key "enc" of the file's metadata.
        """
        import pyarrow
        import pyarrow.parquet

        vector = pyarrow.list_(pyarrow.float32(), self.width)
        fields = [("text", pyarrow.string()), ("embedding", vector)]
        schema = pyarrow.schema(fields, metadata={"enc": json.dumps(about, ensure_ascii=False)})
        target, start = self.path.with_suffix(".parquet"), 0
        with pyarrow.parquet.ParquetWriter(target, schema, compression="zstd", use_dictionary=False) as file:
            for piece in texts:
                flat = pyarrow.array(self._read(start, len(piece)))
                vectors = pyarrow.FixedSizeListArray.from_arrays(flat, type=vector)
                file.write_table(pyarrow.table([pyarrow.array(piece), vectors], schema=schema))
                start += len(piece)
        return target

    def _read(self, start: int, rows: int) -> NDArray[np.float32]:
        """The numbers of ``rows`` vectors from number ``start`` on, end to end."""
        self._file.seek(_HEADER_BYTES + start * 4 * self.width)
        return np.frombuffer(self._file.read(rows * 4 * self.width), dtype="<f4")
