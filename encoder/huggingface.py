"""Everything Hugging-Face-shaped: families, config keys, parameter names and their legacy spellings.

Nothing outside this module knows how another library spells a model. Parameter names are translated by a
table per family; a fused parameter of ours (``qkv``) is the concatenation of several of theirs.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

import pydantic

from encoder.config import Activation, ClassifierConfig, EncoderConfig, Family, LayerShape
from encoder.errors import CheckpointError, did_you_mean
from encoder.task import Task, TaskKind

OWN_FAMILY = "enc"
ROBERTA_LIKE = ("roberta", "xlm-roberta", "camembert")
FAMILIES: tuple[Family, ...] = ("bert", "roberta", "xlm-roberta", "camembert", "distilbert", "electra")

_ARCHITECTURE = {
    "bert": "Bert",
    "roberta": "Roberta",
    "xlm-roberta": "XLMRoberta",
    "camembert": "Camembert",
    "distilbert": "DistilBert",
    "electra": "Electra",
}
_PREFIX = {family: "roberta." if family in ROBERTA_LIKE else f"{family}." for family in FAMILIES}
_ACTIVATIONS: dict[str, Activation] = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
}
_HF_ACTIVATION = {"gelu": "gelu", "gelu_tanh": "gelu_pytorch_tanh", "relu": "relu", "silu": "silu"}
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
        return _distilbert_config(raw) if family == "distilbert" else _bert_like_config(raw, family)


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
    activation = raw.get("activation" if raw["model_type"] == "distilbert" else "hidden_act", "gelu")
    if activation not in _ACTIVATIONS:
        supported = ", ".join(_ACTIVATIONS)
        problems.append(f"{where}: activation {activation!r} is not supported; supported are {supported}")
    if raw.get("pruned_heads"):
        problems.append(f"{where}: 'pruned_heads' of old Transformers is not supported; prune with enc")
    if quantization := raw.get("quantization_config"):
        method = quantization.get("quant_method", "unknown")
        problems.append(f"{where}: quantized weights ({method}) are not supported; use the model in float")
    if problems:
        raise CheckpointError.from_problems(problems)


def _layers(hidden_size: int, heads: int, intermediate_size: int, count: int) -> tuple[LayerShape, ...]:
    for name, value in (
        ("hidden size", hidden_size),
        ("number of heads", heads),
        ("number of layers", count),
    ):
        if not isinstance(value, int):
            raise TypeError(f"the {name} is {value!r}; expected a whole number")
    if heads < 1 or hidden_size % heads:
        raise CheckpointError(f"hidden_size {hidden_size} is not a multiple of num_attention_heads {heads}")
    shape = LayerShape(
        heads=tuple(range(heads)), head_size=hidden_size // heads, intermediate_size=intermediate_size
    )
    return (shape,) * count


def _bert_like_config(raw: Mapping[str, Any], family: Family) -> EncoderConfig:
    roberta = family in ROBERTA_LIKE
    pad = raw.get("pad_token_id")
    pad = (1 if roberta else 0) if pad is None else pad
    dropout = raw.get("hidden_dropout_prob", 0.1)
    head_dropout = raw.get("classifier_dropout")
    return EncoderConfig(
        family=family,
        vocab_size=raw["vocab_size"],
        hidden_size=raw["hidden_size"],
        embedding_size=raw.get("embedding_size", raw["hidden_size"])
        if family == "electra"
        else raw["hidden_size"],
        max_position_embeddings=raw.get("max_position_embeddings", 512),
        position_offset=pad + 1 if roberta else 0,
        type_vocab_size=raw.get("type_vocab_size", 2),
        pad_token_id=pad,
        layers=_layers(
            raw["hidden_size"], raw["num_attention_heads"], raw["intermediate_size"], raw["num_hidden_layers"]
        ),
        activation=_ACTIVATIONS[raw.get("hidden_act", "gelu")],
        layer_norm_eps=raw.get("layer_norm_eps", 1e-12),
        hidden_dropout=dropout,
        attention_dropout=raw.get("attention_probs_dropout_prob", 0.1),
        initializer_range=raw.get("initializer_range", 0.02),
        classifier=ClassifierConfig(
            activation="gelu" if family == "electra" else "tanh",
            input_dropout=family != "bert",
            dropout=dropout if head_dropout is None else head_dropout,
        ),
    )


def _distilbert_config(raw: Mapping[str, Any]) -> EncoderConfig:
    return EncoderConfig(
        family="distilbert",
        vocab_size=raw["vocab_size"],
        hidden_size=raw["dim"],
        embedding_size=raw["dim"],
        max_position_embeddings=raw.get("max_position_embeddings", 512),
        type_vocab_size=0,
        pad_token_id=raw.get("pad_token_id") or 0,
        layers=_layers(raw["dim"], raw["n_heads"], raw["hidden_dim"], raw["n_layers"]),
        activation=_ACTIVATIONS[raw.get("activation", "gelu")],
        layer_norm_eps=1e-12,
        hidden_dropout=raw.get("dropout", 0.1),
        attention_dropout=raw.get("attention_dropout", 0.1),
        initializer_range=raw.get("initializer_range", 0.02),
        classifier=ClassifierConfig(activation="relu", dropout=raw.get("seq_classif_dropout", 0.2)),
    )


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

    Any other shape (heads pruned, pre-norm, …) is written as model_type ``enc``, so that a library which
    would misread it refuses it by name instead.
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
    shape = config.layers[0]
    raw["model_type"] = config.family
    purpose = "MaskedLM" if task is None else "SequenceClassification"
    raw["architectures"] = [f"{_ARCHITECTURE[config.family]}For{purpose}"]
    raw["vocab_size"] = config.vocab_size
    raw["max_position_embeddings"] = config.max_position_embeddings
    raw["initializer_range"] = config.initializer_range
    if config.family == "distilbert":
        return raw | {
            "dim": config.hidden_size,
            "n_layers": config.num_hidden_layers,
            "n_heads": shape.num_attention_heads,
            "hidden_dim": shape.intermediate_size,
            "activation": _HF_ACTIVATION[config.activation],
            "dropout": config.hidden_dropout,
            "attention_dropout": config.attention_dropout,
            "seq_classif_dropout": config.classifier.dropout,
            "sinusoidal_pos_embds": config.position_embedding == "sinusoidal",
        }
    return raw | {
        "hidden_size": config.hidden_size,
        "embedding_size": config.embedding_size,
        "num_hidden_layers": config.num_hidden_layers,
        "num_attention_heads": shape.num_attention_heads,
        "intermediate_size": shape.intermediate_size,
        "hidden_act": _HF_ACTIVATION[config.activation],
        "type_vocab_size": config.type_vocab_size,
        "layer_norm_eps": config.layer_norm_eps,
        "hidden_dropout_prob": config.hidden_dropout,
        "attention_probs_dropout_prob": config.attention_dropout,
        "classifier_dropout": config.classifier.dropout,
        "position_embedding_type": "absolute",
    }


def is_standard(config: EncoderConfig) -> bool:
    """Whether the family's own config keys can express this shape: whole, equal layers, learned positions."""
    shape = config.layers[0]
    return (
        config.family in FAMILIES
        and config.norm == "post"
        and config.residual == "add"
        and config.position_embedding == "learned"
        and all(layer == shape for layer in config.layers)
        and shape.heads == tuple(range(shape.num_attention_heads))
        and shape.num_attention_heads * shape.head_size == config.hidden_size
        and shape.intermediate_size > 0
    )


