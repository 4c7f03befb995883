"""Training the candidates of a compression, with the original as their teacher."""

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from encoder.files import write_atomic
from recipes.compress_candidates import Maker, Plan
from recipes.compress_config import CompressConfig
from recipes.distill_config import DistillConfig
from recipes.distill_student import StudentPlan
from recipes.pruning_inputs import PruningInputs
from recipes.result import TrainingResult
from recipes.training_inputs import StartingModel

if TYPE_CHECKING:
    from compress.teacher import Targets
    from encoder.model import Classifier
    from recipes.distill_training import Lesson, Taught

STUDENT_FOLDER, TRAINED_FOLDER, TRAINED_FILE = "student", "trained", "trained.json"


@dataclass
class Teaching:
    """Trains candidates as `enc distill` trains a student; the teacher answers once for all of them.

    Each has a folder of its own in ``folder``: an interrupted training continues there, and one that is
    finished is not repeated.
    """

    config: CompressConfig
    maker: Maker
    folder: Path
    _targets: "Targets | None" = field(default=None, repr=False)

    @property
    def inputs(self) -> PruningInputs:
        """The original, and the data."""
        return self.maker.inputs

    def is_done(self, plan: Plan) -> bool:
        """Whether ``plan`` was trained before."""
        return (self.folder / plan.key / TRAINED_FILE).is_file()

    def train(self, plan: Plan) -> "tuple[Classifier, TrainingResult]":
        """The model of ``plan`` after its training."""
        from encoder.checkpoint import load_classifier, save_classifier

        folder = self.folder / plan.key
        if not self.is_done(plan):
            taught = self._teach(plan, folder)
            save_classifier(taught.model, self.inputs.start.found.tokenizer, emptied(folder / TRAINED_FOLDER))
            write_atomic(folder / TRAINED_FILE, taught.training.model_dump_json())
        trained = load_classifier(folder / TRAINED_FOLDER).to(self.inputs.start.device)
        return trained, TrainingResult.model_validate_json((folder / TRAINED_FILE).read_bytes())

    def _teach(self, plan: Plan, folder: Path) -> "Taught":
        from recipes.distill import ask_teacher
        from recipes.distill_training import teach

        lesson = self._lesson(plan, folder / STUDENT_FOLDER)
        if self._targets is None:
            self._targets = ask_teacher(lesson, None)
        return teach(lesson, self._targets, folder)

    def _lesson(self, plan: Plan, student: Path) -> "Lesson":
        """The candidate is saved first, so that a training that is continued starts from the same."""
        from encoder.checkpoint import save_classifier
        from recipes.distill_training import Lesson

        config, start = self.config, self.inputs.start
        if not (student / "config.json").is_file():
            save_classifier(self.maker.make(plan), start.found.tokenizer, emptied(student))
        options = DistillConfig(
            model=config.model,
            data=config.data,
            output=config.output,
            student=str(student),
            num_epochs=config.num_epochs,
            batch_size=config.batch_size,
            learning_rate=config.learning_rate,
            seed=config.seed,
            device=config.device,
            threads=config.threads,
            resume=config.resume,
            control=False,
            latency=False,
            **config.reading,
        )
        found, rows = start.found, self.inputs.splits.rows
        from_here = StartingModel(
            found.source, found.folder, start.config, found.tokenizer, found.max_length, start.device
        )
        return Lesson(
            options,
            from_here,
            StudentPlan((len(plan.layers),), plan.config, student),
            self.inputs.model,
            rows["train"],
            len(rows["train"]),
            rows["validation"],
            self.maker.observer,
        )


def emptied(folder: Path) -> Path:
    """``folder``, made with nothing in it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
