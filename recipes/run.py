"""Run a chain: a `RunConfig` in, its steps done one after another, and a record of them.

A step that was done before with the same options and inputs is not done again; one that was interrupted goes
on by its own resume, where it has one. A gate that fails ends the chain with what there is.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compress.memory import reset_peak_memory
from encoder.errors import ConfigError, EncError
from encoder.files import OutputFolder
from encoder.metrics import LOWER_IS_BETTER
from encoder.output_lock import held
from recipes.chain import Chain, Step
from recipes.chain_checking import check_chain
from recipes.chain_reading import read_chain
from recipes.chain_record import (
    ChainRecord,
    StepRecord,
    begin_record,
    changed_options,
    clear,
    find_finished,
    find_keys,
    read_record,
    write_record,
)
from recipes.observer import Observer, Recorder, Silent
from recipes.report_config import FILE_NAME
from recipes.result import Result, Run, now
from recipes.resuming import holds_work
from recipes.run_config import RunConfig

RUNS = Path("runs")
# Splits that a loss is judged on; the first that both models were scored on.
JUDGED = ("validation", "test")


@dataclass(frozen=True)
class ChainOutcome:
    """A chain that has ended, and what its steps left behind, as many of ``total`` as were done, in
    order."""

    root: Path
    record: ChainRecord
    runs: tuple[Run, ...]
    total: int

    @property
    def failure(self) -> str | None:
        """The gate that ended it."""
        return self.record.failure


def open_chain(config: RunConfig) -> tuple[Chain, Path]:
    """The chain that ``config`` asks for, checked as far as it can be without reading data, and its folder.

    Raises:
        ConfigError: all that is wrong with the recipe, its models, its data and what it asks of them.
    """
    shortcuts = {name: getattr(config, name) for name in ("model", "data", "max_drop")}
    given = {name: value for name, value in shortcuts.items() if value is not None}
    chain, problems = read_chain(config.recipe, given, config.set)
    problems += check_chain(chain)
    if problems:
        raise ConfigError.from_problems(problems)
    return chain, config.output or RUNS / chain.name


def run(config: RunConfig, observer: Observer | None = None) -> ChainOutcome:
    """Do all steps that are not done yet.

    Raises:
        EncError: all that is wrong with the recipe, its models and its folder, before anything is computed;
        or what a step refused.
    """
    observer = observer or Silent()
    chain, root = open_chain(config)
    with held(root):
        before = _check_root(root, chain, force=config.force)
        if before is not None:
            _check_steps(root, chain)
        observer.stage("Looking at what is done already")
        keys = find_keys(chain)
        root.mkdir(parents=True, exist_ok=True)
        record = begin_record(chain, None if config.force else before)
        return _Running(chain, root, keys, observer, record, () if before is None else before.steps).run()


def _check_root(root: Path, chain: Chain, *, force: bool) -> ChainRecord | None:
    """What an earlier run left in the folder ``root``.

    Raises:
        ConfigError: something else is in there, or nothing can be written.
    """
    if root.is_file():
        raise ConfigError(f"--output {root}: a file of that name exists; choose another name")
    before = read_record(root)
    if before is None:
        if root.is_dir() and any(root.iterdir()):
            raise ConfigError(
                f"--output {root}: the folder is not empty, and no run of a recipe is in it; "
                "choose another name"
            )
        OutputFolder(root).check()
    elif before.recipe != chain.name and not force:
        raise ConfigError(
            f"--output {root}: a run of the recipe {before.recipe} is in that folder, not of {chain.name}; "
            "choose another name, or --force to do all steps anew"
        )
    return before


def _check_steps(root: Path, chain: Chain) -> None:
    """Refuse to take away what a command that was called by itself is making of a step.

    Raises:
        ConfigError: another process works on the folder of a step.
    """
    for step in chain.steps:
        with held(root / step.folder):
            pass


class _Running:
    """A chain on its way; ``before`` are the steps that an earlier run left in ``root``."""

    def __init__(
        self,
        chain: Chain,
        root: Path,
        keys: Mapping[str, str],
        observer: Observer,
        record: ChainRecord,
        before: Sequence[StepRecord],
    ) -> None:
        self._chain, self._root, self._keys = chain, root, keys
        self._observer, self._record, self._before = observer, record, before
        self._runs: list[Run] = []
        # What is done already, and what was done or begun otherwise and is done anew, by folder.
        self._finished: dict[str, Run] = {}
        self._replaced: dict[str, StepRecord] = {}
        # What losses are counted from: in words, and its scores by split.
        self._reference: tuple[str, Mapping[str, Mapping[str, float | None]]] | None = None

    def run(self) -> ChainOutcome:
        """All steps, or as many as the gates let pass."""
        self._keep_steps()
        failure = None
        for step in self._chain.steps:
            found = self._run_step(step)
            self._runs.append(found)
            failure = own_failure(found) or self._missed(step, found)
            self._note_end(step, failure)
            if failure is not None:
                failure = f"{step.title} ended the chain: {failure}"
                break
        self._update(finished=now(), failure=failure)
        return ChainOutcome(self._root, self._record, tuple(self._runs), len(self._chain.steps))

    def _keep_steps(self) -> None:
        """Begin the record, of what is done and of what goes on; all else goes, and the report of it.

        It goes now and not when its step begins: a run that is killed or ends with a gate has nothing of an
        earlier one beside its own.
        """
        kept = []
        for step in self._chain.steps:
            record, key = self._record.find(step.folder), self._keys[step.folder]
            found = find_finished(self._root, step, record, key)
            if found is not None:
                self._finished[step.folder] = found
            if record is not None and (found is not None or _resumes(self._root, step, record, key)):
                kept.append(record)
                continue
            clear(self._root, step)
            if record is not None:
                self._replaced[step.folder] = record
        if len(self._finished) < len(self._chain.steps):
            (self._root / FILE_NAME).unlink(missing_ok=True)
        for one in self._before:
            if self._chain.find(one.folder) is None:
                self._observer.note(f"{self._root / one.folder} is no step of this chain any more.")
        self._update(steps=tuple(kept))

    def _run_step(self, step: Step) -> Run:
        head = f"{step.title[0].upper()}{step.title[1:]} of {len(self._chain.steps)}"
        if found := self._finished.get(step.folder):
            self._observer.stage(f"{head}: done before with the same options and inputs")
            return found
        resumes = self._record.find(step.folder) is not None
        self._observer.stage(f"{head}{': going on where it was' if resumes else ''}")
        if replaced := self._replaced.get(step.folder):
            self._say_why(step, replaced)
        self._begin(step, self._keys[step.folder])
        more = {"resume": True} if resumes else {}
        options = step.placed(self._root, self._chain.folders, **more)
        reset_peak_memory()
        started = time.perf_counter()
        try:
            with _own_threads(options):
                made = step.kind.run(options, Recorder(self._observer))
        except EncError as error:
            raise type(error)(f"{step.title}: {error}") from error
        self._set(step, seconds=time.perf_counter() - started)
        return made

    def _say_why(self, step: Step, record: StepRecord) -> None:
        """Why a step that was done or begun before is done anew."""
        why = "; ".join(changed_options(step, record))
        if record.key == self._keys[step.folder]:
            if record.status == "begun":
                self._observer.note("It was interrupted, and nothing of it was kept: it starts again.")
                return
            why = "its folder is not whole"
        self._observer.note(f"Done anew: {why or 'what it starts from has changed'}.")

    def _missed(self, step: Step, found: Run) -> str | None:
        """Why the model of ``step`` breaks the chain's own ``max_drop``, if it does."""
        if not isinstance(found, Result) or step.makes is None:
            return None
        if self._reference is None:
            before = scores_before(found)
            if before is None:
                self._reference = f"after {step.title}", found.scores
                return None
            self._reference = f"that {step.title} started from", before
        limit, metric = self._chain.options.max_drop, found.main_metric
        name, scores = self._reference
        split = next((one for one in JUDGED if one in scores and one in found.scores), None)
        if limit is None or split is None:
            return None
        one, other = scores[split].get(metric), found.scores[split].get(metric)
        if one is None or other is None:
            return f"the {metric} of the {split} rows is not defined"
        drop = (other - one if metric in LOWER_IS_BETTER else one - other) * 100
        if drop <= limit + 1e-9:
            return None
        return (
            f"the {metric} of the {split} rows is worse by {drop:.2f} points than that of the model {name}; "
            f"max_drop allows {limit:g}"
        )

    def _begin(self, step: Step, key: str) -> None:
        begun = StepRecord(
            number=step.number,
            name=step.name,
            command=step.command,
            folder=step.folder,
            key=key,
            models=step.models,
            options=step.options.model_dump(mode="json"),
            status="begun",
            begun=now(),
        )
        others = [one for one in self._record.steps if one.folder != step.folder]
        self._update(steps=tuple(sorted([*others, begun], key=lambda one: one.number)))

    def _note_end(self, step: Step, failure: str | None) -> None:
        status = "done" if failure is None else "failed"
        self._set(step, status=status, failure=failure)

    def _set(self, step: Step, **values: object) -> None:
        steps: Sequence[StepRecord] = self._record.steps
        self._update(
            steps=tuple(one.model_copy(update=values) if one.folder == step.folder else one for one in steps)
        )

    def _update(self, **values: object) -> None:
        self._record = self._record.model_copy(update=values)
        write_record(self._root, self._record)


def _resumes(root: Path, step: Step, record: StepRecord, key: str) -> bool:
    """Whether what was begun goes on by the resume of its own command, which has kept something of it."""
    if record.key != key or record.status != "begun" or not step.kind.resumes:
        return False
    return holds_work(OutputFolder(root / step.folder).work)


@contextmanager
def _own_threads(options: Any) -> Iterator[None]:
    """What a step computes with is its own affair: after it there are as many threads as before."""
    if getattr(options, "threads", None) is None:
        yield
        return
    import torch

    before = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(before)


def own_failure(found: Run) -> str | None:
    """Why a step's own gate failed, if it did."""
    if not isinstance(found, Result):
        return None
    if found.pruning is not None and found.pruning.failure is not None:
        return found.pruning.failure
    if found.compress is not None:
        return found.compress.failure
    if found.export is not None and found.export.failures:
        return "; ".join(found.export.failures)
    return None


def scores_before(found: Result) -> Mapping[str, Mapping[str, float | None]] | None:
    """The scores of the model that a step made smaller or exported; ``None`` where it trained one."""
    if found.pruning is not None:
        return found.pruning.before
    if found.distillation is not None:
        return found.distillation.teacher.scores
    return None if found.export is None else found.export.before
