"""A model as an ONNX graph in a folder that works alone: written in the form and precision asked for."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compress.deployed import ACTIVATIONS, Export, write_deployed
from compress.machine import cpu_flags
from encoder.errors import ExportError
from recipes.export_config import ExportConfig
from recipes.export_inputs import ExportInputs
from recipes.observer import Observer


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
    from compress.onnx_graph import OPSET, graph_inputs, possible_form
    from compress.quantization import int8_is_exact

    task, tokenizer = inputs.model.task, inputs.tokenizer
    export = Export(
        form=possible_form(inputs.model.config, options.graph),
        precision=options.precision,
        opset=options.opset or OPSET,
        inputs=graph_inputs(inputs.model.config),
        activation=ACTIVATIONS[task.kind],
        max_length=inputs.start.found.max_length,
        truncation_side=tokenizer.truncation_side,
        segments=tokenizer.uses_token_types,
        cpu_flags=cpu_flags(),
        exact_int8_needed=options.precision == "int8" and not options.any_cpu and int8_is_exact(),
    )
    write_deployed(folder, proto, inputs.model, tokenizer, export)
    return export


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{amount} × {name}" for name, amount in counts.items()) or "no fused operator"
