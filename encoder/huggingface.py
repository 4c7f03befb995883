"""Everything Hugging-Face-shaped: families, config keys, parameter names and their legacy spellings.

Nothing outside this module and those it is made of (``huggingface_spelling``, ``huggingface_bert``,
``huggingface_modernbert``) knows how another library spells a model. Parameter names are translated by a
table per family; a fused parameter of ours (``qkv``) may be the concatenation of several of theirs.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

import pydantic

from encoder import huggingface_bert, huggingface_modernbert
from encoder.config import EncoderConfig, Family
from encoder.errors import CheckpointError, did_you_mean
from encoder.huggingface_spelling import ACTIVATIONS
from encoder.task import Task, TaskKind

OWN_FAMILY = "enc"
ROBERTA_LIKE = huggingface_bert.ROBERTA_LIKE
SPELLINGS = huggingface_bert.SPELLINGS | {"modernbert": huggingface_modernbert.SPELLING}
FAMILIES: tuple[Family, ...] = tuple(SPELLINGS)

_PROBLEM_TYPE: dict[TaskKind, str] = {
    "single_label": "single_label_classification",
    "multi_label": "multi_label_classification",
    "regression": "regression",
}


# ---- config.json ------------------------------------------------------------------------------------------


def check_family(raw: Mapping[str, Any], where: str) -> Family:
    """The family named by a config.json, or a CheckpointError that lists the supported ones."""
    family = raw.get("model_type")
    if family in FAMILIES or family == OWN_FAMILY:
        return cast(Family, family)
    supported = ", ".join(FAMILIES)
    if family is None:
        raise CheckpointError(f"{where}: no 'model_type'; expected one of {supported}")
    raise CheckpointError(
        f"{where}: model family {family!r} is not supported; supported are {supported}"
        f"{did_you_mean(str(family), FAMILIES)}"
    )


def config_from_json(raw: Mapping[str, Any], where: str) -> EncoderConfig:
    """The encoder that a config.json describes. ``where`` names the file in errors."""
    family = check_family(raw, where)
    with _explained(where):
        if family == OWN_FAMILY:
            return EncoderConfig.model_validate(raw["enc"]["encoder"])
        _refuse_unsupported(raw, where)
        return SPELLINGS[family].read(raw)


@contextmanager
def _explained(where: str) -> Iterator[None]:
    """What is wrong in the config.json ``where``, as a CheckpointError."""
    try:
        yield
    except KeyError as error:
        raise CheckpointError(f"{where}: the key {error} is missing") from error
    except pydantic.ValidationError as error:
        problems = [f"{where}: {'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()]
        raise CheckpointError.from_problems(problems) from error
    except (TypeError, ValueError, AttributeError) as error:
        raise CheckpointError(f"{where}: a value is not of the kind expected: {error}") from error


def _refuse_unsupported(raw: Mapping[str, Any], where: str) -> None:
    problems = []
    if raw.get("is_decoder") or raw.get("add_cross_attention"):
        problems.append(f"{where}: this is a decoder; only encoders are supported")
    kind = raw.get("position_embedding_type", "absolute")
    if kind not in ("absolute", None):
        problems.append(f"{where}: position_embedding_type {kind!r} is not supported; expected 'absolute'")
    spelling = SPELLINGS[raw["model_type"]]
    activation = raw.get(spelling.activation_key, "gelu")
    if activation not in ACTIVATIONS:
        supported = ", ".join(ACTIVATIONS)
        problems.append(f"{where}: activation {activation!r} is not supported; supported are {supported}")
    if raw.get("pruned_heads"):
        problems.append(f"{where}: 'pruned_heads' of old Transformers is not supported; prune with enc")
    if quantization := raw.get("quantization_config"):
        method = quantization.get("quant_method", "unknown")
        problems.append(f"{where}: quantized weights ({method}) are not supported; use the model in float")
    problems += spelling.problems(raw, where)
    if problems:
        raise CheckpointError.from_problems(problems)


def task_from_json(raw: Mapping[str, Any], where: str) -> Task | None:
    """The task of a classifier's config.json; None when it describes an encoder without a classifier."""
    with _explained(where):
        if "task" in (raw.get("enc") or {}):
            return Task.model_validate(raw["enc"]["task"])
        if not any(name.endswith("ForSequenceClassification") for name in raw.get("architectures") or ()):
            return None
        unnamed = {i: f"LABEL_{i}" for i in range(raw.get("num_labels", 2))}
        id2label = {int(i): str(name) for i, name in (raw.get("id2label") or unnamed).items()}
        labels = tuple(id2label[i] for i in sorted(id2label))
        kinds = {problem: kind for kind, problem in _PROBLEM_TYPE.items()}
        kind = kinds.get(raw.get("problem_type") or "", "regression" if len(labels) == 1 else "single_label")
        return Task(kind=kind, labels=() if kind == "regression" else labels)


