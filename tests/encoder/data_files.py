"""Small files of texts and labels, and what was read of them."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from encoder.data import TaskData


def write_csv(
    path: Path, rows: Sequence[Sequence[object]], header: Sequence[str] = ("text", "label")
) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])


def write_splits(folder: Path, **splits: Sequence[Sequence[object]]) -> str:
    for split, rows in splits.items():
        write_csv(folder / f"{split}.csv", rows)
    return str(folder)


def write_lines(path: Path, rows: Sequence[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def texts_and_labels(data: TaskData, split: str) -> list[tuple[str, str]]:
    names = data.task.labels
    return [(text, names[label]) for text, label in zip(data.texts(split), data.labels(split), strict=True)]


def plain(count: int, labels: Sequence[object] = ("neg", "pos")) -> list[tuple[str, object]]:
    return [(f"text {number}", labels[number % len(labels)]) for number in range(count)]
