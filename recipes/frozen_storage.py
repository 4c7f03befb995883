"""Where the activations above frozen layers are kept, decided before anything is computed."""

import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from compress.memory import available_memory_bytes
from encoder.config import EncoderConfig
from encoder.errors import ConfigError
from encoder.rows import TokenizedRows
from recipes.observer import Observer, counting
from recipes.training_options import TrainingOptions

if TYPE_CHECKING:
    from encoder.frozen_prefix import FrozenPrefix
    from encoder.model import Classifier
    from encoder.training_config import TrainingConfig

# Of the memory that is free, what activations may take unless --cache-memory-gb says otherwise.
SHARE_OF_FREE_MEMORY = 0.25


def plan_storage(
    options: TrainingOptions,
    config: EncoderConfig,
    parts: Sequence[TokenizedRows],
    depths: Iterable[int],
    observer: Observer,
) -> bool:
    """Whether activations of ``parts`` at ``depths``, one at a time, go to disk; says what they need.

    Raises:
        ConfigError: there is room for them neither in memory nor on the disk.
    """
    needed = _peak_bytes(config, parts, depths)
    return needed > 0 and place_on_disk(
        options,
        needed,
        "What the frozen layers make of the rows is computed once and takes",
        observer,
        instead=("--no-cache-frozen", ", which computes it in every epoch"),
    )


def place_on_disk(
    options: TrainingOptions,
    needed: int,
    what: str,
    observer: Observer,
    *,
    instead: tuple[str, str] | None = None,
) -> bool:
    """Whether ``needed`` bytes go to disk, as the options and the machine allow; says so.

    ``what`` begins the sentence, up to the amount; ``instead`` is an option that does without, and how.

    Raises:
        ConfigError: there is room for them neither in memory nor on the disk.
    """
    available = available_memory_bytes()
    given = options.cache_memory_gb
    budget = SHARE_OF_FREE_MEMORY * available if given is None else given * 1e9
    what = f"{what} {_gb(needed)}"
    if needed <= min(budget, available):
        observer.note(f"{what} of memory.")
        return False
    if needed <= budget:
        raise ConfigError(
            f"--cache-memory-gb {given:g}: {what[0].lower()}{what[1:]}, and {_gb(available)} of memory are "
            f"free; lower it so that this goes to disk{f', or give {instead[0]}' if instead else ''}"
        )
    parent = next(folder for folder in options.output.absolute().parents if folder.exists())
    free = shutil.disk_usage(parent).free
    allowed = f"{_gb(budget)} of memory" + (" (a quarter of what is free)" if given is None else "")
    if needed > free:
        raise ConfigError(
            f"{what}; there are {_gb(free)} on the disk of {parent}, and --cache-memory-gb allows {allowed}: "
            "make room, raise --cache-memory-gb, lower --max-length or --train-rows"
            + (f", or give {instead[0]}{instead[1]}" if instead else "")
        )
    observer.note(f"{what} of disk, beside {options.output}: --cache-memory-gb allows {allowed}.")
    return True


def _peak_bytes(config: EncoderConfig, parts: Sequence[TokenizedRows], depths: Iterable[int]) -> int:
    """The most that is kept at a time; on the way to the last layer, what is below it and its own."""
    from encoder.frozen_prefix import stored_bytes

    def of(depth: int) -> int:
        return sum(stored_bytes(rows, config, depth) for rows in parts)

    wanted = set(depths)
    below = max((of(depth) for depth in wanted if depth < config.num_hidden_layers), default=0)
    return below + (of(config.num_hidden_layers) if config.num_hidden_layers in wanted else 0)


def _gb(amount: float) -> str:
    return f"{amount / 1e9:.2f} GB" if amount >= 1e8 else f"{amount / 1e6:.1f} MB"


@contextmanager
def open_prefixes(
    train: TokenizedRows,
    validation: TokenizedRows | None,
    config: "TrainingConfig",
    *,
    device: str,
    folder: Path | None,
) -> Iterator[list["FrozenPrefix"]]:
    """One for the training rows, in the precision of training, and one for validation, which is float32."""
    from encoder.frozen_prefix import FrozenPrefix

    with ExitStack() as stack:
        prefixes = [FrozenPrefix(train, precision=config.precision, device=device, folder=folder)]
        if validation is not None:
            prefixes.append(FrozenPrefix(validation, precision="fp32", device=device, folder=folder))
        yield [stack.enter_context(prefix) for prefix in prefixes]


def go_to(prefixes: Sequence["FrozenPrefix"], model: "Classifier", depth: int, observer: Observer) -> None:
    """Let all ``prefixes`` hold what the bottom ``depth`` layers of ``model`` make of their rows."""
    if all(prefix.depth == depth for prefix in prefixes):
        return
    count = counting(sum(len(prefix.rows) for prefix in prefixes), observer)
    for prefix in prefixes:
        prefix.go_to(model, depth, count)
