"""BERT and what is spelt like it (RoBERTa, XLM-RoBERTa, CamemBERT, ELECTRA), and DistilBERT."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from encoder.config import ClassifierConfig, EncoderConfig, Family
from encoder.huggingface_spelling import (
    ACTIVATION_NAMES,
    ACTIVATIONS,
    Spelling,
    equal_layers,
    first_of,
    layer_names,
)

ROBERTA_LIKE = ("roberta", "xlm-roberta", "camembert")
# Of a masked language model: the linear layer, the norm, and where the bias of each token is.
_ROBERTA_HEAD = ("lm_head.dense", "lm_head.layer_norm", "lm_head")
_LANGUAGE_HEADS: dict[Family, tuple[str, str, str]] = {
    "bert": ("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm", "cls.predictions"),
    "electra": ("generator_predictions.dense", "generator_predictions.LayerNorm", "generator_lm_head"),
}


# The modules of a layer, ours and theirs.
_LAYER = {
    "attention.qkv": ("attention.self.query", "attention.self.key", "attention.self.value"),
    "attention.output": ("attention.output.dense",),
    "attention_norm": ("attention.output.LayerNorm",),
    "feed_forward.intermediate": ("intermediate.dense",),
    "feed_forward.output": ("output.dense",),
    "feed_forward_norm": ("output.LayerNorm",),
}
_DISTILBERT_LAYER = {
    "attention.qkv": ("attention.q_lin", "attention.k_lin", "attention.v_lin"),
    "attention.output": ("attention.out_lin",),
    "attention_norm": ("sa_layer_norm",),
    "feed_forward.intermediate": ("ffn.lin1",),
    "feed_forward.output": ("ffn.lin2",),
    "feed_forward_norm": ("output_layer_norm",),
}


def _read(family: Family, raw: Mapping[str, Any]) -> EncoderConfig:
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
        layers=equal_layers(
            raw["hidden_size"], raw["num_attention_heads"], raw["intermediate_size"], raw["num_hidden_layers"]
        ),
        activation=ACTIVATIONS[raw.get("hidden_act", "gelu")],
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


def _read_distilbert(raw: Mapping[str, Any]) -> EncoderConfig:
    return EncoderConfig(
        family="distilbert",
        vocab_size=raw["vocab_size"],
        hidden_size=raw["dim"],
        embedding_size=raw["dim"],
        max_position_embeddings=raw.get("max_position_embeddings", 512),
        type_vocab_size=0,
        pad_token_id=raw.get("pad_token_id") or 0,
        layers=equal_layers(raw["dim"], raw["n_heads"], raw["hidden_dim"], raw["n_layers"]),
        activation=ACTIVATIONS[raw.get("activation", "gelu")],
        layer_norm_eps=1e-12,
        hidden_dropout=raw.get("dropout", 0.1),
        attention_dropout=raw.get("attention_dropout", 0.1),
        initializer_range=raw.get("initializer_range", 0.02),
        classifier=ClassifierConfig(activation="relu", dropout=raw.get("seq_classif_dropout", 0.2)),
    )


def _write(config: EncoderConfig) -> dict[str, Any]:
    shape = config.layers[0]
    return {
        "hidden_size": config.hidden_size,
        "embedding_size": config.embedding_size,
        "num_hidden_layers": config.num_hidden_layers,
        "num_attention_heads": shape.num_attention_heads,
        "intermediate_size": shape.intermediate_size,
        "hidden_act": ACTIVATION_NAMES[config.activation],
        "type_vocab_size": config.type_vocab_size,
        "layer_norm_eps": config.layer_norm_eps,
        "hidden_dropout_prob": config.hidden_dropout,
        "attention_probs_dropout_prob": config.attention_dropout,
        "classifier_dropout": config.classifier.dropout,
        "position_embedding_type": "absolute",
    }


def _write_distilbert(config: EncoderConfig) -> dict[str, Any]:
    shape = config.layers[0]
    return {
        "dim": config.hidden_size,
        "n_layers": config.num_hidden_layers,
        "n_heads": shape.num_attention_heads,
        "hidden_dim": shape.intermediate_size,
        "activation": ACTIVATION_NAMES[config.activation],
        "dropout": config.hidden_dropout,
        "attention_dropout": config.attention_dropout,
        "seq_classif_dropout": config.classifier.dropout,
        "sinusoidal_pos_embds": config.position_embedding == "sinusoidal",
    }


def _why_not(config: EncoderConfig) -> str | None:
    classifier = config.classifier
    return first_of(config, {
        "its layers normalise before and not after": config.norm != "post",
        "its sublayers are mixed over depth": config.residual != "add",
        "it has rotary positions": config.position_embedding == "rotary",
        "its positions are sines": config.position_embedding == "sinusoidal",
        "its feed-forward blocks are gated": config.gated,
        "it lacks biases": not (
            config.attention_bias and config.feed_forward_bias and config.norm_bias and classifier.bias
        ),
        "some of its attention is local": any(layer.window is not None for layer in config.layers),
        "its classifier takes the mean over tokens": classifier.pooling != "cls",
        "its classifier has a norm": classifier.norm,
    })  # fmt: skip


def _prefix(family: Family) -> str:
    return "roberta." if family in ROBERTA_LIKE else f"{family}."


def _names(family: Family, config: EncoderConfig) -> dict[str, tuple[str, ...]]:
    prefix = _prefix(family)
    names: dict[str, tuple[str, ...]] = {
        "encoder.embeddings.word": (f"{prefix}embeddings.word_embeddings",),
        "encoder.embeddings.position": (f"{prefix}embeddings.position_embeddings",),
        "encoder.embeddings.token_type": (f"{prefix}embeddings.token_type_embeddings",),
        "encoder.embeddings.norm": (f"{prefix}embeddings.LayerNorm",),
    }
    if config.embedding_size != config.hidden_size:
        names["encoder.embeddings.projection"] = (f"{prefix}embeddings_project",)
    if not config.type_vocab_size:
        del names["encoder.embeddings.token_type"]
    names |= layer_names(config.num_hidden_layers, f"{prefix}encoder.layer.", _LAYER)
    names |= {"classifier.dense": ("classifier.dense",), "classifier.output": ("classifier.out_proj",)}
    if family == "bert":
        names |= {"classifier.dense": (f"{prefix}pooler.dense",), "classifier.output": ("classifier",)}
    dense, norm, bias = _LANGUAGE_HEADS.get(family, _ROBERTA_HEAD)
    return names | {"head.dense": (dense,), "head.norm": (norm,), "head": (bias,)}


def _names_distilbert(config: EncoderConfig) -> dict[str, tuple[str, ...]]:
    prefix = "distilbert."
    names: dict[str, tuple[str, ...]] = {
        "encoder.embeddings.word": (f"{prefix}embeddings.word_embeddings",),
        "encoder.embeddings.position": (f"{prefix}embeddings.position_embeddings",),
        "encoder.embeddings.norm": (f"{prefix}embeddings.LayerNorm",),
    }
    names |= layer_names(config.num_hidden_layers, f"{prefix}transformer.layer.", _DISTILBERT_LAYER)
    return names | {
        "classifier.dense": ("pre_classifier",),
        "classifier.output": ("classifier",),
        "head.dense": ("vocab_transform",),
        "head.norm": ("vocab_layer_norm",),
        "head": ("vocab_projector",),
    }


def _spelling(family: Family, architecture: str) -> Spelling:
    return Spelling(
        architecture=architecture,
        prefix=_prefix(family),
        bare=("embeddings", "encoder.", "pooler."),
        layers="encoder.layer.",
        activation_key="hidden_act",
        read=partial(_read, family),
        write=_write,
        names=partial(_names, family),
        why_not=_why_not,
    )


SPELLINGS: dict[Family, Spelling] = {
    "bert": _spelling("bert", "Bert"),
    "roberta": _spelling("roberta", "Roberta"),
    "xlm-roberta": _spelling("xlm-roberta", "XLMRoberta"),
    "camembert": _spelling("camembert", "Camembert"),
    "distilbert": Spelling(
        architecture="DistilBert",
        prefix="distilbert.",
        bare=("embeddings", "transformer."),
        layers="transformer.layer.",
        activation_key="activation",
        read=_read_distilbert,
        write=_write_distilbert,
        names=_names_distilbert,
        why_not=_why_not,
    ),
    "electra": _spelling("electra", "Electra"),
}
