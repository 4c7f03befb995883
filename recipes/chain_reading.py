"""A recipe → a chain: every key, value and reference checked, and all mistakes told together."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, get_origin

from pydantic import ValidationError

from encoder.errors import did_you_mean
from recipes.chain import MISSING, REFERENCE, START, Chain, ChainOptions, Step
from recipes.chain_steps import KINDS, Made, StepKind
from recipes.option_words import explain, has_commas, kind_of, suggest
from recipes.options import Options
from recipes.recipe_files import RecipeFile, find_recipe

Config = TypeVar("Config", bound=Options)

# Options of a command that are not a recipe's to set.
DECIDED = ("output", "overwrite", "resume")
TOP = ("chain", "steps")
DATA_FILE = f"{REFERENCE}data"
# Options that decide what kind of model a step leaves behind.
SHAPING = ("keep", "format")
NAME = re.compile(r"[a-z0-9][a-z0-9-]*")


def read_chain(
    recipe: str, given: Mapping[str, Any] | None = None, settings: Sequence[str] = ()
) -> tuple[Chain, list[str]]:
    """The chain that ``recipe`` describes, a file or a preset, and all that is wrong with it, with its place.

    ``given`` are options of the chain, in the place of the recipe's. ``settings`` are options as
    ``distill.layers=3`` or, of the chain, ``seed=1``. Where something is wrong, the chain has the steps that
    can be looked at further.

    Raises:
        ConfigError: there is no such recipe.
    """
    reader = _Reader(find_recipe(recipe), recipe)
    return reader.read(settings, given or {}), reader.problems


@dataclass
class _Raw:
    """A step as the file has it, and what ``--set`` has of it."""

    name: str
    command: str
    values: dict[str, Any]
    set: dict[str, str] = field(default_factory=dict)


@dataclass
class _Reader:
    """Reads one recipe; ``problems`` are all that was found."""

    file: RecipeFile
    source: str
    problems: list[str] = field(default_factory=list)

    def read(self, settings: Sequence[str], given: Mapping[str, Any]) -> Chain:
        """The chain, up to the first step that is not understood."""
        values = self.file.values
        for key in values:
            if key not in TOP:
                self._tell(f"unknown key {key!r}{suggest(key, TOP) or '; expected [chain] and [[steps]]'}")
        steps = self._split(values.get("steps"))
        own: dict[str, Any] = {}
        self._sort_settings(settings, steps, own)
        table = values.get("chain", {})
        if not isinstance(table, dict):
            self._tell("chain is not a table; expected [chain]")
            table = {}
        options = self._chain_options(table, own, given)
        return Chain(self.file.name, self.source, options, self._make_steps(steps, options))

    def _tell(self, problem: str, where: str = "") -> None:
        self.problems.append(f"{self.source}: {where}{problem}")

    def _split(self, steps: Any) -> list[_Raw]:
        """The steps with a name each; what is none is told."""
        if not isinstance(steps, list) or not steps or not all(isinstance(one, dict) for one in steps):
            self._tell(
                "no steps; expected [[steps]] with command = 'finetune' or another, once for each step"
            )
            return []
        raw: list[_Raw] = []
        for number, one in enumerate(steps, 1):
            where, command = f"step {number}: ", one.get("command")
            if not isinstance(command, str) or command not in KINDS:
                said = "command is missing" if command is None else f"command is {command!r}"
                hint = did_you_mean(command, KINDS) if isinstance(command, str) else ""
                self._tell(f"{said}; expected one of {', '.join(KINDS)}{hint}", where)
                command = ""
            name = one.get("name", command)
            if not isinstance(name, str) or (name and not NAME.fullmatch(name)) or name == START:
                self._tell(
                    f"name is {name!r}; expected small letters, digits and dashes, not {START!r}", where
                )
                name = command
            taken = [other.name for other in raw]
            if "name" in one and name in taken:
                self._tell(f"name is {name!r}, as that of step {taken.index(name) + 1}", where)
            if "name" not in one and name in taken:
                same = sum(other.command == command for other in raw)
                name = f"{command}-{same + 1}"
            raw.append(_Raw(name, command, {key: one[key] for key in one if key not in ("command", "name")}))
        return raw

    def _sort_settings(self, settings: Sequence[str], steps: Sequence[_Raw], own: dict[str, Any]) -> None:
        """Each of ``settings`` to its step or, in ``own``, to the chain."""
        by_name = {step.name: step for step in steps}
        for setting in settings:
            key, sign, value = setting.partition("=")
            step, dot, option = key.strip().partition(".")
            if not sign:
                self.problems.append(f"--set {setting!r}: expected STEP.OPTION=VALUE, as distill.layers=3")
            elif not dot:
                own[step] = value
            elif step in by_name:
                by_name[step].set[option.replace("-", "_")] = value
            elif by_name:
                hint = did_you_mean(step, by_name) or f"; there are {', '.join(by_name)}"
                self.problems.append(f"--set {setting}: no step {step!r}{hint}")

    def _chain_options(
        self, table: Mapping[str, Any], own: Mapping[str, str], given: Mapping[str, Any]
    ) -> ChainOptions:
        where, known = "[chain] ", ChainOptions.model_fields
        for name, text in ((f"unknown key {key!r}", key) for key in table if key not in known):
            self._tell(f"{name}{suggest(text, known) or '; known are ' + ', '.join(known)}", where)
        for key in own:
            if key not in known:
                hint = suggest(key, known) or f"; of a step it would be STEP.{key}"
                self.problems.append(f"--set {key}: the chain has no such option{hint}")
        values = _overridden(ChainOptions, {k: v for k, v in table.items() if k in known}, own) | dict(given)
        options = self._build(ChainOptions, values, lambda name: _spelt(name, own), where) or ChainOptions()
        for name in ("model", "data"):
            if name not in values:
                self._tell(f"names no {name}; give --{name} {name.upper()}")
        return options.model_copy(
            update={name: getattr(options, name) or MISSING for name in ("model", "data")}
        )

    def _make_steps(self, steps: Sequence[_Raw], options: ChainOptions) -> tuple[Step, ...]:
        made: list[Step] = []
        sure = len(steps)  # of so many steps the command is known, and so what their models are
        for number, raw in enumerate(steps, 1):
            if raw.command:
                made.append(self._make_step(number, raw, options, made, sure >= number))
            else:
                sure = min(sure, number - 1)
        return tuple(step for step in made if step.number <= sure)

    def _make_step(
        self, number: int, raw: _Raw, chain: ChainOptions, before: Sequence[Step], sure: bool
    ) -> Step:
        kind, known = KINDS[raw.command], KINDS[raw.command].options.model_fields
        own = "" if raw.name == raw.command else f", {raw.command}"
        where = f"step {number} ({raw.name}{own}): "
        ours = [name for name in known if name not in DECIDED]
        misspelt: list[str] = []
        for key in (*raw.values, *raw.set):
            spelt = f"--set {raw.name}.{key}" if key in raw.set else repr(key)
            if key in DECIDED:
                self._tell(f"{spelt} is decided by enc run; leave it out", where)
            elif key not in known:
                hint = suggest(key, ours)
                misspelt += [name for name in ours if f"{name!r}" in hint]
                self._tell(f"unknown key {spelt}{hint or '; known are ' + ', '.join(ours)}", where)
        shared = {"data": chain.data, **chain.shared()}
        values = {name: value for name, value in shared.items() if name in ours}
        values |= {name: value for name, value in raw.values.items() if name in ours}
        values = _overridden(kind.options, values, {k: v for k, v in raw.set.items() if k in ours})
        self._share_max_drop(values, chain, where)
        self._place_data(values, kind, chain, where)
        models = _Models(chain.model or MISSING, kind, before, values)
        values |= models.resolved
        if sure:
            for problem in models.problems:
                self._tell(problem, where)
        if "output" in known:
            values["output"] = Path(f"{number:02}-{raw.name}")
        made = self._build(
            kind.options, values, lambda name: _spelt(name, raw.set, raw.name), where, misspelt
        )
        is_whole = made is not None
        if made is None:  # enough to say what it takes and makes
            made = kind.options.model_construct(**{name: values[name] for name in values if name in SHAPING})
        return Step(number, raw.name, raw.command, kind, made, models.names, is_whole)

    def _share_max_drop(self, values: dict[str, Any], chain: ChainOptions, where: str) -> None:
        """A step's ``max_drop`` of ``"25%"``, which is that share of the chain's."""
        given = values.get("max_drop")
        found = re.fullmatch(r"(\d{1,3})\s*%", given) if isinstance(given, str) else None
        if found is None:
            return
        values.pop("max_drop")
        if chain.max_drop is None:
            self._tell(f"max_drop is {given!r} of the chain's max_drop, and that is not given", where)
        else:
            values["max_drop"] = chain.max_drop * int(found[1]) / 100

    def _place_data(self, values: dict[str, Any], kind: StepKind, chain: ChainOptions, where: str) -> None:
        """A file of ``"@data"``, which is the chain's data, or the training rows of a folder."""
        for name, option in kind.options.model_fields.items():
            if kind_of(option) is not Path or values.get(name) != DATA_FILE:
                continue
            values[name] = found = Path(str(chain.data)).expanduser()
            if found.is_dir():
                trains = sorted(one for one in found.iterdir() if one.stem == "train")
                values[name] = trains[0] if trains else found
            if chain.data != MISSING and not values[name].is_file():
                self._tell(
                    f"{name} is {DATA_FILE!r}, and {chain.data} is no file and no folder with one", where
                )

    def _build(
        self,
        config: type[Config],
        values: Mapping[str, Any],
        call: Callable[[str], str],
        where: str,
        misspelt: Sequence[str] = (),
    ) -> Config | None:
        """``config`` of ``values``; without those that are wrong, which are told, if it can do without."""
        try:
            return config(**values)
        except ValidationError as error:
            for problem in explain(config, error, call, misspelt):
                self._tell(problem, where)
            wrong = {str(detail["loc"][0]) for detail in error.errors() if detail["loc"]}
        try:
            return config(**{name: value for name, value in values.items() if name not in wrong})
        except ValidationError:
            return None


