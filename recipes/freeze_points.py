"""The points of a sweep: with k layers frozen and one seed, a model is trained, scored and put on disk.

A finished point is a file that is there or not, so an interrupted sweep computes none twice.
"""

import copy
import io
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from compress.memory import peak_memory_bytes, reset_peak_memory
from encoder.batches import shuffled_batches
from encoder.checkpoint import draw_new_classifier_
from encoder.files import write_atomic
from encoder.freezing import Freezing, Frozen, freeze_
from encoder.metrics import score
from encoder.model import Classifier, start_at_base_rates_
from encoder.prediction import predict_logits
from encoder.rows import TokenizedRows
from encoder.training import load_best_, train_
from encoder.training_state import BEST_FILE, STATE_FILE
from recipes.frozen_storage import go_to
from recipes.observer import Observer
from recipes.part import Part
from recipes.result import TrainingResult
from recipes.scoring import Splits
from recipes.trained import describe_training, telling_resumed
from recipes.training_inputs import TrainingInputs, make_training_config
from recipes.training_options import FreezingOptions

if TYPE_CHECKING:
    from encoder.frozen_prefix import FrozenPrefix
    from encoder.training import TrainingProgress

POINT_FILE, LOGITS_FILE = "point.json", "validation.npy"
WARM_UP_UPDATES = 3
# So small that no loss diverges; what the weights become is thrown away.
WARM_UP_LEARNING_RATE = 1e-9


class FinishedPoint(Part):
    """What is known of a point: its validation ``score`` (``None``: not defined), how its training went.

    ``added_memory_bytes`` is what that took beyond what was there before it: libraries, model, rows and what
    the frozen layers made of them; ``None`` where the system does not tell.
    """

    k: int
    seed: int
    score: float | None
    training: TrainingResult
    added_memory_bytes: int | None = None


