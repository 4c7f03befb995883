"""`enc pretrain`: make an encoder of texts without labels, or train one further on them."""

import shlex
import sys
from typing import Any

import typer

from commands.options import AsJson, build_config, with_options
from encoder.errors import EncError
from recipes.pretrain_config import PretrainConfig

EPILOG = (
    "[bold]Examples[/bold]\n\n"
    "enc pretrain --corpus bbc-news --config mini --output runs/news-mini\n\n"
    "enc pretrain --corpus texts/ --corpus more.jsonl --config own.toml --vocab-size 30000 --output own\n\n"
    "enc pretrain --corpus letters.txt --model minilm-l6 --output runs/letters    (domain adaptation)\n\n"
    "torchrun --nproc-per-node 4 --no-python enc pretrain ...    (4 processes, one model)"
)


@with_options(PretrainConfig)
def pretrain(
    given: dict[str, Any],
    *,
    as_json: AsJson = False,
) -> None:
    """Pretrain an encoder on texts without labels, as a masked language model; or train one further."""
    from encoder.processes import find_processes

    if not find_processes().is_first:
        _follow(given)
        return
    options = build_config(PretrainConfig, given)

    from commands.pretrain_report import show_pretraining
    from commands.progress import run_resumable
    from commands.tables import open_console
    from recipes.pretrain import pretrain as run

    result = run_resumable(run, options)
    assert result is not None
    if as_json:
        sys.stdout.write(result.to_json())
        return
    console = open_console()
    show_pretraining(result, console)
    folder = shlex.quote(str(options.output))
    console.print(f"\nGo on: enc finetune --model {folder} --data … --output …", markup=False, soft_wrap=True)


def _follow(given: dict[str, Any]) -> None:
    """Take part in a run that another process shows; what is wrong it says too."""
    from recipes.pretrain import pretrain as run

    try:
        run(build_config(PretrainConfig, given))
    except EncError:
        raise typer.Exit(2) from None
