"""What of a chain's data can be refused before anything is computed: columns, labels, texts, step by step.

The first step reads its data at once, but a later one may read it otherwise, or other data, hours later.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from encoder.data import DataOptions, Looked, check_data
from encoder.errors import EncError
from encoder.model_folder import read_task
from encoder.task import Task
from recipes.chain import MISSING, Chain, Step
from recipes.data_options import data_options
from recipes.first_look import is_here, is_read_at_once
from recipes.training_inputs import check_best_metric

# These learn from training rows of a model's own labels; others that do find their labels in the data.
LEARNING = ("prune-heads", "prune-neurons", "drop-layers", "distill", "compress")
# Options that name texts without labels.
TEXTS = ("unlabeled", "prune_vocab")


def check_chain_data(chain: Chain) -> Iterator[tuple[Step | None, str]]:
    """All that is wrong with what the steps read, each with its step; ``None``: with all that read it so.

    Looked at is what is a file or folder here; where the data are large, only what the first step would not
    tell as soon as it begins.
    """
    looking = _Looking(chain)
    for step in chain.steps:
        yield from looking.look(step)


class _Looking:
    """Goes through the steps; what was looked at once is not looked at again."""

    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        self._seen: dict[str, Looked | None] = {}
        self._told: set[str] = set()
        self._tasks: dict[str, Task | None] = {}  # of the model after a step, where it is known
        self._first: tuple[str, DataOptions] | None = None

    def look(self, step: Step) -> Iterator[tuple[Step | None, str]]:
        """What is wrong with the data of one step."""
        options: Any = step.options
        before = self._task_of(step.models[0])
        self._tasks[step.folder] = before
        if not step.is_whole:
            return
        for problem in self._check_texts(step, before):
            yield step, problem
        data = getattr(options, "data", None)
        if data in (None, MISSING) or not is_here(data) or step.command == "bench":
            return
        own = "encoder" in step.kind.takes  # its labels are those of the data
        asked = data_options(options, rows_too=False)
        is_first = self._first in (None, (data, asked))
        self._first = self._first or (data, asked)
        if is_first and not is_read_at_once(data):
            return
        try:
            looked = self._look_at(data, asked, None if own else before)
        except EncError as error:
            if str(error) not in self._told:
                self._told.add(str(error))
                yield None if is_first else step, str(error)
            return
        if looked is None:
            return
        if step.makes is not None and own:
            self._tasks[step.folder] = looked.task
        for problem in _misfits(step, data, looked):
            yield step, problem

    def _task_of(self, name: str) -> Task | None:
        """Of the model that a step takes: one of another step, or from outside."""
        if name in self._tasks:
            return self._tasks[name]
        folder = Path(name).expanduser()
        try:
            return read_task(folder) if folder.is_dir() else None
        except EncError:  # told when the model is looked at
            return None

    def _look_at(self, data: str, options: DataOptions, task: Task | None) -> Looked | None:
        """What is there; ``None`` where that was asked before and refused."""
        key = repr((data, options, task))
        if key not in self._seen:
            self._seen[key] = None
            self._seen[key] = check_data(data, options, task=task)
        return self._seen[key]

    def _check_texts(self, step: Step, task: Task | None) -> Iterator[str]:
        """Files of texts without labels, where they are there."""
        from encoder.texts import read_text_table

        for name in TEXTS:
            path = getattr(step.options, name, None)
            if path is None or not path.expanduser().is_file() or not is_read_at_once(str(path)):
                continue
            table = path.suffix.lower() != ".txt"
            columns = ("text_column", "text_pair_column") if name == "unlabeled" and table else ()
            try:
                read_text_table(
                    path,
                    pair=task is not None and task.pair and (table or name == "unlabeled"),
                    encoding=getattr(step.options, "encoding", None),
                    **{column: getattr(step.options, column) for column in columns},
                )
            except EncError as error:
                yield f"{name}: {error}"


def _misfits(step: Step, data: str, looked: Looked) -> Iterator[str]:
    """What the step asks of data that they do not have."""
    if step.command in LEARNING and "train" not in looked.splits:
        yield f"{data} has no training rows; it has {', '.join(looked.splits)}"
    if step.command == "probe" and looked.task.kind != "single_label":
        yield f"{data}: probes are classifiers, and take one label a row"
    if (metric := getattr(step.options, "best_metric", None)) is not None:
        try:
            check_best_metric(metric, looked.task)
        except EncError as error:
            yield str(error)
