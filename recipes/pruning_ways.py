"""The two ways of making a model smaller: units out of its layers, or whole layers."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from encoder.config import EncoderConfig
from encoder.rows import TokenizedRows
from recipes.observer import Observer
from recipes.pruning_inputs import PruningInputs, draw_scoring_rows, limit_tokens
from recipes.pruning_options import UnitPruningOptions
from recipes.pruning_training import Recovery
from recipes.scoring import choose_precision

if TYPE_CHECKING:
    from compress.importance import Scores
    from compress.pruning import Pruned, PruningPlan, PruningRows
    from encoder.model import Classifier

# Seeds of the control follow the run's own at this distance, so that no draw is the one that was chosen.
CONTROL_SEED = 1_000_003


@dataclass(frozen=True)
class Wanted:
    """What is asked for, known before anything is loaded.

    ``unit`` and how many there are in each layer; ``least``: how many have to stay. ``keep``: how many in all
    are to stay, ``kept`` which, by place; both ``None`` where only ``max_drop`` decides.
    """

    unit: Literal["heads", "neurons", "layers"]
    counts: tuple[int, ...]
    least: int
    keep: int | None = None
    kept: list[list[int]] | None = None

    @property
    def total(self) -> int:
        """How many there are."""
        return sum(self.counts)


class Way(Protocol):
    """How a model is made smaller."""

    @property
    def wanted(self) -> Wanted:
        """What is asked for."""

    @property
    def method(self) -> str:
        """How units are chosen."""

    @property
    def rows(self) -> int:
        """Rows that importance is found on."""

    @property
    def repair_rows(self) -> int:
        """Rows of the least squares."""

    def choose(self, keep: int) -> "Pruned":
        """The model with ``keep`` units, the most important ones."""

    def take(self, kept: list[list[int]]) -> "Pruned":
        """The model with the units that the user named."""

    def draw(self, keep: int, number: int) -> "list[Classifier]":
        """So many models with ``keep`` units by chance, treated alike: the control."""

    def prove(self, kept: list[list[int]], rows: TokenizedRows) -> float:
        """The largest difference of logits between silencing and removing what is not ``kept``."""


@dataclass
class UnitsWay:
    """Heads or neurons, by ``compress.pruning``."""

    wanted: Wanted
    options: UnitPruningOptions
    min_per_layer: int
    inputs: PruningInputs
    recovery: Recovery
    observer: Observer
    scores: "Scores | None" = None
    _drawn: "PruningRows | None" = field(default=None, repr=False)

    @property
    def method(self) -> str:
        """How units are chosen."""
        return "named" if self.wanted.kept is not None else self.options.method

    @property
    def rows(self) -> int:
        """Rows that importance is found on."""
        looks = self.method in ("fisher", "gradient", "ablation")
        return len(self._rows().scoring) if looks else 0

    @property
    def repair_rows(self) -> int:
        """Rows of the least squares."""
        return len(self._rows().repair) if self.options.repair else 0

    def choose(self, keep: int) -> "Pruned":
        """See ``Way``; what the first call found of the whole model serves all others."""
        from compress.pruning import prune

        made = prune(
            self.inputs.model,
            self._rows(),
            self._plan(),
            keep,
            scores=self.scores,
            train_=self._train_between if self.options.recover_each_step else None,
            precision=choose_precision("auto", self.inputs.start.device),
            device=self.inputs.start.device,
            on_done=self.observer.working,
        )
        self.scores = made.scores
        return made

    def take(self, kept: list[list[int]]) -> "Pruned":
        """See ``Way``."""
        from compress.pruning import Pruned, remove

        model, repair = self.inputs.model, self._rows().repair if self.options.repair else None
        made = remove(model, model, self._plan().unit, kept, repair, device=self.inputs.start.device)
        return Pruned(made, kept, None)

    def draw(self, keep: int, number: int) -> "list[Classifier]":
        """See ``Way``: the same scope, minimum and repair, in one step."""
        from compress.pruning import prune_at_random

        repair = self._rows().repair if self.options.repair else None
        first = self.options.seed + CONTROL_SEED
        return prune_at_random(
            self.inputs.model,
            repair,
            self._plan(),
            keep,
            range(first, first + number),
            device=self.inputs.start.device,
        )

    def prove(self, kept: list[list[int]], rows: TokenizedRows) -> float:
        """See ``Way``."""
        from compress.proof import masked_difference

        model, device = self.inputs.model, self.inputs.start.device
        return masked_difference(model, self._plan().unit, kept, rows, device=device)

    def _train_between(self, model: "Classifier", step: int) -> None:
        name, title = f"step-{step}", f"Training after step {step} of {self.options.steps}"
        self.recovery.train_(model, name, title)
        self.observer.stage(f"Choosing again, step {step + 1} of {self.options.steps}")

    def _plan(self) -> "PruningPlan":
        from compress.pruning import PruningPlan

        options, unit = self.options, self.wanted.unit
        assert unit != "layers"
        return PruningPlan(
            unit=unit,
            method=options.method,
            scope=options.scope,
            normalize=options.normalize,
            min_per_layer=self.min_per_layer,
            steps=options.steps,
            repair=options.repair,
            seed=options.seed,
        )

    def _rows(self) -> "PruningRows":
        from compress.pruning import PruningRows

        if self._drawn is None:
            options, inputs = self.options, self.inputs
            scoring = draw_scoring_rows(inputs, options.rows, options.targets, options.seed)
            repair = limit_tokens(inputs.draw_training_rows(options.repair_rows, options.seed))
            self._drawn = PruningRows(scoring, repair)
        return self._drawn


@dataclass
class LayersWay:
    """Whole layers, by ``compress.layer_choice``; nothing is repaired."""

    wanted: Wanted
    strategy: str
    number_of_rows: int
    targets: str
    seed: int
    inputs: PruningInputs
    observer: Observer
    repair_rows: int = 0
    _drawn: TokenizedRows | None = field(default=None, repr=False)

    @property
    def method(self) -> str:
        """How layers are chosen."""
        return "named" if self.wanted.kept is not None else self.strategy

    @property
    def rows(self) -> int:
        """Rows that importance is found on."""
        return len(self._rows()) if self.method == "importance" else 0

    def choose(self, keep: int) -> "Pruned":
        """See ``Way``."""
        from compress.layer_choice import alternate_layers, bottom_layers, important_layers

        if self.strategy == "importance":
            kept, scores = important_layers(
                self.inputs.model,
                self._rows(),
                keep,
                device=self.inputs.start.device,
                on_done=self.observer.working,
            )
            return self._make(kept, scores or None)
        if self.strategy == "top":
            return self._make(bottom_layers(keep))
        return self._make(alternate_layers(self.wanted.total, keep))

    def take(self, kept: list[list[int]]) -> "Pruned":
        """See ``Way``."""
        return self._make(_layers(kept))

    def draw(self, keep: int, number: int) -> "list[Classifier]":
        """See ``Way``."""
        random = np.random.default_rng(self.seed + CONTROL_SEED)
        draws = (random.permutation(self.wanted.total)[:keep] for _ in range(number))
        return [self._make(sorted(layers.tolist())).model for layers in draws]

    def prove(self, kept: list[list[int]], rows: TokenizedRows) -> float:
        """See ``Way``."""
        from compress.proof import passed_over_difference

        return passed_over_difference(self.inputs.model, _layers(kept), rows, device=self.inputs.start.device)

    def _make(self, layers: list[int], scores: Sequence[float] | None = None) -> "Pruned":
        from compress.pruning import Pruned
        from compress.removal import keep_layers

        kept = [[0] if layer in set(layers) else [] for layer in range(self.wanted.total)]
        found = None if scores is None else [np.array([one]) for one in scores]
        return Pruned(keep_layers(self.inputs.model, layers), kept, found)

    def _rows(self) -> TokenizedRows:
        if self._drawn is None:
            self._drawn = draw_scoring_rows(self.inputs, self.number_of_rows, self.targets, self.seed)
        return self._drawn


def _layers(kept: Sequence[Sequence[int]]) -> list[int]:
    return [layer for layer, places in enumerate(kept) if places]


def want_units(
    options: UnitPruningOptions,
    config: EncoderConfig,
    unit: Literal["heads", "neurons"],
    number: int | None,
    min_per_layer: int,
) -> Wanted:
    """What ``options`` ask for of a model of this shape; ``number`` is how many are to stay.

    Raises:
        ConfigError, CompressionError: units that are not there, a minimum that does not fit, no unit left
            where the model would be of no use, or importance that would take forever to find.
    """
    from compress.selection import count_kept, parse_kept
    from compress.units import why_not_ablated, why_some_stay
    from encoder.errors import ConfigError

    heads = unit == "heads"
    present = [shape.heads if heads else tuple(range(shape.intermediate_size)) for shape in config.layers]
    counts = tuple(map(len, present))
    least = sum(min(count, min_per_layer) for count in counts)
    pointless = why_some_stay(config, unit) if sum(counts) else None
    if pointless is not None:
        least = max(1, least)
        pointless = f"would leave no {unit} in any layer: {pointless}"
    if options.keep is not None:
        named = parse_kept(options.keep, present)
        if short := [str(i) for i, one in enumerate(named) if len(one) < min(counts[i], min_per_layer)]:
            raise ConfigError(
                f"--keep leaves less than --min-{unit}-per-layer {min_per_layer} in layer {', '.join(short)}"
            )
        kept = [
            [place for place, one in enumerate(has) if one in set(keeps)]
            for has, keeps in zip(present, named, strict=True)
        ]
        if pointless is not None and not any(kept):
            raise ConfigError(f"--keep {options.keep} {pointless}; name one")
        return Wanted(unit, counts, least, sum(map(len, kept)), kept)
    if options.method == "ablation" and (why := why_not_ablated(sum(counts), unit)):
        raise ConfigError(f"--method ablation: {why}")
    given = f"--{unit} {number}"
    if options.sparsity is not None:
        number, given = count_kept(sum(counts), options.sparsity), f"--sparsity {options.sparsity:g}"
    if pointless is not None and number == 0:
        raise ConfigError(f"{given} {pointless}; at least 1 of {sum(counts):,} has to stay")
    if number is not None and number > sum(counts):
        raise ConfigError(f"--{unit} {number}: {options.model} has {sum(counts):,} {unit}")
    if number is not None and number < least:
        raise ConfigError(
            f"{number} {unit} would stay, but --min-{unit}-per-layer {min_per_layer} demands {least}"
        )
    return Wanted(unit, counts, least, number)
