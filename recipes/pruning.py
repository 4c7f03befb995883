"""Make a fine-tuned model smaller: choose, remove, train again, prove, compare, save, measure.

All that is cheap comes first: a wrong option, a label that does not fit or a folder that cannot be made ends
the run before anything is computed. The folder appears under its name only when it is complete.
"""

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from compress.size import Size
from encoder.config import EncoderConfig
from encoder.errors import CompressionError, ConfigError
from encoder.files import OutputFolder, write_atomic
from recipes.account import make_account
from recipes.against import describe_against
from recipes.first_look import look_first
from recipes.observer import Observer, Recorder, Silent
from recipes.pruning_inputs import PruningInputs, look_at_model, read_rows, score_before
from recipes.pruning_measuring import PROOF_ROWS, measure_both, measure_sizes, prove_reloaded
from recipes.pruning_options import PruningOptions
from recipes.pruning_result import Control, PrunedLayer, PruningResult
from recipes.pruning_search import Chooser, Chosen, missed
from recipes.pruning_training import Recovery, can_be_resumed
from recipes.pruning_ways import Wanted, Way
from recipes.result import RUN_FILE, Result, describe_model, describe_parent
from recipes.resuming import claim, finish
from recipes.scoring import Scored, score_split
from recipes.side_by_side import BothLatencies

if TYPE_CHECKING:
    from encoder.model import Classifier

# Random choices that stand beside the result.
CONTROL_DRAWS = 3


def prune_model(
    command: str,
    options: PruningOptions,
    want: Callable[[EncoderConfig], Wanted],
    make_way: Callable[[Wanted, PruningInputs, Recovery, Observer], Way],
    observer: Observer | None = None,
) -> Result:
    """The run of ``command``: ``want`` says what is asked for, ``make_way`` how it is done.

    With ``resume`` training goes on where it was interrupted, and what comes before it is computed again; a
    run that is finished is returned as it is.

    Raises:
        ConfigError, DataError, CheckpointError, CompressionError: before anything is pruned, with all that is
        wrong of a kind; a CompressionError afterwards if the proof fails.
    """
    started = time.perf_counter()
    recorder = Recorder(observer or Silent())
    folder, finished = look_first(
        command,
        options,
        recorder,
        check_shape=lambda shape: _check_removable(options, want(shape)),
        needs_classifier=True,
    )
    if finished is not None:
        return finished
    start = look_at_model(options, recorder)
    wanted = want(start.config)
    data = read_rows(options, start, recorder)
    parent = describe_parent(start.found.source, start.found.folder)
    work = claim(folder, options, model=parent.sha256, data=data.fingerprint)
    with _left_behind_only_if_of_use(folder, work):
        inputs = score_before(start, parent, data, recorder)
        recovery = Recovery(options, inputs, work, recorder)
        way = make_way(wanted, inputs, recovery, recorder)
        done = _prune(options, inputs, way, recovery, recorder)
        result = _make_result(command, done, folder.work, recorder, started)
        write_atomic(folder.work / RUN_FILE, result.to_json())
    finish(folder)
    return result


def _check_removable(options: PruningOptions, wanted: Wanted) -> None:
    if wanted.total == 0:
        raise ConfigError(f"{options.model} has no {wanted.unit}: there is nothing left to remove")
    if wanted.keep is None and wanted.least >= wanted.total:
        raise ConfigError(
            f"{options.model} has {wanted.total:,} {wanted.unit}, and so many have to stay: --max-drop can "
            "remove none"
        )


