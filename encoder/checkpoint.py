"""Classifiers and language models in model folders: their weights read and written.

A folder that enc writes is a standard Hugging Face folder wherever the family can express the model.
"""

from collections.abc import Mapping
from pathlib import Path
from pickle import UnpicklingError

import torch
from torch import Tensor

from encoder import huggingface
from encoder.config import EncoderConfig
from encoder.errors import CheckpointError
from encoder.files import write_atomic, write_json
from encoder.language_model import MaskedLanguageModel
from encoder.model import Classifier, Encoder, initialise_
from encoder.model_folder import (
    CONFIG_FILE,
    INDEX_FILE,
    PICKLE_FILE,
    WEIGHTS_FILE,
    WEIGHTS_FILES,
    read_config,
    read_json,
    read_task,
)
from encoder.task import Task
from encoder.tokenizer import Tokenizer

# What a weight may be stored as. Anything narrower is quantized and means nothing without its scales.
WEIGHT_DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64)


def _read_weights(folder: Path) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        if (folder / WEIGHTS_FILE).exists():
            return load_file(folder / WEIGHTS_FILE)
        if (folder / INDEX_FILE).exists():
            shards = sorted({Path(s).name for s in read_json(folder / INDEX_FILE)["weight_map"].values()})
            return {name: tensor for shard in shards for name, tensor in load_file(folder / shard).items()}
        if (folder / PICKLE_FILE).exists():
            # weights_only: a pickle may otherwise run any code of whoever wrote it
            weights = torch.load(folder / PICKLE_FILE, map_location="cpu", weights_only=True)
            return {name: tensor for name, tensor in weights.items() if isinstance(tensor, Tensor)}
    except UnpicklingError as error:
        raise CheckpointError(
            f"{folder / PICKLE_FILE}: damaged, or holds more than tensors; not loaded"
        ) from error
    except (SafetensorError, OSError, KeyError, RuntimeError, EOFError, ValueError, AttributeError) as error:
        raise CheckpointError(f"{folder}: the weights cannot be read: {error}") from error
    raise CheckpointError(f"{folder}: no weights found; expected {', '.join(WEIGHTS_FILES)}")


def _translate(weights: Mapping[str, Tensor], config: EncoderConfig, where: Path) -> dict[str, Tensor]:
    """Weights under standard names → under ours; pieces of a fused parameter are joined."""
    standard = huggingface.with_prefix(weights, config)
    by_name = {new: weights[old] for old, new in standard.items()}
    if unused := huggingface.unused_layers(by_name, config):
        raise CheckpointError(
            f"{where}: holds weights that config.json has no place for: {', '.join(unused[:3])}"
            f"{' …' if len(unused) > 3 else ''}; is num_hidden_layers ({config.num_hidden_layers}) right?"
        )
    ours: dict[str, Tensor] = {}
    for module, parts in huggingface.parameter_names(config).items():
        for kind in ("weight", "bias"):
            found = [by_name[f"{part}.{kind}"] for part in parts if f"{part}.{kind}" in by_name]
            if len(found) == len(parts):
                ours[f"{module}.{kind}"] = found[0] if len(found) == 1 else torch.cat(found)
    return ours


def load_classifier(folder: Path, *, task: Task | None = None, seed: int = 0) -> Classifier:
    """The classifier in ``folder``, float32 whatever the file holds, in evaluation mode.

    With ``task`` the encoder is loaded for that task: the folder's own classifier is used if its labels are
    the same, whatever their order, otherwise a new one is drawn from ``seed``. ``new_parameters`` of the
    result names what started random. Errors: CheckpointError if weights are missing, or of another shape than
    config.json says.
    """
    config = read_config(folder)
    own_task = read_task(folder)
    if task is None and own_task is None:
        raise CheckpointError(
            f"{folder}: an encoder without a classifier; fine-tune it first: enc finetune --model {folder}"
        )
    wanted = task or own_task
    assert wanted is not None
    weights = _read_weights(folder)
    if huggingface.is_standard(config):
        weights = _translate(weights, config, folder)
    model = Classifier(config, wanted)
    same_classifier = own_task is not None and own_task.has_labels_of(wanted)
    if not same_classifier:
        weights = {
            name: tensor for name, tensor in weights.items() if not name.startswith("classifier.output")
        }
    if not same_classifier:
        initialise_(model.classifier, config, seed)
    _fill_(model, weights, folder, fresh="" if same_classifier else "classifier.")
    if same_classifier and own_task is not None and own_task.labels != wanted.labels:
        order = [own_task.labels.index(label) for label in wanted.labels]
        with torch.no_grad():
            for parameter in model.classifier.output.parameters():  # a row for each label
                parameter.copy_(parameter[order])
    return model.eval()


