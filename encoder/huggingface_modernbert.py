"""ModernBERT (Warner et al. 2024): pre-norm, gated, rotary, local attention between global layers, no biases.

Both spellings are read and written: that of its first checkpoints (``global_attn_every_n_layers``,
``global_rope_theta``, ``local_rope_theta``) and that of Transformers 5 (``layer_types``,
``rope_parameters``).
"""

from collections.abc import Mapping
from typing import Any

from encoder.config import ClassifierConfig, EncoderConfig, LayerShape
from encoder.errors import did_you_mean
from encoder.huggingface_spelling import (
    ACTIVATION_NAMES,
    ACTIVATIONS,
    Spelling,
    equal_layers,
    first_of,
    layer_names,
)

GLOBAL, LOCAL = "full_attention", "sliding_attention"
# What config.json means where it does not say.
THETAS = {GLOBAL: 160_000.0, LOCAL: 10_000.0}
LOCAL_ATTENTION, GLOBAL_EVERY = 128, 3
CLASSIFIER_ACTIVATIONS = ("gelu", "relu", "silu", "tanh")


# The modules of a layer, ours and theirs.
_LAYER = {
    "attention.qkv": ("attn.Wqkv",),
    "attention.output": ("attn.Wo",),
    "attention_norm": ("attn_norm",),
    "feed_forward.intermediate": ("mlp.Wi",),
    "feed_forward.output": ("mlp.Wo",),
    "feed_forward_norm": ("mlp_norm",),
}


def _layer_types(raw: Mapping[str, Any]) -> list[str]:
    every = raw.get("global_attn_every_n_layers", GLOBAL_EVERY)
    alternating = [LOCAL if number % every else GLOBAL for number in range(raw["num_hidden_layers"])]
    return list(raw.get("layer_types") or alternating)


def _thetas(raw: Mapping[str, Any]) -> dict[str, float]:
    """The base of the rotation in global and local layers. No local base of the old spelling: the global."""
    old = {GLOBAL: raw.get("global_rope_theta", THETAS[GLOBAL]), LOCAL: raw.get("local_rope_theta", -1)}
    old[LOCAL] = {None: old[GLOBAL], -1: THETAS[LOCAL]}.get(old[LOCAL], old[LOCAL])
    new = raw.get("rope_parameters") or {}
    return {kind: (new.get(kind) or {}).get("rope_theta", old[kind]) for kind in (GLOBAL, LOCAL)}


def _problems(raw: Mapping[str, Any], where: str) -> list[str]:
    problems = []
    layers = _layer_types(raw)
    for kind in sorted(set(layers) - {GLOBAL, LOCAL}):
        hint = did_you_mean(kind, (GLOBAL, LOCAL))
        problems.append(f"{where}: layer type {kind!r} is not supported{hint}; expected {GLOBAL} or {LOCAL}")
    if len(layers) != raw["num_hidden_layers"]:
        problems.append(f"{where}: {len(layers)} layer_types of {raw['num_hidden_layers']} layers")
    turns = [*(raw.get("rope_parameters") or {}).values(), raw.get("rope_scaling")]
    kinds = {one.get("rope_type", one.get("type", "default")) for one in turns if one}
    problems += [
        f"{where}: rotary positions of the type {kind!r} are not supported; expected 'default'"
        for kind in sorted(kinds - {"default"})
    ]
    activation = raw.get("classifier_activation", "gelu")
    if activation not in CLASSIFIER_ACTIVATIONS:
        supported = ", ".join(CLASSIFIER_ACTIVATIONS)
        problems.append(
            f"{where}: classifier_activation {activation!r} is not supported; supported are {supported}"
        )
    return problems


def _read(raw: Mapping[str, Any]) -> EncoderConfig:
    thetas = _thetas(raw)
    window = raw.get("local_attention", LOCAL_ATTENTION) // 2  # on either side
    shapes = equal_layers(
        raw["hidden_size"], raw["num_attention_heads"], raw["intermediate_size"], raw["num_hidden_layers"]
    )
    layers = [
        LayerShape(
            heads=shape.heads,
            head_size=shape.head_size,
            intermediate_size=shape.intermediate_size,
            window=window if kind == LOCAL else None,
            rope_theta=thetas[kind],
            attention_norm=number > 0,
        )
        for number, (shape, kind) in enumerate(zip(shapes, _layer_types(raw), strict=True))
    ]
    return EncoderConfig(
        family="modernbert",
        vocab_size=raw["vocab_size"],
        hidden_size=raw["hidden_size"],
        embedding_size=raw["hidden_size"],
        max_position_embeddings=raw.get("max_position_embeddings", 8192),
        type_vocab_size=0,
        pad_token_id=raw.get("pad_token_id") or 0,
        layers=tuple(layers),
        norm="pre",
        position_embedding="rotary",
        activation=ACTIVATIONS[raw.get("hidden_activation", "gelu")],
        gated=True,
        attention_bias=raw.get("attention_bias", False),
        feed_forward_bias=raw.get("mlp_bias", False),
        norm_bias=raw.get("norm_bias", False),
        layer_norm_eps=raw.get("norm_eps", 1e-5),
        hidden_dropout=raw.get("mlp_dropout", 0.0),
        attention_dropout=raw.get("attention_dropout", 0.0),
        initializer_range=raw.get("initializer_range", 0.02),
        classifier=ClassifierConfig(
            activation=raw.get("classifier_activation", "gelu"),
            dropout=raw.get("classifier_dropout", 0.0),
            bias=raw.get("classifier_bias", False),
            norm=True,
            pooling=raw.get("classifier_pooling", "cls"),
        ),
    )


