"""What an export starts from: a fine-tuned model and labelled rows, read, checked and tokenized."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from compress.size import matrix_parameters
from encoder.config import EncoderConfig
from encoder.errors import ExportError, Problems
from encoder.files import OutputFolder
from encoder.rows import TokenizedRows
from encoder.texts import TextRows
from recipes.data_options import data_options
from recipes.evaluation_data import read_evaluation_data
from recipes.export_config import ExportConfig
from recipes.export_vocabulary import read_vocabulary_texts
from recipes.first_look import check_inputs_stay, look_at_inputs
from recipes.observer import Observer
from recipes.scoring import FineTuned, Scored, Splits, find_fine_tuned, score_split, tokenize

if TYPE_CHECKING:
    from encoder.data import TaskData
    from encoder.model import Classifier
    from encoder.tokenizer import Tokenizer

# Of several splits, the first of these is the one that is reported first.
REPORTED = ("test", "validation")
# Bytes of a parameter in fp32, and a little for all that is not weights.
PARAMETER_BYTES = 4.2


@dataclass(frozen=True)
class ExportedFrom:
    """The model to export, looked at but not loaded, and the folder to make.

    ``vocabulary`` are the texts whose pieces are kept; ``None``: all pieces are.
    """

    found: FineTuned
    folder: OutputFolder
    vocabulary: TextRows | None

    @property
    def config(self) -> EncoderConfig:
        """The shape of the model."""
        return self.found.config


@dataclass(frozen=True)
class ExportInputs:
    """All that an export needs.

    ``model`` and ``tokenizer`` are what is to be written; ``before`` are the scores, by split, of the model
    that ``start`` names, computed by torch.
    """

    start: ExportedFrom
    data: "TaskData"
    splits: Splits
    model: "Classifier"
    tokenizer: "Tokenizer"
    before: Mapping[str, Scored]

    @property
    def reported(self) -> str:
        """The split that the proof is reported on."""
        return next(name for name in REPORTED if name in self.before)

    def draw_rows(self, number: int) -> tuple[TokenizedRows, str]:
        """So many rows by chance, or all there are, and of which split: train if there is one."""
        split = next(name for name in ("train", "validation", "test") if name in self.data.splits)
        texts, pairs = self.data.texts(split), self.data.pairs(split)
        drawn = np.random.default_rng(0).permutation(len(texts))[:number].tolist()
        rows, _ = self.tokenizer.encode(
            [texts[row] for row in drawn],
            None if pairs is None else [pairs[row] for row in drawn],
            max_length=self.start.found.max_length,
        )
        return rows, split


def look_at_model(options: ExportConfig, observer: Observer) -> ExportedFrom:
    """The model that ``options`` name and the folder to make of it, before anything is computed.

    Raises:
        ConfigError, CheckpointError, ExportError: no such model, an exported one, no classifier; a folder
        that cannot be made or has no room; a graph that cannot be written, or cannot be run here.
    """
    folder = OutputFolder(options.output, overwrite=options.overwrite)
    problems = Problems()
    with problems.collected():
        check_inputs_stay(options)
        folder.check()
    look_at_inputs(options, problems, needs_classifier=True)
    problems.tell(folder)
    observer.stage(f"Looking at {options.model}")
    found = find_fine_tuned(options.model, None)
    start = ExportedFrom(found, folder, read_vocabulary_texts(options, pair=found.task.pair))
    for check in (_check_form, _check_precision):
        with problems.collected():
            check(options, start)
    problems.tell(folder)
    folder.check_room(round(PARAMETER_BYTES * matrix_parameters(start.config)))
    return start


def _check_form(options: ExportConfig, start: ExportedFrom) -> None:
    from compress.onnx_graph import check_opset
    from compress.standard_shape import standard_config

    if options.format == "transformers":
        standard_config(start.config)
    elif options.opset is not None:
        check_opset(options.opset)


def _check_precision(options: ExportConfig, start: ExportedFrom) -> None:
    from compress.runtimes import why_unavailable

    if options.precision == "fp16" and (why := why_unavailable("onnx-fp16", "cuda")):
        raise ExportError(
            f"--precision fp16 is for GPUs, where it has to be proven: {why}. On a CPU ONNX Runtime would "
            "convert to fp32 and back at every step; use --precision int8 to be faster there"
        )


def read_inputs(options: ExportConfig, start: ExportedFrom, observer: Observer) -> ExportInputs:
    """The data, labels matched by name, and the model with the scores it has in torch.

    There are always evaluation rows: without a split for them some are cut from train, those that were cut
    when the model was trained.

    Raises:
        ConfigError, DataError, CheckpointError: all that is wrong of a kind.
    """
    from encoder.checkpoint import load_classifier

    found = start.found
    observer.stage(f"Reading {options.data}")
    data = read_evaluation_data(found, options.data, data_options(options, found.result))
    observer.data(data.report)
    names = [name for name in REPORTED if name in data.splits]
    if options.precision == "fp32":  # nothing is chosen by scores
        names = names[:1]
    splits = tokenize(data, found.tokenizer, max_length=found.max_length, names=names, observer=observer)
    model = load_classifier(found.folder)
    before = {}
    for name in names:
        observer.stage(f"Scoring the {name} rows in torch")
        before[name] = score_split(model, splits.rows[name], device="cpu", observer=observer)
    return ExportInputs(start, data, splits, model, found.tokenizer, before)
