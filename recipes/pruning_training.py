"""Training what a pruning left, so that it learns to do without the rest."""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from recipes.distill_config import PRESETS
from recipes.observer import Observer
from recipes.pruning_inputs import PruningInputs
from recipes.pruning_options import PruningOptions
from recipes.result import TrainingResult
from recipes.scoring import choose_precision
from recipes.trained import describe_training, telling_resumed

if TYPE_CHECKING:
    from compress.teacher import Targets
    from encoder.model import Classifier
    from encoder.objective import Objective
    from encoder.training_config import TrainingConfig


@dataclass
class Recovery:
    """Trains models in place on the training rows, all of a model, its best epoch kept.

    Each training has its own folder in ``folder`` and stays there until the run is complete: one that was
    interrupted continues, one that was finished is not repeated. ``done`` are those of this run, and
    ``wall_seconds`` what they took of it, all included.
    """

    options: PruningOptions
    inputs: PruningInputs
    folder: Path
    observer: Observer
    done: list[TrainingResult] = field(default_factory=list)
    wall_seconds: float = 0.0
    _answers: "Targets | None" = field(default=None, repr=False)

    def train_(self, model: "Classifier", name: str, title: str) -> None:
        """Train ``model`` for as many epochs as the options say; ``name`` is that of its folder."""
        from encoder.freezing import Freezing, freeze_
        from encoder.training import train_

        started = time.perf_counter()
        device, rows = self.inputs.start.device, self.inputs.splits.rows
        config, objective = self._config(model), self._objective(model)
        self.observer.stage(
            f"{title} on {device} in {config.precision}, learning rate {config.learning_rate:.2g}"
        )
        frozen = freeze_(model, Freezing())
        outcome = train_(
            model,
            rows["train"],
            rows.get("validation"),
            config,
            work_folder=self.folder / name,
            resume=self.options.resume,
            device=device,
            on_progress=self.observer.training,
            on_resume=telling_resumed(self.observer),
            objective=objective,
        )
        self.done.append(describe_training(model, frozen, outcome, config, device))
        self.wall_seconds += time.perf_counter() - started

    def _objective(self, model: "Classifier") -> "Objective | None":
        """The teacher's answers and the labels; ``None`` are the labels alone, as training has it anyway."""
        from compress.distillation import Distillation, DistillationConfig, Weights
        from compress.teacher import compute_targets
        from compress.watching import Points, Watched

        if not self.options.recover_teacher:
            return None
        train, teacher, device = self.inputs.splits.rows["train"], self.inputs.model, self.inputs.start.device
        assert train.labels is not None
        if self._answers is None:
            self.observer.stage("Asking the model before the pruning, which is the teacher")
            precision = choose_precision("auto", device)
            self._answers = compute_targets(teacher, train, Points(), precision=precision, device=device)
        weights = Weights(**PRESETS["logits"])
        loss = DistillationConfig(weights=weights, temperature=self.options.temperature)
        width = model.config.hidden_size
        return Distillation(
            loss,
            model.task,
            Watched(),
            self._answers,
            train.labels,
            num_labelled=len(train),
            widths=(width, width),
            device=device,
        )

    def _config(self, model: "Classifier") -> "TrainingConfig":
        from encoder.optimizer import usual_learning_rate
        from encoder.training_config import TrainingConfig

        options = self.options
        return TrainingConfig(
            num_epochs=options.recover_epochs,
            batch_size=options.batch_size,
            learning_rate=options.learning_rate or usual_learning_rate(model.config.hidden_size),
            precision=choose_precision("auto", self.inputs.start.device),
            seed=options.seed,
        )

    @property
    def seconds(self) -> float:
        """What the trainings took."""
        return sum(one.seconds for one in self.done)


def can_be_resumed(trainings: Path) -> bool:
    """Whether a training left anything in the folder ``trainings`` from which it can go on."""
    from encoder.training_state import STATE_FILE

    return any(trainings.glob(f"*/{STATE_FILE}"))
