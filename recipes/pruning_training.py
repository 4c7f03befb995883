"""Training what a pruning left, so that it learns to do without the rest."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from recipes.observer import Observer
from recipes.pruning_inputs import PruningInputs
from recipes.pruning_options import PruningOptions
from recipes.result import TrainingResult
from recipes.scoring import choose_precision
from recipes.trained import describe_training

if TYPE_CHECKING:
    from encoder.model import Classifier


def recover_(
    model: "Classifier", options: PruningOptions, inputs: PruningInputs, folder: Path, observer: Observer
) -> TrainingResult | None:
    """Train ``model`` in place on the training rows, all of it; ``None`` where no epoch is asked for.

    ``folder`` is for the training's own files, and gone afterwards.
    """
    from encoder.freezing import Freezing, freeze_
    from encoder.optimizer import usual_learning_rate
    from encoder.training import TrainingConfig, train_

    if options.recover_epochs == 0:
        return None
    device = inputs.start.device
    config = TrainingConfig(
        num_epochs=options.recover_epochs,
        batch_size=options.batch_size,
        learning_rate=options.learning_rate or usual_learning_rate(model.config.hidden_size),
        precision=choose_precision("auto", device),
        seed=options.seed,
    )
    observer.stage(
        f"Training what is left on {device} in {config.precision}, learning rate {config.learning_rate:.2g}"
    )
    frozen = freeze_(model, Freezing())
    folder.mkdir()
    outcome = train_(
        model,
        inputs.splits.rows["train"],
        inputs.splits.rows.get("validation"),
        config,
        work_folder=folder,
        device=device,
        on_progress=observer.training,
    )
    shutil.rmtree(folder)
    return describe_training(model, frozen, outcome, config, device)
