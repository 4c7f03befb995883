import json
from pathlib import Path

import pytest

from encoder.errors import ConfigError
from encoder.files import OutputFolder, write_atomic, write_json


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "a.txt"
    write_atomic(path, "old")
    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
        with pytest.raises(OSError, match="disk full"):
            write_atomic(path, "new")
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]
    assert path.read_text() == "old"


def test_json_keeps_text_readable(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"라벨": 1})
    assert "라벨" in (tmp_path / "a.json").read_text(encoding="utf-8")
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8")) == {"라벨": 1}


def test_the_folder_appears_only_when_finished(tmp_path: Path) -> None:
    output = OutputFolder(tmp_path / "deep" / "run")
    output.check()
    (output.open() / "x").write_text("1")
    assert not output.path.exists() and output.work.name == "run.unfinished"
    output.finish()
    assert (output.path / "x").read_text() == "1" and not output.work.exists()


def test_what_is_there_is_refused_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "model").touch()
    (tmp_path / "file").touch()
    (tmp_path / "half.unfinished").mkdir()
    for name, message in [
        ("run", "--overwrite"),
        ("file", "a file of that name"),
        ("half", "--resume continues"),
    ]:
        with pytest.raises(ConfigError, match=message):
            OutputFolder(tmp_path / name, resume=False).check()
    with pytest.raises(ConfigError, match="exclude each other"):
        OutputFolder(tmp_path / "new", overwrite=True, resume=True).check()


@pytest.mark.parametrize("path", ["", ".", "..", "/"])
def test_a_path_without_a_name_of_its_own_is_refused(path: str) -> None:
    with pytest.raises(ConfigError, match="expected the name of a folder to create"):
        OutputFolder(Path(path)).check()


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path, monkeypatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "Read-only file system")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(ConfigError, match="cannot be created: Read-only file system"):
        OutputFolder(tmp_path / "run").open()


def test_an_empty_folder_is_as_good_as_none(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    output = OutputFolder(tmp_path / "run")
    output.check()
    output.open()
    output.finish()
    assert output.path.is_dir()


def test_overwriting_replaces_the_old_folder_at_the_end_only(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").touch()
    output = OutputFolder(tmp_path / "run", overwrite=True)
    output.check()
    (output.open() / "new").touch()
    assert (tmp_path / "run" / "run.json").exists()
    output.finish()
    assert [p.name for p in tmp_path.iterdir()] == ["run"]
    assert [p.name for p in output.path.iterdir()] == ["new"]


def test_what_no_run_has_made_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "thesis.txt").write_text("ten years")
    with pytest.raises(ConfigError, match=r"no run of enc made it \(no run.json.*delete it yourself"):
        OutputFolder(tmp_path / "project", overwrite=True).check()
    assert (tmp_path / "project" / "thesis.txt").read_text() == "ten years"


def test_nothing_is_made_inside_a_model(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    for name in ("run.json", "config.json"):
        (tmp_path / "model" / name).touch()
    with pytest.raises(ConfigError, match=r"is the folder of a model.*choose a place outside"):
        OutputFolder(tmp_path / "model" / "scores" / "first").check()


def test_resuming_keeps_the_work_and_starting_again_does_not(tmp_path: Path) -> None:
    work = OutputFolder(tmp_path / "run").open()
    (work / "state").touch()
    assert (OutputFolder(tmp_path / "run", resume=True).open() / "state").exists()
    assert not (OutputFolder(tmp_path / "run", overwrite=True).open() / "state").exists()


@pytest.mark.parametrize("resume", [None, False])
def test_an_interrupted_run_is_to_be_resumed_only_where_a_command_can(tmp_path: Path, resume) -> None:
    OutputFolder(tmp_path / "run").open()
    with pytest.raises(ConfigError, match="--overwrite starts again") as caught:
        OutputFolder(tmp_path / "run", resume=resume).check()
    assert ("--resume" in str(caught.value)) == (resume is False)
