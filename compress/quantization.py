"""int8: the matrix products of an ONNX graph in 8 bits."""

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from compress.calibration import activation_ranges
from compress.machine import cpu_flags
from compress.quantized_graph import Int8Rewriter
from encoder.rows import TokenizedRows

if TYPE_CHECKING:
    from onnx import ModelProto

# With one of these an 8-bit product adds up in 32 bits. Without, pairs of products add up in 16 and can
# overflow.
EXACT_INT8 = {"avx512_vnni", "avx_vnni", "amx_int8", "asimddp", "i8mm"}
LARGEST_EXACT, LARGEST_REDUCED = 127, 63


def int8_is_exact() -> bool:
    """Whether this CPU adds up 8-bit products without saturating."""
    return not EXACT_INT8.isdisjoint(cpu_flags())


def largest_weight(reduce_range: bool | None = None) -> int:
    """The largest 8-bit weight; ``reduce_range`` uses 7 of the 8 bits, so that a CPU that saturates cannot.

    By default where this CPU is such a one.
    """
    if reduce_range is None:
        reduce_range = not int8_is_exact()
    return LARGEST_REDUCED if reduce_range else LARGEST_EXACT


def quantize_dynamic(
    graph: "ModelProto",
    *,
    keep_float: Collection[str] = (),
    embeddings: bool = False,
    reduce_range: bool | None = None,
) -> "ModelProto":
    """``graph`` with int8 linear layers, a scale for each output channel; activations are scaled at run time.

    Products of two activations, in attention, stay float32; so do the parts ``keep_float``, dotted names of
    modules such as ``encoder.layers.0.attention``. ``embeddings``: the word and position tables too, with a
    scale for each row. ``reduce_range``: see ``largest_weight``.
    """
    rewriter = Int8Rewriter(graph, keep_float=keep_float, largest=largest_weight(reduce_range))
    return rewriter.rewrite(embeddings=embeddings)


def quantize_static(
    graph: "ModelProto",
    rows: TokenizedRows,
    *,
    keep_float: Collection[str] = (),
    embeddings: bool = False,
    reduce_range: bool | None = None,
    threads: int = 1,
) -> "ModelProto":
    """As ``quantize_dynamic``, with the scales of activations fixed by ``rows`` beforehand.

    Nothing has to be looked up at run time, and what else is in a batch cannot change a row's logits.
    """
    quantize = static_quantizer(
        graph, rows, embeddings=embeddings, reduce_range=reduce_range, threads=threads
    )
    return quantize(keep_float)


def static_quantizer(
    graph: "ModelProto",
    rows: TokenizedRows,
    *,
    embeddings: bool = False,
    reduce_range: bool | None = None,
    threads: int = 1,
) -> Callable[[Collection[str]], "ModelProto"]:
    """``quantize_static`` as a function of ``keep_float`` alone; the ranges are found once, here."""
    ranges = activation_ranges(graph, rows, threads=threads)
    largest = largest_weight(reduce_range)

    def quantize(keep_float: Collection[str]) -> "ModelProto":
        rewriter = Int8Rewriter(graph, keep_float=keep_float, largest=largest, ranges=ranges)
        return rewriter.rewrite(embeddings=embeddings)

    return quantize
