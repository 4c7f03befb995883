"""int8: the matrix products of an ONNX graph in 8 bits, scales for activations found at run time."""

import logging
from pathlib import Path

from compress.machine import cpu_flags
from encoder.errors import ExportError

# With one of these an 8-bit product adds up in 32 bits. Without, pairs of products add up in 16 and can
# overflow.
EXACT_INT8 = {"avx512_vnni", "avx_vnni", "amx_int8", "asimddp", "i8mm"}


def int8_is_exact() -> bool:
    """Whether this CPU adds up 8-bit products without saturating."""
    return not EXACT_INT8.isdisjoint(cpu_flags())


def quantize_dynamic(source: Path, target: Path, *, reduce_range: bool | None = None) -> None:
    """Write the graph of ``source`` to ``target`` with int8 weights, one scale for each output channel.

    Products of two activations, in attention, and the embedding tables stay float32. ``reduce_range`` uses 7
    of the 8 bits for weights, so that a CPU that saturates cannot; by default where this CPU is such a one.

    Raises:
        ExportError: ONNX Runtime cannot quantize the graph.
    """
    from onnx.checker import ValidationError
    from onnxruntime.quantization import QuantType
    from onnxruntime.quantization import quantize_dynamic as quantize

    if reduce_range is None:
        reduce_range = not int8_is_exact()
    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.ERROR)  # it advises a preprocessing step that does nothing for this graph
    try:
        quantize(
            str(source),
            str(target),
            op_types_to_quantize=["MatMul"],
            per_channel=True,
            reduce_range=reduce_range,
            weight_type=QuantType.QInt8,
            extra_options={"MatMulConstBOnly": True},
        )
    except (OSError, RuntimeError, ValueError, ValidationError) as error:
        raise ExportError(f"{source}: ONNX Runtime cannot quantize this graph: {error}") from error
    finally:
        root.setLevel(level)
