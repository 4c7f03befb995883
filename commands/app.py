"""The command `enc`: finds the subcommand, and turns what users can mend into a message and an exit code.

Exit codes stand in ``commands.exit_codes``. A bug shows its traceback. stdout is the answer, stderr is
progress.
"""

import atexit
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from importlib import metadata
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer
import typer.core

from commands import (
    attention,
    bench,
    compress,
    depth,
    distill,
    drop_layers,
    embed,
    evaluate,
    export,
    finetune,
    freeze_sweep,
    predict,
    pretrain,
    probe,
    profile,
    prune_heads,
    prune_neurons,
    recipes,
    report,
    runs,
)
from commands import run as run_command
from commands.exit_codes import BUG, DONE, INTERRUPTED, NOBODY_READS, WRONG
from commands.options import option_name
from commands.streams import ReaderGoneError, prepare_streams, say
from encoder.errors import EncError
from recipes.option_words import suggest

# The base of all that Typer says about a command line; it has no public name.
UsageError: Any = typer.BadParameter.__bases__[0]

app = typer.Typer(
    help="Fine-tune a transformer encoder, make it small and fast, and measure what that cost.",
    epilog="Each command explains itself, with an example: enc finetune --help",
    rich_markup_mode="rich",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Command(typer.core.TyperCommand):
    """A command whose usage line shows arguments as their configs spell them.

    To Typer none is required: what is missing is told together with all else that is wrong.
    """

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """``[OPTIONS] MODEL [TEXT]...``."""
        arguments: list[Any] = [param for param in self.params if param.param_type_name == "argument"]
        return ["[OPTIONS]", *(argument.metavar for argument in arguments)]


def _show_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"enc {metadata.version('enc-encoder')}\n")
        raise typer.Exit


@app.callback()
def _enc(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    pass


for _module, _command in (
    (pretrain, pretrain.pretrain),
    (finetune, finetune.finetune),
    (freeze_sweep, freeze_sweep.freeze_sweep),
    (evaluate, evaluate.evaluate),
    (predict, predict.predict),
    (embed, embed.embed),
    (attention, attention.attention),
    (probe, probe.probe),
    (depth, depth.depth),
    (bench, bench.bench),
    (profile, profile.profile),
    (prune_heads, prune_heads.prune_heads),
    (prune_neurons, prune_neurons.prune_neurons),
    (drop_layers, drop_layers.drop_layers),
    (compress, compress.compress),
    (distill, distill.distill),
    (export, export.export),
    (report, report.report),
    (runs, runs.runs),
    (run_command, run_command.run),
):
    app.command(cls=Command, epilog=_module.EPILOG)(_command)
app.add_typer(recipes.app, name="recipes")


def main() -> NoReturn:
    """What the script `enc` calls."""
    try:
        prepare_streams()
        code = run(sys.argv[1:])
        sys.stdout.flush()
    except ReaderGoneError:
        code = NOBODY_READS
    except EncError as error:  # a full disk may only show in the last bytes
        say(f"{error}\n")
        code = WRONG
    if code == INTERRUPTED:
        _leave(code)
    sys.exit(code)


def _leave(code: int) -> NoReturn:
    """End without taking everything apart, which takes torch and its like most of a second."""
    say("")
    atexit._run_exitfuncs()
    os._exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    # A run that is told to end (by a scheduler, by `kill`) ends as with Ctrl-C: cleanly, and resumable.
    before = signal.signal(signal.SIGTERM, _interrupt)
    command: Any = typer.main.get_command(app)
    try:
        # Not app(): it would turn an interrupt and a closed pipe into exit codes before we see them.
        with command.make_context("enc", list(arguments) or ["--help"]) as context:
            command.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    except EncError as error:
        say(f"{error}\n")
        return WRONG
    except UsageError as error:
        say(f"{_explain(error)}\n")
        return WRONG
    except ReaderGoneError:
        return NOBODY_READS
    except KeyboardInterrupt:
        say("\nInterrupted.\n")
        return INTERRUPTED
    except Exception as error:
        say(f"{traceback.format_exc()}\n{_describe_bug(error)}\n")
        return BUG
    finally:
        signal.signal(signal.SIGTERM, before)
    return DONE


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def _describe_bug(error: Exception) -> str:
    """What is said below the traceback, which nobody but its author can read."""
    what = type(error).__name__ + (f": {error}".splitlines()[0] if str(error) else "")
    return (
        f"enc {metadata.version('enc-encoder')} ended by a mistake of its own, not of yours: {what}\n"
        f"The traceback stands above; whoever mends it needs that and the command. (Exit code {BUG}.)"
    )


def _explain(error: Any) -> str:
    """A wrong command line in one or two lines; what was meant, when it can be guessed."""
    context = error.ctx
    message: str = error.format_message()
    if typed := getattr(error, "option_name", None) if type(error).__name__ == "NoSuchOption" else None:
        names = [name for option in context.command.params for name in option.opts if name.startswith("--")]
        hint = suggest(typed.lstrip("-"), [name[2:].replace("-", "_") for name in names])
        for name in names:  # the guess is a field; here it was typed as an option
            hint = hint.replace(f"'{name[2:].replace('-', '_')}'", option_name(name[2:]))
        message = f"{typed} is not an option of {context.command_path}{hint}"
    if context is not None:
        message += f"\n{context.command_path} --help lists what there is."
    return message