# ---- parameter names --------------------------------------------------------------------------------------

# Of a masked language model: the linear layer, the norm, and where the bias of each token is.
_ROBERTA_HEAD = ("lm_head.dense", "lm_head.layer_norm", "lm_head")
_LANGUAGE_HEADS: dict[str, tuple[str, str, str]] = {
    "bert": ("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm", "cls.predictions"),
    "distilbert": ("vocab_transform", "vocab_layer_norm", "vocab_projector"),
    "electra": (
        "generator_predictions.dense",
        "generator_predictions.LayerNorm",
        "generator_lm_head",
    ),
}


def parameter_names(config: EncoderConfig) -> dict[str, tuple[str, ...]]:
    """For each of our modules, the standard names of the modules whose rows it holds, top to bottom.

    Both sides are module paths without ``.weight`` / ``.bias``. Only for an ``is_standard`` config.
    """
    prefix = _PREFIX[config.family]
    names: dict[str, tuple[str, ...]] = {}
    table = _distilbert_names if config.family == "distilbert" else _bert_like_names
    for ours, theirs in table(config.num_hidden_layers).items():
        names[f"encoder.{ours}"] = tuple(prefix + name for name in theirs)
    if config.embedding_size != config.hidden_size:
        names["encoder.embeddings.projection"] = (f"{prefix}embeddings_project",)
    if not config.type_vocab_size:
        names.pop("encoder.embeddings.token_type", None)
    dense, output = {
        "bert": (f"{prefix}pooler.dense", "classifier"),
        "distilbert": ("pre_classifier", "classifier"),
    }.get(config.family, ("classifier.dense", "classifier.out_proj"))
    names |= {"classifier.dense": (dense,), "classifier.output": (output,)}
    dense, norm, bias = _LANGUAGE_HEADS.get(config.family, _ROBERTA_HEAD)
    return names | {"head.dense": (dense,), "head.norm": (norm,), "head": (bias,)}