@contextmanager
def _left_behind_only_if_of_use(folder: OutputFolder, trainings: Path) -> Iterator[None]:
    """An unfinished folder stays if there is a training in it to go on with, and a model worth it."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, CompressionError) or not can_be_resumed(trainings):
            shutil.rmtree(folder.work, ignore_errors=True)
        raise


@dataclass(frozen=True)
class _Done:
    """A pruned model that is finished, and what led to it; ``seconds`` is what choosing and removing took."""

    options: PruningOptions
    inputs: PruningInputs
    way: Way
    chosen: Chosen
    recovery: Recovery
    seconds: float

    @property
    def model(self) -> "Classifier":
        """The pruned model."""
        return self.chosen.pruned.model

    @property
    def is_whole(self) -> bool:
        """Whether nothing was removed."""
        return sum(map(len, self.chosen.pruned.kept)) == self.way.wanted.total


def _prune(
    options: PruningOptions, inputs: PruningInputs, way: Way, recovery: Recovery, observer: Observer
) -> _Done:
    """Choose and remove, and train what is left."""
    observer.stage(f"Choosing among {way.wanted.total:,} {way.wanted.unit}")
    before = time.perf_counter()
    chosen = Chooser(options, inputs, way, observer).run()
    seconds = time.perf_counter() - before - recovery.wall_seconds
    if options.recover_epochs:
        recovery.train_(chosen.pruned.model, "last", "Training what is left")
    return _Done(options, inputs, way, chosen, recovery, seconds)


def _make_result(command: str, done: _Done, work: Path, recorder: Recorder, started: float) -> Result:
    """Score, compare, save, prove and measure the model; the account of it all."""
    from encoder.checkpoint import save_classifier

    options, inputs = done.options, done.inputs
    found, data, device = inputs.start.found, inputs.data, inputs.start.device
    scored: dict[str, Scored] = {}
    for name in inputs.before:
        recorder.stage(f"Scoring the {name} rows after")
        scored[name] = score_split(done.model, inputs.splits.rows[name], device=device, observer=recorder)
    split = inputs.reported
    before, after = inputs.before[split].logits, scored[split].logits
    against = describe_against(found, split, data.task, before, after, data.labels(split))
    control = _draw_control(done, recorder)
    recorder.stage("Saving")
    save_classifier(done.model, found.tokenizer, work)
    recorder.stage(f"Proving on {PROOF_ROWS} rows at most that silenced and removed are the same")
    masked = _prove_removed(done)
    sizes = measure_sizes(inputs, done.model, work)
    latency = BothLatencies()
    if done.is_whole:
        recorder.note("Nothing was removed: there is no gain to measure.")
    else:
        latency = measure_both(options, inputs, work, recorder)
    recorder.stage("Proving that a fresh process gives the same; it takes as long as enc takes to start")
    reloaded = prove_reloaded(options, inputs, done.model, work)
    failure = done.chosen.failure or missed(options, inputs, scored["validation"].scores)
    return make_account(
        command,
        options,
        model=describe_model(str(options.output), work, done.model, found.max_length),
        parent=inputs.parent,
        data=data,
        encoded=inputs.splits.encoded,
        scored=scored,
        against=against,
        notes=recorder.notes,
        seconds=time.perf_counter() - started,
        training=done.recovery.done[-1] if done.recovery.done else None,
        latency=latency.after,
        size=sizes[1],
        pruning=_describe(done, control, (masked, reloaded), sizes[0], latency, failure),
    )


def _draw_control(done: _Done, observer: Observer) -> Control | None:
    """Random choices of as many units on the reported split; ``None`` where nothing was removed."""
    inputs, way = done.inputs, done.way
    if done.is_whole:
        return None
    kept = sum(map(len, done.chosen.pruned.kept))
    observer.stage(f"Scoring {CONTROL_DRAWS} random choices of {kept:,} {way.wanted.unit}")
    scores = (inputs.main_score(one, inputs.reported, Silent()) for one in way.draw(kept, CONTROL_DRAWS))
    return Control(split=inputs.reported, scores=tuple(scores))


def _prove_removed(done: _Done) -> float:
    rows = done.inputs.splits.rows[done.inputs.reported]
    return done.way.prove(done.chosen.pruned.kept, rows.select(np.arange(min(len(rows), PROOF_ROWS))))


def _describe(
    done: _Done,
    control: Control | None,
    differences: tuple[float, float],
    size_before: Size,
    latency: BothLatencies,
    failure: str | None,
) -> PruningResult:
    options, way, wanted = done.options, done.way, done.way.wanted
    after = sum(map(len, done.chosen.pruned.kept))
    return PruningResult(
        unit=wanted.unit,
        method=way.method,
        scope=getattr(options, "scope", None),
        normalize=getattr(options, "normalize", False),
        targets=options.targets,
        steps=getattr(options, "steps", 1),
        rows=way.rows,
        rows_split="train",
        repair_rows=way.repair_rows,
        recover_epochs=options.recover_epochs,
        recover_each_step=getattr(options, "recover_each_step", False),
        recover_teacher=options.recover_teacher,
        units_before=wanted.total,
        units_after=after,
        sparsity=1 - after / max(1, wanted.total),
        layers=tuple(_describe_layers(done)),
        before={name: one.scores for name, one in done.inputs.before.items()},
        control=control,
        max_drop=options.max_drop,
        trials=done.chosen.trials,
        failure=failure,
        masked_difference=differences[0],
        reloaded_difference=differences[1],
        size_before=size_before,
        latency_before=latency.before,
        speedups=latency.speedups,
        seconds=done.seconds,
        recovery_seconds=done.recovery.seconds,
    )


def _describe_layers(done: _Done) -> Iterator[PrunedLayer]:
    pruned, wanted = done.chosen.pruned, done.way.wanted
    heads = wanted.unit == "heads"
    for layer, (shape, kept) in enumerate(zip(done.inputs.model.config.layers, pruned.kept, strict=True)):
        scores = None if pruned.scores is None or wanted.unit == "neurons" else pruned.scores[layer]
        yield PrunedLayer(
            layer=layer,
            before=wanted.counts[layer],
            after=len(kept),
            heads_before=shape.heads if heads else None,
            heads_after=tuple(shape.heads[place] for place in kept) if heads else None,
            importance=None if scores is None else tuple(scores.tolist()),
        )
