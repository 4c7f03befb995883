"""The folder that a model is exported to: what is in it, written and read back.

It works alone: ``model.onnx`` with the tokenizer and a config.json that has all the rest, labels and what
becomes of the logits included. ``SHA256SUMS`` has a line for each file that decides an answer, in the format
of the tool `sha256sum`; they are checked whenever the model is opened.
"""

import hashlib
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from encoder import huggingface
from encoder.errors import CheckpointError
from encoder.files import write_atomic, write_json
from encoder.model_folder import CONFIG_FILE, GRAPH_FILE, is_exported, read_json
from encoder.task import TaskKind

if TYPE_CHECKING:
    from onnx import ModelProto

    from encoder.model import Classifier
    from encoder.tokenizer import Tokenizer

SUMS_FILE = "SHA256SUMS"
EXAMPLE_FILE = "example.py"
CARD_FILE = "MODEL_CARD.md"
GRAPH_DATA_FILE = f"{GRAPH_FILE}.data"

Precision = Literal["fp32", "fp16", "int8"]
ActivationName = Literal["softmax", "sigmoid", "identity"]
# What makes of logits what a user reads; ``encoder.metrics.activate`` computes the same.
ACTIVATIONS: dict[TaskKind, ActivationName] = {
    "single_label": "softmax",
    "multi_label": "sigmoid",
    "regression": "identity",
}


class Export(BaseModel):
    """What config.json says of the graph beside it, under ``enc.export``.

    ``inputs`` are the names of those that the graph takes, int64 [B, T] each; ``activation`` is what turns
    its logits [B, C] into probabilities or a value. Texts are cut after ``max_length`` tokens, on the side
    ``truncation_side``; ``segments`` says whether the second text of a pair has type 1, otherwise all types
    are 0. ``cpu_flags`` are those of the machine it was proven on. ``exact_int8_needed``: its 8-bit sums
    overflow on a CPU that does not add up in 32 bits.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    form: Literal["portable", "fused"]
    precision: Precision
    opset: int
    inputs: tuple[str, ...]
    activation: ActivationName
    max_length: int
    truncation_side: Literal["left", "right"]
    segments: bool
    cpu_flags: tuple[str, ...] = ()
    exact_int8_needed: bool = False

    @property
    def runtime(self) -> str:
        """The name under which latencies of it are listed."""
        return f"onnx-{self.precision}"


def write_deployed(
    folder: Path, graph: "ModelProto", model: "Classifier", tokenizer: "Tokenizer", export: Export
) -> None:
    """Write into ``folder`` all that is needed to run ``graph``, which computes the logits of ``model``.

    Raises:
        ExportError: the graph cannot be written.
    """
    from compress.onnx_graph import save_graph

    (folder / GRAPH_DATA_FILE).unlink(missing_ok=True)
    save_graph(graph, folder / GRAPH_FILE)
    tokenizer.save(folder)
    config = huggingface.config_to_json(model.config, model.task)
    config["enc"]["export"] = export.model_dump(mode="json")
    write_json(folder / CONFIG_FILE, config)
    shutil.copyfile(Path(__file__).with_name(EXAMPLE_FILE), folder / EXAMPLE_FILE)
    sums = (f"{_sha256(path)}  {path.name}\n" for path in _deciding_files(folder))
    write_atomic(folder / SUMS_FILE, "".join(sums))


def read_export(folder: Path) -> Export:
    """What the config.json of an exported model says of its graph.

    Raises:
        CheckpointError: it says something else.
    """
    path = folder / CONFIG_FILE
    try:
        return Export.model_validate(read_json(path)["enc"]["export"])
    except (KeyError, TypeError) as error:
        raise CheckpointError(f"{path}: no enc.export in it; was the folder made by enc export?") from error
    except ValidationError as error:
        problems = [f"{path}: enc.export.{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()]
        raise CheckpointError.from_problems(problems) from error


def find_graph(folder: Path) -> Path:
    """The graph in the folder of an exported model, none of whose files has changed since it was proven.

    Raises:
        CheckpointError: files have changed or are missing, all of them named.
    """
    problems = list(_changes(folder))
    if problems:
        problems.append(f"{folder} is not what enc export proved; export the model again")
        raise CheckpointError.from_problems(problems)
    return folder / GRAPH_FILE


def runtimes_of(folder: Path, wanted: Sequence[str]) -> Sequence[str]:
    """The runtimes to measure the model in ``folder`` in: ``wanted``, but an exported one runs as it is."""
    return (read_export(folder).runtime,) if is_exported(folder) else wanted


def warn_of_cpu(export: Export | None) -> Iterator[str]:
    """What may be wrong where an exported model is run on another CPU than it was proven on."""
    from compress.quantization import int8_is_exact

    if export is not None and export.exact_int8_needed and not int8_is_exact():
        yield (
            "This int8 graph was made for CPUs that add up 8-bit products in 32 bits, which this one does "
            "not: sums may overflow, and scores be lower than those of its card. Export it here, or with "
            "--any-cpu."
        )


def _changes(folder: Path) -> Iterator[str]:
    path = folder / SUMS_FILE
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        yield f"{path}: missing or not readable; without it no one knows whether the model is whole"
        return
    listed: dict[str, str] = {}
    for line in lines:
        sha256, _, name = line.partition("  ")
        listed[name] = sha256
    for file in (folder / name for name in listed):
        if not file.is_file():
            yield f"{file}: missing"
        elif _sha256(file) != listed[file.name]:
            yield f"{file}: changed since it was exported"
    yield from (f"{file}: not in {SUMS_FILE}" for file in _deciding_files(folder) if file.name not in listed)


def _deciding_files(folder: Path) -> list[Path]:
    """The files that an answer depends on."""
    names = (CONFIG_FILE, GRAPH_FILE, GRAPH_DATA_FILE, "tokenizer.json", "tokenizer_config.json")
    return [folder / name for name in names if (folder / name).is_file()]


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
