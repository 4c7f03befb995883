"""The candidates of a compression: which layers, heads and neurons stay; planned, made and scored."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from compress.latency_table import UNITS, LatencyTable
from compress.layer_choice import alternate_layers
from compress.size import matrix_parameters
from compress.units import Unit, unit_counts, why_layers_stay
from encoder.config import EncoderConfig
from encoder.metrics import LOWER_IS_BETTER, main_metric
from encoder.rows import TokenizedRows
from encoder.wording import counted
from recipes.compress_config import CompressConfig
from recipes.compress_result import Candidate
from recipes.observer import Observer
from recipes.pruning_inputs import PruningInputs, limit_tokens
from recipes.scoring import main_score

if TYPE_CHECKING:
    from compress.importance import Scores
    from encoder.model import Classifier

# The shares of the layers that may stay.
LAYER_SHARES = (1, 3 / 4, 2 / 3, 1 / 2, 1 / 3)
# Between all units and as many as the goal allows, of all layers: for the way there, if the goal is too far.
HALF_WAY = 0.5
# Each candidate is repaired and scored on so much, so that looking at a dozen of them takes minutes.
SCORED_ROWS, SCORED_TOKENS = 500, 32_768
REPAIR_ROWS, REPAIR_TOKENS = 512, 8_192
IMPORTANCE_TOKENS = 131_072
# Bytes of a parameter.
PARAMETER_BYTES = {"fp32": 4, "int8": 1}

# The places of the units that stay, layer by layer.
Places = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Plan:
    """A model that could be made: ``layers`` of the original, and of each the places of its units that stay.

    ``config`` is its shape; ``predicted_ms`` what the table says of it in ``precision``.
    """

    layers: tuple[int, ...]
    units: Mapping[Unit, Places]
    config: EncoderConfig
    precision: str
    predicted_ms: float
    whole: bool  # each layer has all its units

    def count(self, unit: Unit) -> int:
        """How many units stay, in all layers together."""
        return sum(map(len, self.units[unit]))

    @property
    def name(self) -> str:
        """``6 layers, int8``; where units went ``12 layers, 80 heads, 9,216 neurons, int8``."""
        words = [counted(len(self.layers), "layer")]
        if not self.whole:
            words += [counted(self.count("heads"), "head"), counted(self.count("neurons"), "neuron")]
        return ", ".join([*words, self.precision])

    @property
    def model_key(self) -> str:
        """A name for the folder of the model in torch, by content; in any precision it is the same."""
        content = repr((self.layers, [self.units[unit] for unit in UNITS]))
        return f"{len(self.layers)}-layers-{hashlib.sha256(content.encode()).hexdigest()[:12]}"

    @property
    def key(self) -> str:
        """A name by content."""
        return f"{self.model_key}-{self.precision}"


def layer_counts(num_layers: int) -> list[int]:
    """How many layers candidates have, the most first."""
    return sorted({max(1, round(share * num_layers)) for share in LAYER_SHARES}, reverse=True)


def plan_candidates(
    config: EncoderConfig, scores: "Mapping[Unit, Scores]", table: LatencyTable, limit_ms: float
) -> list[Plan]:
    """Candidates of a model of this shape: for each number of layers with all units, in each precision.

    Where that takes longer than ``limit_ms`` by the table, also with so few units that it does not, in the
    faster precision: at one time it has room for more of them. ``scores`` are the importance of all units.
    """
    from compress.latency_budget import fit_units

    faster = min(table.times, key=lambda precision: table.predict(config, precision))
    plans = []
    whole_depth = config.num_hidden_layers
    for count in [whole_depth] if why_layers_stay(config) else layer_counts(whole_depth):
        layers = alternate_layers(whole_depth, count)
        part = config.model_copy(update={"layers": tuple(config.layers[layer] for layer in layers)})
        whole = {unit: tuple(tuple(range(n)) for n in unit_counts(part, unit)) for unit in UNITS}
        plans += [_plan(layers, whole, part, precision, table) for precision in table.times]
        longest = table.predict(part, faster)
        budgets = [limit_ms]
        if count == whole_depth:
            budgets.insert(0, limit_ms + HALF_WAY * (longest - limit_ms))
        own = {unit: [scores[unit][layer] for layer in layers] for unit in UNITS}
        for budget in budgets if longest > limit_ms else ():
            kept = fit_units(part, own, table, faster, budget)
            if kept is not None:
                places = {unit: tuple(map(tuple, kept[unit])) for unit in UNITS}
                plans.append(_plan(layers, places, part, faster, table))
    return list({plan.key: plan for plan in plans}.values())


def _plan(
    layers: Sequence[int],
    units: Mapping[Unit, Places],
    part: EncoderConfig,
    precision: str,
    table: LatencyTable,
) -> Plan:
    """``part`` is the shape of the layers that stay, with all their units."""
    shapes = [
        shape.model_copy(
            update={
                "heads": tuple(shape.heads[place] for place in heads),
                "intermediate_size": len(neurons),
            }
        )
        for shape, heads, neurons in zip(part.layers, units["heads"], units["neurons"], strict=True)
    ]
    config = part.model_copy(update={"layers": tuple(shapes)})
    return Plan(
        tuple(layers), units, config, precision, table.predict(config, precision), whole=config == part
    )


@dataclass
class Maker:
    """Makes the models of plans out of that of ``inputs`` and scores them.

    ``scored`` are validation rows, ``repair`` training rows; ``before`` the main score of the original on
    ``scored``.
    """

    config: CompressConfig
    inputs: PruningInputs
    observer: Observer
    scored: TokenizedRows = field(init=False)
    repair: TokenizedRows = field(init=False)
    importance_rows: int = 0
    before: float | None = None

    def __post_init__(self) -> None:
        validation, seed = self.inputs.splits.rows["validation"], self.config.seed
        order = np.random.default_rng(seed).permutation(len(validation))[:SCORED_ROWS]
        self.scored = limit_tokens(validation.select(order), SCORED_TOKENS)
        self.repair = limit_tokens(self.inputs.draw_training_rows(REPAIR_ROWS, seed), REPAIR_TOKENS)

    def find_importance(self) -> "dict[Unit, Scores]":
        """The Fisher information of each head and neuron of the original, once."""
        from compress.importance import score_units

        rows = self.inputs.draw_training_rows(self.config.rows, self.config.seed)
        rows = limit_tokens(rows, IMPORTANCE_TOKENS)
        self.importance_rows = len(rows)
        found = {}
        for unit in UNITS:
            self.observer.stage(f"Finding out which {unit} matter, on {len(rows):,} training rows")
            self.observer.working(0, len(rows))
            found[unit] = score_units(
                self.inputs.model,
                rows,
                unit,
                "fisher",
                device=self.inputs.start.device,
                on_done=self.observer.working,
            )
        return found

    def make(self, plan: Plan) -> "Classifier":
        """The model of ``plan``, repaired where units went; the original itself where nothing does."""
        from compress.removal import keep_layers, keep_units
        from compress.repair import repair_

        model = self.inputs.model
        if len(plan.layers) < model.config.num_hidden_layers:
            model = keep_layers(model, plan.layers)
        if plan.whole:
            return model
        made = model
        for unit in UNITS:
            made = keep_units(made, unit, plan.units[unit])
        repair_([made], model, self.repair, device=self.inputs.start.device)
        return made

    def score_all(self, plans: Sequence[Plan]) -> dict[str, Candidate]:
        """The candidates of ``plans``, by key, as they are without any training."""
        found: dict[str, Candidate] = {}
        scores: dict[str, float | None] = {}
        if plans:
            rows = f"{len(self.scored):,} validation rows"
            self.observer.stage(f"Scoring {len(plans)} candidates on {rows}, without training")
            self.observer.working(0, len(plans))
        if self.before is None:
            self.before = self._score(self.inputs.model)
        for number, plan in enumerate(plans):
            if plan.model_key not in scores:
                scores[plan.model_key] = self._score(self.make(plan))
            found[plan.key] = self.describe(plan, scores[plan.model_key])
            self.observer.working(number + 1, len(plans))
        return found

    def describe(self, plan: Plan, score: float | None) -> Candidate:
        """What is known of ``plan`` when it has been scored on ``scored``."""
        return Candidate(
            name=plan.name,
            layers=len(plan.layers),
            heads=plan.count("heads"),
            neurons=plan.count("neurons"),
            precision=plan.precision,
            kept_layers=plan.layers,
            score=score,
            drop=find_fall(self.inputs, self.before, score),
            rows=len(self.scored),
            predicted_ms=plan.predicted_ms,
            size_bytes=matrix_parameters(plan.config) * PARAMETER_BYTES[plan.precision],
        )

    def _score(self, model: "Classifier") -> float | None:
        from recipes.observer import Silent

        return main_score(model, self.scored, device=self.inputs.start.device, observer=Silent())


def find_fall(inputs: PruningInputs, before: float | None, after: float | None) -> float | None:
    """By how much the main score falls from ``before`` to ``after``; ``None`` where one is not defined."""
    if before is None or after is None:
        return None
    lower = main_metric(inputs.data.task) in LOWER_IS_BETTER
    return after - before if lower else before - after
