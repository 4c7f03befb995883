"""`enc export`: write a model in a form that can be deployed."""

from typing import Any

from commands.options import AsJson, ConfigFile, build_config, with_options
from recipes.export_config import ExportConfig

EPILOG = (
    "[bold]Examples[/bold]\n\n"
    "enc export runs/news --data bbc-news --output runs/news-onnx\n\n"
    "enc export runs/news --data bbc-news --output runs/news-int8 --precision int8 --max-drop 1\n\n"
    "enc export runs/small --data reviews.csv --output runs/small-hf --format transformers"
)


@with_options(ExportConfig)
def export(given: dict[str, Any], *, config: ConfigFile = None, as_json: AsJson = False) -> None:
    """Write a model as a folder that works alone, and prove it on your rows."""
    options = build_config(ExportConfig, given, config)

    from commands.export_report import run_and_show

    run_and_show(options, as_json=as_json)
