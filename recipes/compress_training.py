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

    def save_untrained(self, plan: Plan) -> Path:
        """The folder of the model of ``plan`` before any training, made once."""
        student = self.folder / plan.model_key / STUDENT_FOLDER
        if not student.is_dir():
            self._save(self.maker.make(plan), student)
        return student

    def train(self, plan: Plan) -> tuple[Path, TrainingResult]:
        """The folder of the model of ``plan`` after its training, and the account of that."""
        folder = self.folder / plan.model_key
        file, trained = folder / TRAINED_FILE, folder / TRAINED_FOLDER
        if not file.is_file():
            taught = self._teach(plan, folder)
            self._save(taught.model, trained)
            write_atomic(file, taught.training.model_dump_json())
        return trained, TrainingResult.model_validate_json(file.read_bytes())

    def _save(self, model: "Classifier", folder: Path) -> None:
        """Write ``model`` into ``folder``, which is whole as soon as it is there."""
        from encoder.checkpoint import save_classifier

        partial = emptied(folder.with_name(f"{folder.name}.partial"))
        save_classifier(model, self.inputs.start.found.tokenizer, partial)
        shutil.rmtree(folder, ignore_errors=True)
        partial.rename(folder)

    def _teach(self, plan: Plan, folder: Path) -> "Taught":
        from recipes.distill import ask_teacher
        from recipes.distill_training import teach

        lesson = self._lesson(plan)
        if self._targets is None:
            self._targets = ask_teacher(lesson, None)
        return teach(lesson, self._targets, folder)

    def _lesson(self, plan: Plan) -> "Lesson":
        """The student is what was saved, so that a training that is continued starts from the same."""
        from recipes.distill_training import Lesson

        config, start, student = self.config, self.inputs.start, self.save_untrained(plan)
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
