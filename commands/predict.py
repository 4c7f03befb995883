"""`enc predict`: label texts with a fine-tuned model."""

import csv
import json
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from commands.options import build_config, with_options
from encoder.errors import ConfigError, did_you_mean
from recipes.predict_config import PredictConfig

if TYPE_CHECKING:
    from encoder.task import Task
    from recipes.predict import Predictions
    from recipes.prediction import Prediction

EPILOG = (
    "[bold]Examples[/bold]\n\n"
    'enc predict runs/news "The striker scored twice."\n\n'
    "enc predict runs/news --input articles.csv --format csv > labelled.csv\n\n"
    "cut -f2 articles.tsv | enc predict runs/news | jq -r .label\n\n"
    'enc predict runs/pairs --query "How do I pay?" --candidates answers.txt --top 5'
)
FORMATS = ("table", "jsonl", "csv")
# How much of a text a table on a terminal shows; everywhere else texts are whole.
SHOWN_CHARACTERS = 200


@with_options(PredictConfig)
def predict(
    given: dict[str, Any],
    *,
    output_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="NAME",
            help="What to print: table (default on a terminal), jsonl (default elsewhere) or csv.",
            show_default=False,
            rich_help_panel="Output and machine",
        ),
    ] = None,
) -> None:
    """Label texts: arguments, a file, or lines from stdin."""
    if output_format is not None and output_format not in FORMATS:
        raise ConfigError(
            f"--format is {output_format!r}; expected one of {', '.join(FORMATS)}"
            f"{did_you_mean(output_format, FORMATS)}"
        )
    options = build_config(PredictConfig, given)
    if not options.texts and options.input is None and options.query is None and sys.stdin.isatty():
        raise ConfigError("no texts: give them as arguments, with --input FILE, or pipe lines in")

    from commands.progress import show_progress
    from recipes.predict import predict as run

    with show_progress() as progress:
        made = run(options, lines=sys.stdin.buffer, observer=progress)
        chosen = output_format or ("table" if sys.stdout.isatty() else "jsonl")
        {"table": _print_table, "jsonl": _print_jsonl, "csv": _print_csv}[chosen](made)


def _print_jsonl(made: "Predictions") -> None:
    for chunk in made.rows:
        for one in chunk:
            sys.stdout.write(json.dumps(as_dict(one, made.task), ensure_ascii=False) + "\n")
        sys.stdout.flush()


def as_dict(one: "Prediction", task: "Task") -> dict[str, Any]:
    """A prediction as a JSON object: docs/predict.md describes its keys."""
    row: dict[str, Any] = {"text": one.text}
    if one.text_pair is not None:
        row["text_pair"] = one.text_pair
    if one.score is not None:
        row["score"] = _rounded(one.score)
    if task.kind == "regression":
        return row | {"value": _rounded(one.value or 0.0)}
    if task.kind == "single_label":
        row |= {"label": one.labels[0], "probability": _rounded(max(one.probabilities))}
    else:
        row["labels"] = list(one.labels)
    return row | {"probabilities": dict(zip(task.labels, map(_rounded, one.probabilities), strict=True))}


def _print_csv(made: "Predictions") -> None:
    task = made.task
    texts = ["text", "text_pair"] if task.pair else ["text"]
    answer = {"single_label": "label", "multi_label": "labels", "regression": "value"}[task.kind]
    writer = csv.writer(sys.stdout, lineterminator="\n")
    score = ["score"] if made.ranked else []
    writer.writerow([*texts, *score, answer, *(f"probability_{label}" for label in task.labels)])
    for chunk in made.rows:
        for one in chunk:
            value = "|".join(one.labels) if task.labels else _rounded(one.value or 0.0)
            row: list[object] = [one.text, one.text_pair] if task.pair else [one.text]
            row += [_rounded(one.score or 0.0)] if made.ranked else []
            writer.writerow([*row, value, *map(_rounded, one.probabilities)])
        sys.stdout.flush()


def _print_table(made: "Predictions") -> None:
    """A table a chunk; on a terminal long texts are shortened, and that shows."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from commands.tables import open_console

    console = open_console()
    task = made.task
    heads = ["value"] if task.kind == "regression" else ["label", "probability", "next"]
    if task.kind == "multi_label":
        heads = ["labels", "next"]
    if made.ranked:
        heads.insert(0, "score")
    for chunk in made.rows:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for head in heads:
            table.add_column(
                head,
                justify="right" if head in ("probability", "value", "score") else "left",
                overflow="fold",
            )
        table.add_column("text", overflow="fold")
        for one in chunk:
            text = " ⇥ ".join(part for part in (one.text, one.text_pair) if part is not None)
            text = " ".join(text.split())
            if console.is_terminal and len(text) > SHOWN_CHARACTERS:
                text = text[:SHOWN_CHARACTERS] + " …"
            score = [f"{one.score:.4f}"] if made.ranked else []
            table.add_row(*(Text(cell) for cell in (*score, *_cells(one, task), text)))
        console.print(table)


def _cells(one: "Prediction", task: "Task") -> Iterator[str]:
    if task.kind == "regression":
        yield f"{one.value:.4f}"
        return
    ranked = sorted(zip(one.probabilities, task.labels, strict=True), key=lambda pair: -pair[0])
    others = [(probability, label) for probability, label in ranked if label not in one.labels]
    if task.kind == "single_label":
        yield one.labels[0]
        yield f"{ranked[0][0]:.4f}"
    else:
        yield _with_probabilities(pair for pair in ranked if pair[1] in one.labels) or "none"
    yield _with_probabilities(others[:1])


def _with_probabilities(ranked: Iterable[tuple[float, str]]) -> str:
    return ", ".join(f"{label} {probability:.4f}" for probability, label in ranked)


def _rounded(value: float) -> float:
    """Six decimals: more would only show the noise of float32."""
    return round(value, 6)
