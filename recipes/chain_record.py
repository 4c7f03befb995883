"""chain.json: what a chain has done so far, and by which keys it knows that again.

A step's key is a hash of all that decides its result: its options, the model it takes, the data, the version
of enc. The model of a step before it counts by that step's key. Equal key and whole folder: it is done.
"""

import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator
from datetime import datetime
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from compress.size import model_files
from encoder.errors import CheckpointError, ConfigError
from encoder.files import FAILED_SUFFIX, UNFINISHED_SUFFIX, write_atomic
from encoder.model_folder import resolve_model
from recipes.chain import Chain, Step
from recipes.ledger import read_run
from recipes.part import Part
from recipes.result import RUN_FILE, Result, Run, hash_model, now

CHAIN_FILE = "chain.json"
SCHEMA_VERSION = 1
# Options that say where and whether something is written, not what.
NOT_IN_KEY = ("model", "models", "data", "output", "overwrite", "resume")

Status = Literal["begun", "done", "failed"]


class StepRecord(Part):
    """A step that was begun. ``failure``: why the chain ended with it; ``seconds``: those of its last run."""

    number: int
    name: str
    command: str
    folder: str
    key: str
    models: tuple[str, ...]
    options: dict[str, Any]
    status: Status
    begun: datetime
    seconds: float | None = None
    failure: str | None = None


class ChainRecord(Part):
    """A chain and its steps as far as it came. ``failure``: the gate that ended it."""

    schema_version: int = SCHEMA_VERSION
    recipe: str
    source: str
    description: str
    model: str
    data: str
    max_drop: float | None
    version: str
    created: datetime
    finished: datetime | None = None
    failure: str | None = None
    steps: tuple[StepRecord, ...] = ()

    def to_json(self) -> str:
        """The text of chain.json."""
        return self.model_dump_json(indent=2) + "\n"

    def find(self, folder: str) -> StepRecord | None:
        """The record of the step with that folder name."""
        return next((step for step in self.steps if step.folder == folder), None)


def read_record(root: Path) -> ChainRecord | None:
    """The record in the folder ``root``, or ``None`` where there is none.

    Raises:
        ConfigError: there is one that cannot be read.
    """
    path = root / CHAIN_FILE
    try:
        record = ChainRecord.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise ConfigError(f"{path}: not a record of enc run; choose another folder for --output") from error
    if record.schema_version > SCHEMA_VERSION:
        raise ConfigError(f"{path}: by a newer enc; choose another folder for --output")
    return record


def write_record(root: Path, record: ChainRecord) -> None:
    """Put ``record`` into ``root``, whole or not at all."""
    write_atomic(root / CHAIN_FILE, record.to_json())


def begin_record(chain: Chain, before: ChainRecord | None) -> ChainRecord:
    """The record of a run that begins now, with what an earlier one left of its steps."""
    options = chain.options
    return ChainRecord(
        recipe=chain.name,
        source=chain.source,
        description=options.description,
        model=str(options.model),
        data=str(options.data),
        max_drop=options.max_drop,
        version=metadata.version("enc-encoder"),
        created=now() if before is None else before.created,
        steps=() if before is None else before.steps,
    )


def find_keys(chain: Chain) -> dict[str, str]:
    """The key of each step by its folder name. Reads all that the steps take from outside.

    Raises:
        EncError: a model or data that is not there.
    """
    seen: dict[str, str] = {}

    def content(what: str, name: str) -> str:
        if f"{what} {name}" not in seen:
            seen[f"{what} {name}"] = _hash_model(name) if what == "model" else hash_source(name)
        return seen[f"{what} {name}"]

    keys: dict[str, str] = {}
    for step in chain.steps:
        options = step.options
        named = {field: getattr(options, field) for field in step.kind.other_models}
        models = [*step.models, *(name for name in named.values() if name is not None and name != "none")]
        files = {
            name: value
            for name in type(options).model_fields
            if name not in NOT_IN_KEY and isinstance(value := getattr(options, name), Path)
        }
        data = getattr(options, "data", None)
        facts = {
            "command": step.command,
            "options": options.model_dump(mode="json", exclude={*NOT_IN_KEY, *named, *files}),
            "models": [keys.get(name) or content("model", name) for name in models],
            "named": [field for field, name in named.items() if name is not None],
            "data": None if data is None else content("data", data),
            "files": {name: content("data", str(path)) for name, path in files.items()},
            "version": metadata.version("enc-encoder"),
        }
        keys[step.folder] = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
    return keys


def _hash_model(name: str) -> str:
    """Of all files of the model called ``name``, its tokenizer's among them."""
    folder = resolve_model(name, exported=True)
    return _hash_files((str(path.relative_to(folder)), path) for path in model_files(folder))


def hash_source(name: str) -> str:
    """A hash of the content of data: of the bytes of files, of the rows of what is not here as files.

    Raises:
        DataError: there is no such data.
    """
    from encoder.sources import check_place, read_source

    check_place(name)
    path = Path(name).expanduser()
    if path.is_file():
        return _hash_files([("", path)])
    if path.is_dir():
        files = sorted(one for one in path.rglob("*") if one.is_file())
        return _hash_files((one.relative_to(path).as_posix(), one) for one in files)
    digest = hashlib.sha256()
    for split, table in read_source(name).tables.items():
        digest.update(json.dumps([split, table.columns], default=str, sort_keys=True).encode())
    return digest.hexdigest()


def _hash_files(files: Iterable[tuple[str, Path]]) -> str:
    digest = hashlib.sha256()
    for name, path in files:
        digest.update(f"{name}\0{path.stat().st_size}\0".encode())
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def find_finished(root: Path, step: Step, record: StepRecord | None, key: str) -> Run | None:
    """What ``step`` left behind, where it was run by ``key`` and all of it is still there."""
    if record is None or record.key != key:
        return None
    for folder in (root / step.folder, root / (step.folder + FAILED_SUFFIX)):
        try:
            run = read_run(folder / RUN_FILE)
        except ValueError:
            continue
        if run.command == step.command and _is_whole(folder, step, run):
            return run
    return None


def _is_whole(folder: Path, step: Step, run: Run) -> bool:
    """Whether the model beside ``run`` is the one that it made."""
    if step.makes is None or not isinstance(run, Result):
        return True
    try:
        return hash_model(folder) == run.model.sha256
    except (OSError, CheckpointError):
        return False


def clear(root: Path, step: Step) -> None:
    """Remove what a step of this folder name has left, finished, failed or not."""
    for suffix in ("", UNFINISHED_SUFFIX, FAILED_SUFFIX):
        shutil.rmtree(root / (step.folder + suffix), ignore_errors=True)


def changed_options(step: Step, record: StepRecord) -> Iterator[str]:
    """``num_epochs 3, now 2``: what of a step's options is not as it was."""
    options = step.options.model_dump(mode="json")
    for name, value in options.items():
        if name not in NOT_IN_KEY and record.options.get(name) != value:
            yield f"{name} {json.dumps(record.options.get(name))}, now {json.dumps(value)}"
