"""What of a chain can be refused before anything is read or computed: models, data, files, shapes."""

import re
from pathlib import Path

from compress.machine import require_gpu
from encoder.config import EncoderConfig
from encoder.errors import CheckpointError, EncError
from encoder.model_folder import is_exported, peek_config, read_task
from encoder.sources import builtin_model_folder, check_place, is_builtin_model
from recipes.chain import MISSING, Chain, Step
from recipes.chain_data import check_chain_data
from recipes.chain_shapes import Shape, reshape
from recipes.chain_steps import Made

# Whatever their options, the layers and positions of their model are as many as before.
KEEPS_LAYERS = ("finetune", "freeze-sweep", "prune-heads", "prune-neurons")


def check_chain(chain: Chain) -> list[str]:
    """All that is wrong with the models, the data and the files that the steps name, with what they ask of a
    model or of data that these do not have, and of a machine."""
    checker = _Checker(chain)
    for step in chain.steps:
        checker.check(step)
    checker.check_data()
    return list(dict.fromkeys(checker.problems))


class _Checker:
    """Goes through the steps; what a step cannot be asked because of an earlier one is not told."""

    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        self._outside: dict[str, tuple[Shape, Made | None] | None] = {}
        self._shapes: dict[str, Shape | None] = {}  # after each step, where it is known
        self.problems: list[str] = []

    def check(self, step: Step) -> None:
        """Everything about one step."""
        shape: Shape | None = None
        for name in reversed(step.models):
            shape = self._shapes[name] if name in self._shapes else self._from_outside(step, name)
        if not step.is_whole:  # what is wrong with it was told; so many layers and positions stay
            self._shapes[step.folder] = shape if step.command in KEEPS_LAYERS else None
            return
        self._check_sources(step)
        if getattr(step.options, "device", None) == "cuda":
            try:
                require_gpu(otherwise="cpu or auto")
            except EncError as error:
                self._tell(step, str(error))
        self._shapes[step.folder] = None if shape is None else self._reshaped(step, shape)

    def check_data(self) -> None:
        """What the steps read."""
        for step, problem in check_chain_data(self._chain):
            if step is None:
                self.problems.append(f"{self._chain.source}: {_as_keys(problem)}")
            else:
                self._tell(step, problem)

    def _from_outside(self, step: Step, name: str) -> Shape | None:
        if name == MISSING:
            return None
        if name not in self._outside:
            self._outside[name] = None
            try:
                self._outside[name] = _look_at(name)
            except EncError as error:
                self.problems.append(f"{self._chain.source}: {error}")
        found = self._outside[name]
        if found is None:
            return None
        shape, made = found
        if made == "encoder" and made not in step.kind.takes:
            self._tell(
                step,
                f"takes a fine-tuned model, and {name} is an encoder without a classifier; put a step "
                "finetune before it",
            )
            return None
        if made == "graph" and made not in step.kind.takes:
            self._tell(step, f"{name} is an exported model, which runs as it is and cannot be changed")
            return None
        return shape

    def _check_sources(self, step: Step) -> None:
        data = getattr(step.options, "data", None)
        files = {
            name: value
            for name in type(step.options).model_fields
            if name != "output" and isinstance(value := getattr(step.options, name), Path)
        }
        for name, path in files.items():
            if not path.expanduser().exists():
                self._tell(step, f"{name} {path}: no such file")
        if data in (None, MISSING):
            return
        try:
            check_place(data)
        except EncError as error:
            self.problems.append(f"{self._chain.source}: {error}")

    def _reshaped(self, step: Step, shape: Shape) -> Shape | None:
        most, holds = getattr(step.options, "max_length", None), shape.config.max_tokens
        if most is not None and most > holds:
            self._tell(step, f"max_length {most}: {step.models[0]} holds {holds} tokens at most")
        if getattr(step.options, "format", None) == "transformers":  # its shape takes torch to be told
            return None
        known = {folder: one for folder, one in self._shapes.items() if one is not None}
        student = getattr(step.options, "student", None)
        if student in self._shapes and student not in known:  # what is wrong with that was told
            return None
        try:
            return reshape(step, shape, known)
        except EncError as error:
            for line in str(error).splitlines():
                self._tell(step, line)
            return None

    def _tell(self, step: Step, problem: str) -> None:
        self.problems.append(f"{self._chain.source}: {step.title}: {_as_keys(problem)}")


def _as_keys(problem: str) -> str:
    """Commands name an option as it is typed; in a recipe it is a key."""
    return re.sub(r"--([a-z][a-z-]+)", lambda match: match[1].replace("-", "_"), problem)


def _look_at(name: str) -> tuple[Shape, Made | None]:
    """The shape of a model from outside, and what it is; ``None``: only the hub knows.

    Raises:
        CheckpointError: there is no such model.
    """
    config: EncoderConfig = peek_config(name, exported=True)
    folder = builtin_model_folder(name) if is_builtin_model(name) else Path(name).expanduser()
    if not folder.is_dir():
        return Shape(config), None
    if is_exported(folder):
        return Shape(config), "graph"
    try:
        return Shape(config), "classifier" if read_task(folder) else "encoder"
    except CheckpointError:
        return Shape(config), None