@dataclass(frozen=True)
class Points:
    """Trains points in ``folder``, a folder each. ``base`` is the model they all start from.

    It is loaded once; a point copies of it only what it trains.
    """

    options: FreezingOptions
    inputs: TrainingInputs
    splits: Splits
    base: Classifier
    metric: str
    folder: Path
    prefixes: Sequence["FrozenPrefix"]

    def find(self, k: int, seed: int) -> FinishedPoint | None:
        """The point, if it is finished."""
        file = self._folder(k, seed) / POINT_FILE
        return FinishedPoint.model_validate_json(file.read_bytes()) if file.exists() else None

    def warm_up(self, k: int) -> None:
        """Train a little, predict and score with ``k`` frozen layers; it counts nowhere and changes nothing.

        The first training of a process loads libraries and lets kernels be made, which takes memory and time
        that are not its own.
        """
        train, validation = self._parts()
        config = make_training_config(self.options, self.inputs.start)
        batches = shuffled_batches(len(train), config.batch_size, seed=config.seed, epoch=0)
        few = np.concatenate(batches[: WARM_UP_UPDATES * config.accumulation_steps])
        changes = {"num_epochs": 1, "learning_rate": WARM_UP_LEARNING_RATE, "class_weights": "none"}
        device = self.inputs.start.device
        model, _ = self.start(k, config.seed)
        with self._as_it_was(k), tempfile.TemporaryDirectory(prefix="warm-up-", dir=self.folder) as folder:
            train_(
                model, train.select(few), None, config.model_copy(update=changes),
                work_folder=Path(folder), device=device,
            )  # fmt: skip
            some = predict_logits(model, validation.select(range(min(len(validation), 32))), device=device)
        assert validation.labels is not None
        score(model.task, np.resize(some, (len(validation), some.shape[1])), validation.labels)

    def run(self, k: int, seed: int, observer: Observer) -> FinishedPoint:
        """Train, score and keep the point; one that was interrupted goes on where it was."""
        folder = self._folder(k, seed)
        model, frozen = self.start(k, seed)
        with self._as_it_was(k):
            before = time.perf_counter()
            if self.options.cache_frozen:
                go_to(self.prefixes, model, k, observer)
            frozen_seconds = time.perf_counter() - before
            peak_is_its_own = reset_peak_memory()
            memory_before = peak_memory_bytes()
            if torch.cuda.is_available():
                torch.cuda.reset_peak_memory_stats()
            training, logits = self._train(model, frozen, seed, folder, observer)
            training = training.model_copy(update={"frozen_seconds": frozen_seconds})
        peak, added = training.peak_memory_bytes, None
        if peak_is_its_own and peak is not None:
            added = peak - memory_before
        else:
            training = training.model_copy(update={"peak_memory_bytes": None})
        labels = self.splits.rows["validation"].labels
        assert labels is not None
        value = score(model.task, logits, labels)[self.metric]
        point = FinishedPoint(
            k=k,
            seed=seed,
            score=value if value == value else None,
            training=training,
            added_memory_bytes=added,
        )
        buffer = io.BytesIO()
        np.save(buffer, logits)
        write_atomic(folder / LOGITS_FILE, buffer.getvalue())
        write_atomic(folder / POINT_FILE, point.model_dump_json())
        (folder / STATE_FILE).unlink(missing_ok=True)
        return point

    def _train(
        self, model: Classifier, frozen: Frozen, seed: int, folder: Path, observer: Observer
    ) -> tuple[TrainingResult, NDArray[np.float32]]:
        device = self.inputs.start.device
        config = make_training_config(self.options, self.inputs.start, seed)
        train, validation = (prefix.rows for prefix in self.prefixes)

        def show(progress: "TrainingProgress") -> None:
            observer.training(replace(progress, validation=None))

        outcome = train_(
            model, train, validation, config,
            work_folder=folder, resume=True, device=device, on_progress=show,
            on_resume=telling_resumed(observer),
        )  # fmt: skip
        logits = predict_logits(model, validation, device=device)
        return describe_training(model, frozen, outcome, config, device), logits

    def start(self, k: int, seed: int) -> tuple[Classifier, Frozen]:
        """The model as a point begins, and as `enc finetune --freeze-layers k` with that seed does."""
        encoder = self.base.encoder
        shared = [*encoder.embeddings.parameters(), *encoder.layers[:k].parameters()]
        if k == 0:  # trained by the rows that the data uses; ``_as_it_was`` puts those back
            shared = [encoder.embeddings.word.weight]
        known = {id(one): nn.Parameter(one.detach(), requires_grad=one.requires_grad) for one in shared}
        model = copy.deepcopy(self.base, known)
        labels = self.splits.rows["train"].labels
        if model.new_parameters and labels is not None:
            draw_new_classifier_(model, seed)
            start_at_base_rates_(model, labels)
        return model, freeze_(model, Freezing(layers=k))

    @contextmanager
    def _as_it_was(self, k: int) -> Iterator[None]:
        """Put back the word table, which a point that trains it shares with ``base``."""
        if k > 0:
            yield
            return
        used = torch.from_numpy(np.unique(np.concatenate([part.input_ids for part in self._parts()])))
        table = self.base.encoder.embeddings.word.weight.detach()
        before = table[used]
        try:
            yield
        finally:
            table[used] = before

    @contextmanager
    def rebuilt(self, k: int, seed: int) -> Iterator[tuple[Classifier, Frozen]]:
        """The trained model of a point whose weights were kept."""
        model, frozen = self.start(k, seed)
        with self._as_it_was(k):
            load_best_(model, self._parts(), self._folder(k, seed))
            yield model.to(self.inputs.start.device), frozen

    def forget_weights(self, k: int, seed: int) -> None:
        """Delete the weights of a point; its scores stay."""
        (self._folder(k, seed) / BEST_FILE).unlink(missing_ok=True)

    def logits(self, k: int, seed: int) -> NDArray[np.float32]:
        """What a finished point says of the validation rows, float32 [R, C]."""
        found: NDArray[np.float32] = np.load(self._folder(k, seed) / LOGITS_FILE)
        return found

    def _parts(self) -> list[TokenizedRows]:
        return [self.splits.rows["train"], self.splits.rows["validation"]]

    def _folder(self, k: int, seed: int) -> Path:
        folder = self.folder / f"k{k}-seed{seed}"
        folder.mkdir(exist_ok=True)
        return folder
