"""A model as an ONNX graph in a folder that works alone: written in the form and precision asked for."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compress.deployed import ACTIVATIONS, Export, write_deployed
from compress.machine import cpu_flags
from encoder.config import EncoderConfig
from encoder.errors import ExportError
from encoder.task import Task
from recipes.export_config import ExportConfig
from recipes.export_inputs import ExportInputs
from recipes.observer import Observer

if TYPE_CHECKING:
    from encoder.tokenizer import Tokenizer


@dataclass(frozen=True)
class Graph:
    """``proto``, an ``onnx.ModelProto`` with float weights.

    ``fused`` and ``fused_expected`` count ONNX Runtime's own operators: those that are in it, and those that
    the shape of the model calls for.
    """

    proto: Any
    fused: Mapping[str, int] = field(default_factory=dict)
    fused_expected: Mapping[str, int] = field(default_factory=dict)


def make_graph(options: ExportConfig, inputs: ExportInputs, observer: Observer) -> Graph:
    """The graph of the model: fp16 if that is asked for, else fp32.

    Raises:
        ExportError: it does not hold the fused operators that it should.
    """
    from compress.fused_graph import expected_counts, fused_counts, why_not_fused
    from compress.half_precision import to_fp16
    from compress.onnx_graph import build_graph, possible_form

    form = possible_form(inputs.model.config, options.graph)
    if form != options.graph:
        why = why_not_fused(inputs.model.config)
        observer.note(f"The graph is portable, not fused as asked for: {why}.")
    observer.stage(f"Writing the {form} graph")
    proto = build_graph(inputs.model, form=form, opset=options.opset)
    counts = fused_counts(proto)
    expected = expected_counts(inputs.model.config) if form == "fused" else {}
    if counts != expected:
        raise ExportError(f"the graph holds {_listed(counts)}; expected {_listed(expected)}")
    if options.precision == "fp16":
        proto = to_fp16(proto)
    return Graph(proto, counts, expected)


def write_graph_folder(options: ExportConfig, inputs: ExportInputs, proto: Any, folder: Path) -> Export:
    """Write ``proto``, an ``onnx.ModelProto``, with all it needs; returns what config.json says of it."""
    model, max_length = inputs.model, inputs.start.found.max_length
    export = describe_export(options, model.config, model.task, inputs.tokenizer, max_length)
    write_deployed(folder, proto, model, inputs.tokenizer, export)
    return export


def describe_export(
    options: ExportConfig, config: EncoderConfig, task: Task, tokenizer: "Tokenizer", max_length: int
) -> Export:
    """What config.json says of the graph of a model of this shape."""
    from compress.onnx_graph import OPSET, graph_inputs, possible_form
    from compress.quantization import int8_is_exact

    return Export(
        form=possible_form(config, options.graph),
        precision=options.precision,
        opset=options.opset or OPSET,
        inputs=graph_inputs(config),
        activation=ACTIVATIONS[task.kind],
        max_length=max_length,
        truncation_side=tokenizer.truncation_side,
        segments=tokenizer.uses_token_types,
        cpu_flags=cpu_flags(),
        exact_int8_needed=options.precision == "int8" and not options.any_cpu and int8_is_exact(),
    )


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{amount} × {name}" for name, amount in counts.items()) or "no fused operator"
