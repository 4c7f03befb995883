"""MODEL_CARD.md: what an exported model is, how good and how fast, where it comes from, how to run it."""

from collections.abc import Iterator
from typing import Any

from compress.latency import Latency
from encoder.task import in_words
from encoder.wording import counted
from recipes.export_result import ExportResult
from recipes.result import Result

MANY_LABELS = 20


def make_card(result: Result) -> str:
    """The text of the card of the export that ``result`` describes."""
    assert result.export is not None
    parts = [
        _title(result, result.export),
        *_how_to_run(result, result.export),
        *_scores(result, result.export),
        *_speed_and_size(result, result.export),
        *_lineage(result),
    ]
    return "\n\n".join(parts) + "\n"


def _title(result: Result, export: ExportResult) -> str:
    model = result.model
    name = (result.output or model.source).rstrip("/").rpartition("/")[2]
    what = {
        "single_label": "gives one label a text",
        "multi_label": "gives any number of labels a text",
        "regression": "gives a number a text",
    }[model.task].replace("a text", "a pair of texts" if model.pair else "a text")
    shown = [f"`{label}`" for label in model.labels[:MANY_LABELS]]
    more = f", … ({len(model.labels)} in all)" if len(model.labels) > MANY_LABELS else ""
    labels = f"\n\nLabels, in the order of the logits: {', '.join(shown)}{more}." if shown else ""
    failed = "".join(f"\n\n**Failed, not to be used:** {sentence}." for sentence in export.failures)
    return (
        f"# {name}\n\nA classifier ({in_words(model.task)}) that {what}. {model.family}, "
        f"{counted(model.num_hidden_layers, 'layer')}, hidden size {model.hidden_size}; texts are cut after "
        f"{model.max_length} tokens.{labels}{failed}"
    )


def _how_to_run(result: Result, export: ExportResult) -> Iterator[str]:
    yield "## How to run it"
    if export.format == "transformers":
        yield (
            "A standard folder: `AutoModelForSequenceClassification.from_pretrained(FOLDER)` of Transformers "
            "5 opens it, and so does every command of enc. Heads and neurons that were removed are zeros in "
            "it, so it is as big and as slow as before they were; export to ONNX to have the gain."
        )
        return
    texts = '"first text" "second text"' if result.model.pair else '"a text" "another text"'
    yield (
        f"```\npython example.py {texts}      # needs onnxruntime, tokenizers and numpy, nothing else\n"
        f"enc predict FOLDER {texts}\nsha256sum -c SHA256SUMS      # is it what was proven?\n```"
    )
    width = f"{len(result.model.labels)} labels" if result.model.labels else "1"
    yield (
        f"`model.onnx`: opset {export.opset}, {export.form} graph, {export.precision}. Inputs, by name, "
        f"int64 [batch, sequence]: {', '.join(f'`{name}`' for name in export.inputs)}. Output: `logits` "
        f"float32 [batch, {width}]; apply {export.activation}. Batch and sequence may have any size up to "
        f"{result.model.max_length} tokens, padding may be anywhere. `config.json` has it all under `enc`."
    )


def _scores(result: Result, export: ExportResult) -> Iterator[str]:
    yield "## Scores"
    metrics = list(next(iter(result.scores.values()), {}))
    lines = [
        f"| rows | {' | '.join(metrics)} | 95% interval of {result.main_metric} |",
        f"| --- |{' --- |' * (len(metrics) + 1)}",
    ]
    for split, scores in result.scores.items():
        count = result.data.report.splits[split].rows
        for name, values, found in (
            ("before, in torch", export.before[split], None),
            ("this model", scores, result.intervals.get(split)),
        ):
            cells = ["–" if values[metric] is None else f"{values[metric]:.4f}" for metric in metrics]
            interval = "" if found is None else f"{found.low:.4f}–{found.high:.4f}"
            lines.append(f"| {split} ({count:,}), {name} | {' | '.join(cells)} | {interval} |")
    yield "\n".join(lines)
    yield from (f"{sentence}." for sentence in _proof(result, export))
    if export.kept_in_float:
        yield f"In float, because 8 bits would have cost too much there: {', '.join(export.kept_in_float)}."


def _proof(result: Result, export: ExportResult) -> Iterator[str]:
    for split, one in export.parity.items():
        same = "" if one.agreement is None else f", {one.agreement:.2%} of the rows with the same labels"
        difference = "not finite" if one.max_difference is None else f"{one.max_difference:.1e} at most"
        in_torch = result.compress is not None and result.compress.folder is not None
        other = "the model in `torch`" if in_torch else "the model before"
        yield (
            f"Against {other}, on the {one.rows:,} {split} rows of {result.data.source} in batches "
            f"of {export.batch_size}, by a process that had loaded this folder only: logits differ by "
            f"{difference}{same}"
        )


def _speed_and_size(result: Result, export: ExportResult) -> Iterator[str]:
    yield "## Speed and size"
    lines = ["| | before, in torch | this model | |", "| --- | --- | --- | --- |"]
    for speedup in export.speedups:
        times = [
            next(
                (
                    f"{one.p50_ms:.2f} ms"
                    for one in latencies
                    if isinstance(one, Latency) and (one.device, one.shape) == (speedup.device, speedup.shape)
                ),
                "–",
            )
            for latencies in (export.latency_before, result.latency)
        ]
        lines.append(
            f"| {speedup.device}, {speedup.shape}, p50 | {times[0]} | {times[1]} | {speedup.speedup} |"
        )
    if result.size is not None:
        sizes = (export.size_before.bytes_on_disk, result.size.bytes_on_disk)
        lines.append(f"| on disk | {sizes[0] / 1e6:.1f} MB | {sizes[1] / 1e6:.1f} MB | |")
    yield "\n".join(lines)
    measured = next((one for one in result.latency if isinstance(one, Latency)), None)
    if measured is not None:
        threads = f", {measured.threads} thread{'' if measured.threads == 1 else 's'}"
        flags = ", ".join(result.machine.cpu_flags)
        yield f"Measured on {measured.device_name}{threads} (flags: {flags or 'none that matter'})."
    latencies = [one for one in (*export.latency_before, *result.latency) if isinstance(one, Latency)]
    if not all(one.is_reliable for one in latencies):
        yield "Other work on that machine disturbed the measurement of time: do not rely on it."


def _lineage(result: Result) -> Iterator[str]:
    yield "## Where it comes from"
    lines = [f"1. {result.created:%Y-%m-%d}: `enc {result.command}` made this folder."]
    parent = None if result.parent is None else result.parent.model_dump(mode="json")
    while parent is not None:
        lines.append(f"{len(lines) + 1}. {_ancestor(parent)}")
        parent = (parent.get("run") or {}).get("parent")
    yield "Newest first:\n\n" + "\n".join(lines)
    yield (
        f"Proven on {result.data.source} (fingerprint `{result.data.fingerprint[:16]}`). SHA-256 of config "
        f"and weights: `{result.model.sha256}`. `run.json` has every number and option."
    )


def _ancestor(parent: dict[str, Any]) -> str:
    run = parent.get("run") or {}
    made = (
        f", made by `enc {run['command']}` ({str(run.get('created', ''))[:10]})" if "command" in run else ""
    )
    return f"`{parent.get('source')}`{made}, SHA-256 `{str(parent.get('sha256'))[:16]}…`."