def config_to_json(config: EncoderConfig, task: Task | None) -> dict[str, Any]:
    """config.json of a classifier, or of a masked language model where there is no ``task``.

    It has the family's own keys where its shape is one the family can express.

    Any other shape (heads pruned, attention residuals, …) is written as model_type ``enc``, so that a library
    which would misread it refuses it by name instead.
    """
    raw: dict[str, Any] = {"dtype": "float32", "pad_token_id": config.pad_token_id, "enc": {}}
    if task is not None:
        labels = task.labels or ("LABEL_0",)
        raw |= {
            "id2label": {str(i): label for i, label in enumerate(labels)},
            "label2id": {label: i for i, label in enumerate(labels)},
            "problem_type": _PROBLEM_TYPE[task.kind],
            "enc": {"task": task.model_dump(mode="json")},
        }
    if not is_standard(config):
        raw["model_type"] = OWN_FAMILY
        raw["enc"]["encoder"] = config.model_dump(mode="json")
        return raw
    spelling = SPELLINGS[config.family]
    raw["model_type"] = config.family
    purpose = "MaskedLM" if task is None else "SequenceClassification"
    raw["architectures"] = [f"{spelling.architecture}For{purpose}"]
    raw["vocab_size"] = config.vocab_size
    raw["max_position_embeddings"] = config.max_position_embeddings
    raw["initializer_range"] = config.initializer_range
    return raw | spelling.write(config)


def why_not_in_family(config: EncoderConfig) -> str | None:
    """Why the family's own keys cannot express this kind of encoder, layers taken as whole and equal."""
    if config.family not in FAMILIES:
        return f"its family {config.family!r} is enc's own"
    return SPELLINGS[config.family].why_not(config)


def is_standard(config: EncoderConfig) -> bool:
    """Whether the family's own config keys can express this shape: its kind, in whole and equal layers."""
    shape = config.layers[0]
    sizes = {(layer.heads, layer.head_size, layer.intermediate_size) for layer in config.layers}
    return (
        why_not_in_family(config) is None
        and len(sizes) == 1
        and shape.heads == tuple(range(shape.num_attention_heads))
        and shape.num_attention_heads * shape.head_size == config.hidden_size
        and shape.intermediate_size > 0
    )


# ---- parameter names --------------------------------------------------------------------------------------


def parameter_names(config: EncoderConfig) -> dict[str, tuple[str, ...]]:
    """For each of our modules, the standard names of the modules whose rows it holds, top to bottom.

    Both sides are module paths without ``.weight`` / ``.bias``. Only for an ``is_standard`` config.
    """
    return SPELLINGS[config.family].names(config)


def unused_layers(names: Iterable[str], config: EncoderConfig) -> list[str]:
    """Of standard ``names``, those of layers (or parts of layers) that an encoder of this config lacks."""
    spelling = SPELLINGS[config.family]
    known = {part for parts in parameter_names(config).values() for part in parts}
    layers = spelling.prefix + spelling.layers
    return [name for name in names if name.startswith(layers) and name.rpartition(".")[0] not in known]


def modern_name(name: str) -> str:
    """A parameter's present spelling: ``LayerNorm.gamma`` and ``.beta`` became ``.weight`` and ``.bias``.

    Only a last component under a module named LayerNorm is renamed, never another parameter with such a name.
    """
    for old, new in (("LayerNorm.gamma", "LayerNorm.weight"), ("LayerNorm.beta", "LayerNorm.bias")):
        if f".{name}".endswith(f".{old}"):
            return name.removesuffix(old) + new
    return name


def with_prefix(names: Iterable[str], config: EncoderConfig) -> dict[str, str]:
    """Checkpoint names → standard names: a bare encoder saved without the family's prefix gets it back."""
    spelling = SPELLINGS[config.family]
    modern = {name: modern_name(name) for name in names}
    if any(name.startswith(spelling.prefix) for name in modern.values()):
        return modern
    return {
        raw: spelling.prefix + name if name.startswith(spelling.bare) else name
        for raw, name in modern.items()
    }