class _Models:
    """Which models a step takes: those it names, otherwise the last one before it that it can take."""

    def __init__(self, start: str, kind: StepKind, before: Sequence[Step], values: Mapping[str, Any]) -> None:
        self.problems: list[str] = []
        self._start, self._kind, self._before = start, kind, before
        self.resolved: dict[str, Any] = {}
        wanted = values.get(kind.model_field)
        listed = wanted if isinstance(wanted, (list, tuple)) else [wanted]
        if wanted is None:
            self.names: tuple[str, ...] = (self._last(),)
        else:
            self.names = tuple(self._resolve(str(one), kind.takes) for one in listed)
        self.resolved[kind.model_field] = self.names if kind.model_field == "models" else self.names[0]
        for name in kind.other_models:
            if isinstance(values.get(name), str):
                self.resolved[name] = self._resolve(values[name], kind.takes)

    def _last(self) -> str:
        for step in reversed(self._before):
            if step.makes in self._kind.takes:
                return step.folder
        return self._start

    def _resolve(self, name: str, takes: Sequence[Made]) -> str:
        """The folder name of a step, or a model from outside as it is called."""
        if not name.startswith(REFERENCE):
            return name
        wanted = name.removeprefix(REFERENCE)
        if wanted == START:
            return self._start
        steps = {step.name: step for step in self._before}
        if wanted not in steps:
            there = [START, *steps]
            hint = did_you_mean(wanted, there) or f"; there are {', '.join(REFERENCE + one for one in there)}"
            self.problems.append(f"model {name!r}: no step before it is called so{hint}")
            return MISSING
        step = steps[wanted]
        if step.makes is None:
            self.problems.append(f"model {name!r}: {step.title} only measures and makes no model")
        elif step.makes not in takes:
            self.problems.append(
                f"model {name!r}: that of {step.title} is a graph, which runs as it is and cannot be changed"
            )
        return step.folder


def _overridden(config: type[Any], values: Mapping[str, Any], texts: Mapping[str, str]) -> dict[str, Any]:
    """``values`` with the typed ``texts`` in their place; an empty one takes the value away."""
    made = dict(values)
    for name, text in texts.items():
        field = config.model_fields.get(name)
        if field is None:
            continue
        made.pop(name, None)
        if text:
            is_list = get_origin(kind_of(field)) is tuple and not has_commas(field)
            made[name] = [one.strip() for one in text.split(",")] if is_list else text
    return made


def _spelt(name: str, typed: Mapping[str, Any], step: str = "") -> str:
    """A field as it was given: in the file by its name, or behind ``--set``."""
    dot = f"{step}." if step else ""
    return f"--set {dot}{name}" if name in typed else name