def _bert_like_names(num_layers: int) -> dict[str, tuple[str, ...]]:
    names: dict[str, tuple[str, ...]] = {
        "embeddings.word": ("embeddings.word_embeddings",),
        "embeddings.position": ("embeddings.position_embeddings",),
        "embeddings.token_type": ("embeddings.token_type_embeddings",),
        "embeddings.norm": ("embeddings.LayerNorm",),
    }
    for i in range(num_layers):
        ours, theirs = f"layers.{i}", f"encoder.layer.{i}"
        names |= {
            f"{ours}.attention.qkv": tuple(
                f"{theirs}.attention.self.{part}" for part in ("query", "key", "value")
            ),
            f"{ours}.attention.output": (f"{theirs}.attention.output.dense",),
            f"{ours}.attention_norm": (f"{theirs}.attention.output.LayerNorm",),
            f"{ours}.feed_forward.intermediate": (f"{theirs}.intermediate.dense",),
            f"{ours}.feed_forward.output": (f"{theirs}.output.dense",),
            f"{ours}.feed_forward_norm": (f"{theirs}.output.LayerNorm",),
        }
    return names


def _distilbert_names(num_layers: int) -> dict[str, tuple[str, ...]]:
    names: dict[str, tuple[str, ...]] = {
        "embeddings.word": ("embeddings.word_embeddings",),
        "embeddings.position": ("embeddings.position_embeddings",),
        "embeddings.norm": ("embeddings.LayerNorm",),
    }
    for i in range(num_layers):
        ours, theirs = f"layers.{i}", f"transformer.layer.{i}"
        names |= {
            f"{ours}.attention.qkv": tuple(f"{theirs}.attention.{part}_lin" for part in ("q", "k", "v")),
            f"{ours}.attention.output": (f"{theirs}.attention.out_lin",),
            f"{ours}.attention_norm": (f"{theirs}.sa_layer_norm",),
            f"{ours}.feed_forward.intermediate": (f"{theirs}.ffn.lin1",),
            f"{ours}.feed_forward.output": (f"{theirs}.ffn.lin2",),
            f"{ours}.feed_forward_norm": (f"{theirs}.output_layer_norm",),
        }
    return names


def unused_layers(names: Iterable[str], config: EncoderConfig) -> list[str]:
    """Of standard ``names``, those of layers (or parts of layers) that an encoder of this config lacks."""
    prefix = _PREFIX[config.family]
    known = {part for parts in parameter_names(config).values() for part in parts}
    layers = (f"{prefix}encoder.layer.", f"{prefix}transformer.layer.")
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
    prefix = _PREFIX[config.family]
    names = list(names)
    modern = {name: modern_name(name) for name in names}
    if any(name.startswith(prefix) for name in modern.values()):
        return modern
    bare = ("embeddings", "encoder.", "transformer.", "pooler.")
    return {raw: prefix + name if name.startswith(bare) else name for raw, name in modern.items()}
