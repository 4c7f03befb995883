"""Claims about vectors on disk."""

import json

import numpy as np
import pyarrow.parquet
import pytest

from encoder.vector_file import UnfinishedVectors

VECTORS = np.random.default_rng(0).standard_normal((50, 6)).astype(np.float32)


def write(path, pieces):
    with UnfinishedVectors(path, 6) as file:
        for piece in pieces:
            file.append(piece)
        return file.finish_npy()


def test_numpy_reads_and_maps_what_was_appended(tmp_path) -> None:
    whole = write(tmp_path / "v.npy", [VECTORS[:7], VECTORS[7:7], VECTORS[7:]])
    assert np.array_equal(np.load(whole), VECTORS)
    assert np.array_equal(np.load(whole, mmap_mode="r"), VECTORS)


@pytest.mark.parametrize("lost", [0, 1, 24, 100])
def test_vector_that_was_half_written_is_written_again(tmp_path, lost) -> None:
    path = tmp_path / "v.npy"
    with UnfinishedVectors(path, 6) as file:
        file.append(VECTORS[:20])
    with path.open("r+b") as raw:
        raw.truncate(path.stat().st_size - lost)
    with UnfinishedVectors(path, 6) as file:
        assert file.rows == (20 * 24 - lost) // 24
        file.append(VECTORS[file.rows :])
        assert np.array_equal(np.load(file.finish_npy()), VECTORS)


def test_parquet_holds_texts_vectors_and_what_they_are(tmp_path) -> None:
    texts = [f"text {number} ✨" for number in range(50)]
    with UnfinishedVectors(tmp_path / "v.npy", 6) as file:
        file.append(VECTORS)
        whole = file.finish_parquet([texts[:13], texts[13:]], {"pooling": "mean"})
    table = pyarrow.parquet.read_table(whole)
    assert table["text"].to_pylist() == texts
    assert np.array_equal(np.array(table["embedding"].to_pylist(), dtype=np.float32), VECTORS)
    assert json.loads(table.schema.metadata[b"enc"]) == {"pooling": "mean"}
