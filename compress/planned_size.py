"""How big a model that is not there yet will be: bytes on disk from its shape alone.

A folder with weights is known to the byte. A graph is known but for the few bytes in which its sizes are
written: what holds no weights is taken from a graph of the same structure whose matrices are narrow, and the
weights of the real one are added.
"""

import json
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from compress.deployed import Export
from encoder import huggingface
from encoder.config import EncoderConfig
from encoder.task import Task

if TYPE_CHECKING:
    from encoder.model import Classifier
    from encoder.tokenizer import Tokenizer

# What a graph that is only there for its structure has instead of its sizes.
NARROW_ROWS, NARROW_WIDTH, NARROW_NEURONS, NARROW_HEAD = 64, 16, 8, 4
ALIGNED = 8  # safetensors pads its header to a multiple of this
TABLES = ("encoder.embeddings.word.weight", "encoder.embeddings.position.weight")


def blank_classifier(config: EncoderConfig, task: Task) -> "Classifier":
    """A classifier that has shapes and no numbers, and so takes no memory."""
    import torch

    from encoder.model import Classifier

    with torch.device("meta"):
        return Classifier(config, task)


def count_parameters(config: EncoderConfig, task: Task) -> int:
    """All parameters of a classifier."""
    return sum(parameter.numel() for parameter in blank_classifier(config, task).parameters())


def folder_bytes(config: EncoderConfig, task: Task, tokenizer: "Tokenizer") -> int:
    """Bytes on disk of a classifier as ``encoder.checkpoint.save_classifier`` writes it, to the byte."""
    described = huggingface.config_to_json(config, task)
    return weights_bytes(config, task) + _json_bytes(described) + tokenizer_bytes(tokenizer)


def weights_bytes(config: EncoderConfig, task: Task) -> int:
    """Bytes of model.safetensors in float32.

    The file is a length of 8 bytes, a header in JSON padded to whole 8 bytes, and the numbers, tensors in the
    order of their names (the format of safetensors 0.4 and later).
    """
    from encoder.checkpoint import stored_parameters

    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, tensor in sorted(stored_parameters(blank_classifier(config, task)).items()):
        start, end = end, end + 4 * tensor.numel()
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [start, end]}
    text = len(json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode())
    return 8 + -(-text // ALIGNED) * ALIGNED + end


def graph_folder_bytes(
    config: EncoderConfig, task: Task, tokenizer: "Tokenizer", export: Export, *, embeddings: bool = True
) -> int:
    """Bytes on disk of an exported model, within a thousandth or 4 kB.

    ``embeddings``: of int8, whether the word and position tables are in 8 bits too. All linear layers are.
    """
    described = huggingface.config_to_json(config, task)
    described.setdefault("enc", {})["export"] = export.model_dump(mode="json")
    narrow = _narrow(config)
    structure = _graph_bytes(narrow, task, export, embeddings) - _raw_bytes(narrow, task, export, embeddings)
    graph = structure + _raw_bytes(config, task, export, embeddings)
    return graph + _json_bytes(described) + tokenizer_bytes(tokenizer)


def _narrow(config: EncoderConfig) -> EncoderConfig:
    """``config`` with as many layers, heads and kinds of everything, and hardly a weight."""
    layers = tuple(
        shape.model_copy(
            update={
                "head_size": NARROW_HEAD,
                "intermediate_size": min(NARROW_NEURONS, shape.intermediate_size),
            }
        )
        for shape in config.layers
    )
    projected = config.embedding_size != config.hidden_size
    sizes = {
        "vocab_size": NARROW_ROWS,
        "max_position_embeddings": min(config.max_position_embeddings, NARROW_ROWS + config.position_offset),
        "hidden_size": NARROW_WIDTH,
        "embedding_size": NARROW_WIDTH // 2 if projected else NARROW_WIDTH,
        "pad_token_id": min(config.pad_token_id, NARROW_ROWS - 1),
    }
    return config.model_copy(update={"layers": layers, **sizes})


def _graph_bytes(config: EncoderConfig, task: Task, export: Export, embeddings: bool) -> int:
    """Bytes of the graph of a small model, which is made."""
    from compress.half_precision import to_fp16
    from compress.onnx_graph import build_graph
    from compress.quantized_graph import Int8Rewriter, linear_layers
    from encoder.model import Classifier, initialise_

    model = Classifier(config, task)
    initialise_(model, config, 0)
    graph = build_graph(model, form=export.form, opset=export.opset)
    if export.precision == "fp16":
        graph = to_fp16(graph)
    elif export.precision == "int8":
        # Any ranges, all different, as those of real activations are: equal constants are stored once.
        names = sorted(set(linear_layers(graph).values()))
        ranges = {name: (-1 - number / 1000, 1.0) for number, name in enumerate(names)}
        graph = Int8Rewriter(graph, ranges=ranges).rewrite(embeddings=embeddings)
    size: int = graph.ByteSize()
    return size


def _raw_bytes(config: EncoderConfig, task: Task, export: Export, embeddings: bool) -> int:
    """Bytes of the weights in a graph: of 8 bits with a scale for each output, or of a table for each row;
    and of its tables of rotary turns, the cosines and sines of K/2 angles for each position."""
    plain = 2 if export.precision == "fp16" else 4  # of a number that is not in 8 bits
    total = 0
    if config.position_embedding == "rotary":
        turns = {(shape.head_size, shape.rope_theta) for shape in config.layers if shape.heads}
        total += plain * config.max_tokens * sum(head_size for head_size, _ in turns)
    for name, parameter in blank_classifier(config, task).named_parameters():
        if name == "encoder.embeddings.token_type.weight" and config.type_vocab_size == 1:
            continue  # added to the positions
        if export.precision != "int8":
            total += plain * parameter.numel()
        elif name in TABLES if name.startswith("encoder.embeddings") else parameter.ndim == 2:
            small = embeddings or name not in TABLES
            total += parameter.numel() + 4 * len(parameter) if small else plain * parameter.numel()
        else:
            total += plain * parameter.numel()
    return total


def _json_bytes(value: Mapping[str, object]) -> int:
    """Bytes of what ``encoder.files.write_json`` writes."""
    return len((json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode())


@cache
def _saved_bytes(tokenizer: "Tokenizer") -> int:
    with tempfile.TemporaryDirectory(prefix="enc-") as folder:
        tokenizer.save(Path(folder))
        return sum(path.stat().st_size for path in Path(folder).iterdir())


def tokenizer_bytes(tokenizer: "Tokenizer") -> int:
    """Bytes of the files of a tokenizer as it saves itself."""
    return _saved_bytes(tokenizer)
