"""Claims about sizes that are told before a model is there."""

import itertools

import numpy as np
import pytest

from compress.deployed import Export, write_deployed
from compress.half_precision import to_fp16
from compress.onnx_graph import build_graph, graph_inputs
from compress.planned_size import count_parameters, folder_bytes, graph_folder_bytes, weights_bytes
from compress.quantization import quantize_static
from compress.removal import keep_layers, keep_units
from compress.size import bytes_on_disk
from encoder.checkpoint import save_classifier
from encoder.config import EncoderConfig, LayerShape
from encoder.model import Classifier, initialise_
from encoder.model_folder import read_config, read_tokenizer
from encoder.rows import TokenizedRows
from encoder.task import Task
from tests.compress.conftest import BLOCKS

TASK = Task(kind="single_label", labels=("one", "zwei", "três"))


def make(config):
    model = Classifier(config, TASK)
    initialise_(model, config, 0)
    return model.eval()


@pytest.fixture(scope="module")
def tokenizer(tiny_model):
    return read_tokenizer(tiny_model)


@pytest.fixture(scope="module")
def config(tiny_model):
    return read_config(tiny_model)


def shapes(config):
    """A standard model, a pruned one, one of fewer layers, a RoBERTa of other sizes, and one with all that
    ModernBERT has and mixes over depth."""
    whole = make(config)
    heads = keep_units(whole, "heads", [[0, 2], [], [0, 1, 2, 3]])
    neurons = keep_units(heads, "neurons", [list(range(7)), list(range(64)), []])
    shape = LayerShape(heads=tuple(range(4)), head_size=16, intermediate_size=200)
    other = config.model_copy(
        update={
            "family": "roberta", "hidden_size": 64, "embedding_size": 64, "layers": (shape,) * 11,
            "type_vocab_size": 1, "position_offset": 2, "pad_token_id": 1, "vocab_size": 1000,
            "max_position_embeddings": 130,
        }
    )  # fmt: skip
    return {
        "whole": whole,
        "pruned": neurons,
        "two layers": keep_layers(whole, [0, 2]),
        "roberta": make(other),
        "blocks": make(EncoderConfig(**config.model_dump() | BLOCKS | {"max_position_embeddings": 700})),
    }


@pytest.mark.parametrize("name", ["whole", "pruned", "two layers", "roberta", "blocks"])
def test_a_folder_with_weights_has_exactly_the_size_that_its_shape_tells(name, config, tokenizer, tmp_path):
    model = shapes(config)[name]
    save_classifier(model, tokenizer, tmp_path)
    assert weights_bytes(model.config, TASK) == (tmp_path / "model.safetensors").stat().st_size
    assert folder_bytes(model.config, TASK, tokenizer) == bytes_on_disk(tmp_path)
    assert count_parameters(model.config, TASK) == sum(one.numel() for one in model.parameters())


def rows(model, number=40, seed=0):
    draw = np.random.default_rng(seed)
    lengths = draw.integers(3, 20, number)
    ids = draw.integers(5, 40, int(lengths.sum()), dtype=np.int32)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return TokenizedRows(ids, np.zeros(len(ids), dtype=np.int8), offsets, None)


@pytest.mark.parametrize("precision", ["fp32", "fp16", "int8"])
@pytest.mark.parametrize(
    ("name", "form"),
    [
        *itertools.product(("whole", "pruned", "roberta"), ("portable", "fused")),
        ("blocks", "portable"),
    ],
)
def test_an_exported_folder_is_as_big_as_its_shape_tells_within_the_promise(
    name, form, precision, config, tokenizer, tmp_path
):
    model = shapes(config)[name]
    export = Export(
        form=form, precision=precision, opset=17, inputs=graph_inputs(model.config), activation="softmax",
        max_length=60, truncation_side="right", segments=True, cpu_flags=("avx2",),
    )  # fmt: skip
    graph = build_graph(model, form=form, opset=17)
    if precision == "fp16":
        graph = to_fp16(graph)
    if precision == "int8":
        graph = quantize_static(graph, rows(model), embeddings=True)
    write_deployed(tmp_path, graph, model, tokenizer, export)
    written = bytes_on_disk(tmp_path)
    told = graph_folder_bytes(model.config, TASK, tokenizer, export)
    assert abs(told - written) <= max(4000, written / 1000)
