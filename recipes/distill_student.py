"""What a student is to be: settled and checked before anything is read or computed, then made."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from compress.units import why_layers_stay
from encoder.config import EncoderConfig
from encoder.errors import CompressionError, ConfigError
from encoder.labels import list_labels
from encoder.model_folder import read_config, read_task, read_tokenizer, resolve_model
from encoder.rows import TokenizedRows
from encoder.task import Task
from encoder.wording import counted
from recipes.distill_config import DistillConfig
from recipes.result import hash_model
from recipes.training_inputs import StartingModel

if TYPE_CHECKING:
    from encoder.model import Classifier
    from encoder.tokenizer import Tokenizer

# Training rows that importance of layers is found on.
IMPORTANCE_ROWS = 1024


@dataclass(frozen=True)
class StudentPlan:
    """Of a student made of its teacher's layers: how many are left after each step, and how they are chosen.

    Otherwise ``config`` is that of the student, which comes from ``folder`` or from random numbers.
    """

    sizes: tuple[int, ...]
    config: EncoderConfig | None = None
    folder: Path | None = None

    @property
    def sha256(self) -> str:
        """Of a student from a folder; empty otherwise."""
        return "" if self.folder is None else hash_model(self.folder)


def plan_student(options: DistillConfig, start: StartingModel, task: Task) -> StudentPlan:
    """What the student of the teacher ``start`` will be.

    Raises:
        ConfigError, CheckpointError: it cannot be, with all that is in its way.
    """
    if options.student is not None:
        plan = _plan_other(options, options.student, start, task)
    elif options.thinner:
        plan = _plan_thinner(options, start)
    else:
        plan = _plan_layers(options, start)
    if problems := _relation_problems(options, start.config, plan):
        raise ConfigError.from_problems(problems)
    return plan


def check_layers(options: DistillConfig, teacher: EncoderConfig) -> None:
    """Refuse layers that a teacher of this shape does not have, and steps that its layers do not allow.

    Raises:
        ConfigError: all that is wrong with them.
    """
    if options.student is not None:
        return
    count, named = teacher.num_hidden_layers, options.named_layers
    problems = []
    if not options.thinner and (why := why_layers_stay(teacher)):
        problems.append(f"{options.model}: a student cannot be made of some of its layers: {why}")
    if missing := [str(layer) for layer in named or () if layer >= count]:
        problems.append(
            f"--init-layers {','.join(missing)}: {options.model} has {counted(count, 'layer')}, "
            "counted from 0"
        )
    keep = options.layers if named is None else len(named)
    if keep is not None and keep > count:
        problems.append(f"--layers {keep}: {options.model} has {counted(count, 'layer')}")
    elif keep is not None and options.progressive > max(1, count - keep):
        problems.append(
            f"--progressive {options.progressive}: {count - keep} of {count} layers go, one a step at least"
        )
    if problems:
        raise ConfigError.from_problems(problems)


def _plan_layers(options: DistillConfig, start: StartingModel) -> StudentPlan:
    from compress.student import shrink_steps

    check_layers(options, start.config)
    count, named = start.config.num_hidden_layers, options.named_layers
    keep = options.layers if named is None else len(named)
    assert keep is not None
    return StudentPlan(tuple(shrink_steps(count, keep, options.progressive)))


def _plan_thinner(options: DistillConfig, start: StartingModel) -> StudentPlan:
    from compress.student import thinner_config

    check_layers(options, start.config)
    try:
        config = thinner_config(
            start.config,
            num_layers=options.layers,
            hidden_size=options.hidden_size,
            intermediate_size=options.intermediate_size,
            num_heads=options.heads,
        )
    except CompressionError as error:
        raise ConfigError(f"--hidden-size and --heads: {error}") from error
    return StudentPlan((config.num_hidden_layers,), config)


def _plan_other(options: DistillConfig, student: str, start: StartingModel, task: Task) -> StudentPlan:
    folder = resolve_model(student)
    config, own_task, tokenizer = read_config(folder), read_task(folder), read_tokenizer(folder)
    where, teacher = f"--student {student}", options.model
    problems = []
    if tokenizer.fingerprint != start.tokenizer.fingerprint:
        problems.append(
            f"{where}: another tokenizer than the teacher's, so that one text would be other tokens to each; "
            f"{student}: {_describe(tokenizer)}; {teacher}: {_describe(start.tokenizer)}"
        )
    if own_task is not None and not own_task.has_labels_of(task):
        problems.append(
            f"{where}: a classifier for other labels, {_labels(own_task)}; the teacher {teacher} has "
            f"{_labels(task)}; give an encoder without a classifier, or one with these labels"
        )
    count = start.config.num_hidden_layers
    if config.num_hidden_layers > count:
        problems.append(
            f"{where}: {counted(config.num_hidden_layers, 'layer')}; the teacher {teacher} has {count}"
        )
    if start.max_length > config.max_tokens:
        problems.append(
            f"{where}: holds {config.max_tokens} tokens at most, texts are cut at {start.max_length}; "
            f"give --max-length {config.max_tokens}"
        )
    if problems:
        raise ConfigError.from_problems(problems)
    return StudentPlan((config.num_hidden_layers,), config, folder)


def _describe(tokenizer: "Tokenizer") -> str:
    return f"{tokenizer.vocab_size:,} pieces, SHA-256 {tokenizer.fingerprint[:12]}…"


def _labels(task: Task) -> str:
    return list_labels(task.labels) or "a number"


def _relation_problems(options: DistillConfig, teacher: EncoderConfig, plan: StudentPlan) -> list[str]:
    """Why relations between tokens cannot be compared."""
    if not options.weights["relations"]:
        return []
    from compress.distillation import attention_width, choose_relation_heads

    last = attention_width(teacher, teacher.num_hidden_layers - 1)
    if plan.config is None:
        widths = [attention_width(teacher, layer) for layer in range(teacher.num_hidden_layers)]
    else:
        widths = [attention_width(plan.config, plan.config.num_hidden_layers - 1)]
    if 0 in (last, *widths):
        return [
            "relations cannot be learnt: a layer has no attention heads; choose --preset logits or hidden"
        ]
    wanted = options.relation_heads
    return [
        f"--relation-heads {wanted}: queries are {last} wide in the teacher's last layer and {width} in the "
        "student's; give a number that divides both"
        for width in dict.fromkeys(widths)
        if wanted is not None and choose_relation_heads(width, last, wanted) is None
    ]


def make_student(
    options: DistillConfig,
    plan: StudentPlan,
    teacher: "Classifier",
    rows: TokenizedRows,
    device: str,
    *,
    step: int = 0,
    before: "Classifier | None" = None,
) -> tuple["Classifier", Sequence[int] | None]:
    """The student as it starts step number ``step``, and which layers of ``before`` (else of the teacher)
    it is made of; ``None`` where it is made of none.

    ``rows`` have labels.
    """
    from compress.removal import keep_layers
    from compress.student import choose_layers, draw_student
    from encoder.checkpoint import load_classifier

    if plan.folder is not None:
        return load_classifier(plan.folder, task=teacher.task, seed=options.seed), None
    if plan.config is not None:
        return draw_student(teacher, plan.config, options.seed), None
    base, layers = before or teacher, options.named_layers
    if layers is None:
        number = np.random.default_rng(options.seed).permutation(len(rows))[:IMPORTANCE_ROWS]
        choice = options.init_layers
        layers = tuple(
            choose_layers(base, plan.sizes[step], choice, rows.select(number), device=device)  # type: ignore[arg-type]
        )
    return keep_layers(base, layers), layers
