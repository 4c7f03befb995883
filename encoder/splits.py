"""Rows by the hash of their content: splits that do not depend on row order, duplicates, fingerprints."""

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from encoder.task import TaskKind

Label = int | tuple[int, ...] | float


@dataclass(frozen=True)
class Rows:
    """R rows of a split: texts, pairs (or ``None``) and labels in the form of the task."""

    texts: list[str]
    pairs: list[str] | None
    labels: list[Label]

    def __len__(self) -> int:
        return len(self.texts)

    def select(self, index: Sequence[int]) -> "Rows":
        """The rows of ``index``, in its order."""
        pairs = None if self.pairs is None else [self.pairs[row] for row in index]
        return Rows([self.texts[row] for row in index], pairs, [self.labels[row] for row in index])

    def keys(self) -> list[str]:
        """A hash of each row's text and pair; texts that differ in white space only are the same."""
        pairs = self.pairs or [""] * len(self)
        return [content_key(text, pair) for text, pair in zip(self.texts, pairs, strict=True)]


def content_key(text: str, pair: str = "") -> str:
    """sha256 of a text and its pair, white space collapsed, as hexadecimal."""
    content = " ".join(text.split()) + "\0" + " ".join(pair.split())
    return hashlib.sha256(content.encode()).hexdigest()


def cut_rows(keys: Sequence[str], strata: Sequence[object], fraction: float) -> tuple[list[int], list[int]]:
    """Row numbers that stay and that are cut out: about ``fraction`` of each stratum, in row order.

    Which rows go is decided by their hashes, never by their order; rows with the same key stay together.
    A stratum of four or more different texts gives at least one; when that cuts nothing at all, two do.
    """
    members: dict[str, list[int]] = defaultdict(list)
    for row, key in enumerate(keys):
        members[key].append(row)
    groups: dict[str, list[str]] = defaultdict(list)
    for key in sorted(members):
        # Rows of one text may be labelled differently: the group goes where most of it belongs.
        votes = Counter(str(strata[row]) for row in members[key])
        groups[min(votes, key=lambda name: (-votes[name], name))].append(key)
    for fewest in (4, 2):
        cut: set[int] = set()
        for group in groups.values():
            size = sum(len(members[key]) for key in group)
            wanted = round(fraction * size)
            if len(group) >= fewest:
                wanted = max(wanted, 1)
            for key in group[:-1]:
                if len(members[key]) <= wanted:
                    cut.update(members[key])
                    wanted -= len(members[key])
        if cut or not fraction:
            break
    kept = [row for row in range(len(keys)) if row not in cut]
    return kept, sorted(cut)


def label_strata(labels: Sequence[Label], kind: TaskKind) -> list[object]:
    """What to keep in proportion when rows are cut.

    That is the class, the rarest label of a row, or the tenth of the rows that a number falls into.
    """
    if kind == "regression":
        values = np.asarray(labels, dtype=np.float64)
        edges = np.quantile(values, np.arange(1, 10) / 10) if len(values) else values
        return list(np.searchsorted(edges, values))
    if kind == "single_label":
        return list(labels)
    counts = Counter(index for row in labels if isinstance(row, tuple) for index in row)
    return [
        min(row, key=lambda index: (counts[index], index), default=-1)
        for row in labels
        if isinstance(row, tuple)
    ]


def first_by_hash(keys: Sequence[str], labels: Sequence[Label], count: int) -> list[int]:
    """The ``count`` rows whose hashes come first, in row order."""
    order = sorted(range(len(keys)), key=lambda row: (keys[row], str(labels[row])))
    return sorted(order[:count])


def repeats(keys: Sequence[str], labels: Sequence[Label]) -> tuple[int, int]:
    """Rows whose text stood in an earlier row, and texts that have more than one label."""
    seen: dict[str, set[Label]] = defaultdict(set)
    for key, label in zip(keys, labels, strict=True):
        seen[key].add(label)
    return len(keys) - len(seen), sum(len(found) > 1 for found in seen.values())


def overlap(
    first: tuple[Sequence[str], Sequence[Label]], second: tuple[Sequence[str], Sequence[Label]]
) -> tuple[int, int]:
    """Rows of ``second`` (keys, labels) whose text is in ``first``, and those never labelled so there."""
    seen: dict[str, set[Label]] = defaultdict(set)
    for key, label in zip(*first, strict=True):
        seen[key].add(label)
    shared = [(key, label) for key, label in zip(*second, strict=True) if key in seen]
    return len(shared), sum(label not in seen[key] for key, label in shared)


def fingerprint(kind: TaskKind, names: Sequence[str], splits: Mapping[str, Rows]) -> str:
    """sha256 over the task and the content of all splits, in their row order, labels by name."""
    digest = hashlib.sha256(json.dumps([kind, list(names)]).encode())
    for split, rows in sorted(splits.items()):
        digest.update(json.dumps([split, len(rows)]).encode())
        pairs: Iterable[str | None] = rows.pairs or [None] * len(rows)
        for text, pair, label in zip(rows.texts, pairs, rows.labels, strict=True):
            digest.update(json.dumps([text, pair, label]).encode())
    return digest.hexdigest()