def _write(config: EncoderConfig) -> dict[str, Any]:
    kinds = [GLOBAL if layer.window is None else LOCAL for layer in config.layers]
    thetas = THETAS | {
        kind: layer.rope_theta for kind, layer in zip(reversed(kinds), reversed(config.layers), strict=True)
    }
    windows = [layer.window for layer in config.layers if layer.window is not None]
    spacings = [
        every
        for every in range(1, len(kinds) + 1)
        if kinds == [LOCAL if number % every else GLOBAL for number in range(len(kinds))]
    ]
    shape = config.layers[0]
    return {
        "hidden_size": config.hidden_size,
        "num_hidden_layers": config.num_hidden_layers,
        "num_attention_heads": shape.num_attention_heads,
        "intermediate_size": shape.intermediate_size,
        "hidden_activation": ACTIVATION_NAMES[config.activation],
        "norm_eps": config.layer_norm_eps,
        "norm_bias": config.norm_bias,
        "attention_bias": config.attention_bias,
        "mlp_bias": config.feed_forward_bias,
        "attention_dropout": config.attention_dropout,
        "embedding_dropout": config.hidden_dropout,
        "mlp_dropout": config.hidden_dropout,
        "local_attention": 2 * windows[0] if windows else LOCAL_ATTENTION,
        "layer_types": kinds,
        "rope_parameters": {
            kind: {"rope_type": "default", "rope_theta": theta} for kind, theta in thetas.items()
        },
        **({"global_attn_every_n_layers": spacings[0]} if spacings else {}),
        "global_rope_theta": thetas[GLOBAL],
        "local_rope_theta": thetas[LOCAL],
        "classifier_pooling": config.classifier.pooling,
        "classifier_dropout": config.classifier.dropout,
        "classifier_bias": config.classifier.bias,
        "classifier_activation": config.classifier.activation,
        # The numbers that Transformers would take instead are those of another vocabulary.
        **dict.fromkeys(("bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id")),
    }


def _why_not(config: EncoderConfig) -> str | None:
    kinds: dict[bool, set[tuple[int | None, float]]] = {True: set(), False: set()}
    for layer in config.layers:
        kinds[layer.window is None].add((layer.window, layer.rope_theta))
    classifier = config.classifier
    return first_of(config, {
        "its layers normalise after and not before": config.norm != "pre",
        "its sublayers are mixed over depth": config.residual != "add",
        "it has no rotary positions": config.position_embedding != "rotary",
        "its feed-forward blocks are not gated": not config.gated,
        "its embeddings are projected": config.embedding_size != config.hidden_size,
        "it tells segments apart": config.type_vocab_size > 0,
        "its first layer normalises what attention reads": config.layers[0].attention_norm,
        "a layer but the first has no norm before attention": not all(
            layer.attention_norm for layer in config.layers[1:]
        ),
        "its local layers differ in their window, or layers of one kind in their rotation": any(
            len(found) > 1 for found in kinds.values()
        ),
        "its classifier has no norm": not classifier.norm or classifier.input_dropout,
    })  # fmt: skip


def _names(config: EncoderConfig) -> dict[str, tuple[str, ...]]:
    prefix = "model."
    names: dict[str, tuple[str, ...]] = {
        "encoder.embeddings.word": (f"{prefix}embeddings.tok_embeddings",),
        "encoder.embeddings.norm": (f"{prefix}embeddings.norm",),
        "encoder.final_norm": (f"{prefix}final_norm",),
    }
    names |= layer_names(config.num_hidden_layers, f"{prefix}layers.", _LAYER)
    for number, layer in enumerate(config.layers):
        if not layer.attention_norm:
            del names[f"encoder.layers.{number}.attention_norm"]
    return names | {
        "classifier.dense": ("head.dense",),
        "classifier.norm": ("head.norm",),
        "classifier.output": ("classifier",),
        # A language model guesses through the same head.
        "head.dense": ("head.dense",),
        "head.norm": ("head.norm",),
        "head": ("decoder",),
    }


SPELLING = Spelling(
    architecture="ModernBert",
    prefix="model.",
    bare=("embeddings.", "layers.", "final_norm."),
    layers="layers.",
    activation_key="hidden_activation",
    read=_read,
    write=_write,
    names=_names,
    why_not=_why_not,
    problems=_problems,
)
