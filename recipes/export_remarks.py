"""What should be said of an export: where it may go wrong, and whether it was worth it."""

from collections.abc import Iterator

from compress.deployed import Export
from compress.machine import cpu_flags
from recipes.export_config import ExportConfig
from recipes.side_by_side import BothLatencies


def remarks_on(config: ExportConfig, export: Export | None, latency: BothLatencies) -> Iterator[str]:
    """Sentences for the user."""
    if export is not None and export.exact_int8_needed:
        yield (
            "Made for CPUs like this one, which adds up 8-bit products in 32 bits "
            f"({', '.join(exact_int8_flags(export))}). On a CPU without such instructions sums may overflow "
            "and scores fall: --any-cpu makes a graph for all of them."
        )
    what = "the graph" if config.precision == "fp32" else config.precision
    for verdict, words in (("slower", "slower than torch"), ("inside the noise", "not shown to be faster")):
        found = [one for one in latency.speedups if one.verdict == verdict]
        if found:
            shapes = " and ".join(f"batch {one.shape.batch_size} ({one.speedup})" for one in found)
            yield f"Not worth it for speed on {found[0].device} at {shapes}: {what} is {words}."


def exact_int8_flags(export: Export) -> list[str]:
    """Of the flags of the CPU that it was proven on, those that make 8-bit sums exact."""
    from compress.quantization import EXACT_INT8

    return [flag for flag in export.cpu_flags or cpu_flags() if flag in EXACT_INT8]