def load_encoder(folder: Path) -> Encoder:
    """The encoder in ``folder``, whether it has a classifier on it or not; else as ``load_classifier``."""
    # Without one of its own any will do: it is drawn and left behind.
    task = read_task(folder) or Task(kind="regression")
    return load_classifier(folder, task=task).encoder


def load_language_model(folder: Path, *, seed: int = 0) -> MaskedLanguageModel:
    """The masked language model in ``folder``, whose encoder may have another purpose by now.

    A head that is not there is drawn from ``seed``; ``new_parameters`` of the result names what was. Errors
    as in ``load_classifier``.
    """
    config = read_config(folder)
    weights = _read_weights(folder)
    if huggingface.is_standard(config):
        weights = _translate(weights, config, folder)
    model = MaskedLanguageModel(config)
    initialise_(model.head, config, seed)
    _fill_(model, weights, folder, fresh="head.")
    return model.eval()


def _fill_(
    model: Classifier | MaskedLanguageModel, weights: Mapping[str, Tensor], folder: Path, *, fresh: str
) -> None:
    """Copy ``weights`` into ``model``; only names that start with ``fresh`` may lack some, and stay."""
    problems = []
    kept = []
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name not in weights:
                if fresh and name.startswith(fresh):
                    kept.append(name)
                else:
                    problems.append(f"{folder}: the weights of {name} are missing")
            elif weights[name].shape != parameter.shape:
                found, expected = list(weights[name].shape), list(parameter.shape)
                problems.append(f"{folder}: {name} has shape {found}, config.json says {expected}")
            elif weights[name].dtype not in WEIGHT_DTYPES:
                dtype = str(weights[name].dtype).removeprefix("torch.")
                problems.append(
                    f"{folder}: {name} is stored as {dtype}; expected float numbers of 16 bits or more"
                )
            elif not weights[name].isfinite().all():
                problems.append(f"{folder}: {name} holds numbers that are not finite")
            else:
                parameter.copy_(weights[name])
    if problems:
        raise CheckpointError.from_problems(problems)
    model.new_parameters = tuple(kept)


def draw_new_classifier_(model: Classifier, seed: int) -> None:
    """Draw in place what started random in ``model``, as ``load_classifier`` does with ``seed``."""
    found = {
        name: parameter.detach().clone()
        for name, parameter in model.named_parameters()
        if name.startswith("classifier.") and name not in model.new_parameters
    }
    initialise_(model.classifier, model.config, seed)
    with torch.no_grad():
        for name, values in found.items():
            model.get_parameter(name).copy_(values)


def stored_parameters(model: Classifier | MaskedLanguageModel) -> dict[str, Tensor]:
    """The parameters of ``model`` as its file has them: under standard names where its shape is standard."""
    state = {name: parameter.detach() for name, parameter in model.named_parameters()}
    if not huggingface.is_standard(model.config):
        return state
    standard: dict[str, Tensor] = {}
    for module, parts in huggingface.parameter_names(model.config).items():
        for kind in ("weight", "bias"):
            if f"{module}.{kind}" in state:
                pieces = state[f"{module}.{kind}"].chunk(len(parts))
                standard |= {
                    f"{part}.{kind}": piece.clone() for part, piece in zip(parts, pieces, strict=True)
                }
    return standard


def save_classifier(model: Classifier, tokenizer: Tokenizer, folder: Path) -> None:
    """Write config.json, model.safetensors (float32) and the tokenizer into ``folder``, file by file."""
    save_weights(model, model.task, folder)
    tokenizer.save(folder)


def save_language_model(model: MaskedLanguageModel, tokenizer: Tokenizer, folder: Path) -> None:
    """As ``save_classifier``: a folder to fine-tune from, which holds the head too."""
    save_weights(model, None, folder)
    tokenizer.save(folder)


def save_weights(model: Classifier | MaskedLanguageModel, task: Task | None, folder: Path) -> None:
    """Write config.json and model.safetensors (float32) into ``folder``."""
    from safetensors.torch import save

    folder.mkdir(parents=True, exist_ok=True)
    state = {name: p.to("cpu", torch.float32).contiguous() for name, p in stored_parameters(model).items()}
    write_atomic(folder / WEIGHTS_FILE, save(state, metadata={"format": "pt"}))
    write_json(folder / CONFIG_FILE, huggingface.config_to_json(model.config, task))
