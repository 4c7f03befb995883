"""Claims about reading runs and about the tree they make."""

import json

import pytest

from recipes.ledger import make_tree, read_runs
from recipes.result import Parent
from tests.results import make_bench, make_result


@pytest.fixture
def write(tmp_path):
    """Write a run's run.json into a folder of its name."""

    def write(run, name):
        folder = tmp_path / name
        folder.mkdir(parents=True)
        (folder / "run.json").write_text(run.to_json())
        return folder

    return write


def drawn(folder):
    """The tree as (depth, name) pairs, models from outside in brackets."""
    entries, problems = read_runs(folder)
    assert problems == []
    return [
        (depth, node.entry.folder.name if node.entry else f"({node.source})")
        for root in make_tree(entries)
        for depth, node in root.walk()
    ]


def test_chain_is_followed_by_the_hashes_wherever_the_folders_went(write, tmp_path):
    write(make_result("old/place/a", "a"), "a")
    write(make_result("old/place/b", "b", parent="a", parent_source="old/place/a"), "b")
    write(make_result("old/place/c", "c", parent="b", parent_source="old/place/b"), "deeper/c")
    write(make_result("other", "d", parent="a", parent_source="old/place/a"), "d")
    assert drawn(tmp_path) == [(0, "(models/base)"), (1, "a"), (2, "b"), (3, "c"), (2, "d")]


def test_measurements_hang_under_the_model_they_measured(write, tmp_path):
    write(make_result("a", "a"), "a")
    write(make_result("b", "b", parent="a"), "b")
    write(make_result("b", "b", parent="b", command="evaluate"), "scored")
    write(make_bench((("a", "a"), ("b", "b"), ("a", "a"))), "bench")
    assert drawn(tmp_path) == [
        (0, "(models/base)"),
        (1, "a"),
        (2, "b"),
        (3, "scored"),
        (3, "bench"),
        (2, "bench"),
    ]


def test_parent_that_is_gone_stands_where_its_own_parent_was(write, tmp_path):
    write(make_result("a", "a"), "a")
    head = {"command": "prune", "parent": {"source": "runs/a", "sha256": "a", "run": None}}
    gone = Parent(source="runs/gone", sha256="g", run=head)
    write(make_result("c", "c").model_copy(update={"parent": gone}), "c")
    write(make_result("d", "d").model_copy(update={"parent": gone}), "d")
    assert drawn(tmp_path) == [(0, "(models/base)"), (1, "a"), (2, "(runs/gone)"), (3, "c"), (3, "d")]


def test_of_equal_models_the_one_that_was_named_is_the_parent(write, tmp_path):
    write(make_result("first", "a"), "first")
    second = write(make_result("second", "a"), "second")
    write(make_result("c", "c", parent="a", parent_source=str(second)), "c")
    assert drawn(tmp_path) == [(0, "(models/base)"), (1, "first"), (1, "second"), (2, "c")]


def test_run_without_a_parent_is_a_root(write, tmp_path):
    write(make_result("a", "a", parent=None), "a")
    assert drawn(tmp_path) == [(0, "a")]


def test_forged_circle_ends(write, tmp_path):
    write(make_result("a", "a", parent="b"), "a")
    write(make_result("b", "b", parent="a"), "b")
    write(make_result("c", "c", parent="c"), "c")
    assert sorted(name for _, name in drawn(tmp_path)) == ["(models/base)", "a", "b", "c"]


def test_broken_and_foreign_files_are_named_and_left_out(write, tmp_path):
    write(make_result("a", "a"), "a")
    write(make_result("b", "b"), "b.unfinished")
    newer = json.loads(make_result("n", "n").to_json()) | {"schema_version": 99}
    lacking = json.loads(make_result("l", "l").to_json())
    del lacking["model"]
    for name, text in {
        "broken": "{",
        "binary": "\x00\x01",
        "foreign": '{"scripts": {}}',
        "list": "[1]",
        "newer": json.dumps(newer),
        "lacking": json.dumps(lacking),
    }.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_text(text)
    entries, problems = read_runs(tmp_path)
    assert [entry.folder.name for entry in entries] == ["a"]
    assert problems == [
        f"{tmp_path}/binary/run.json: not JSON; left out",
        f"{tmp_path}/broken/run.json: not JSON; left out",
        f"{tmp_path}/foreign/run.json: not a run of enc; left out",
        f"{tmp_path}/lacking/run.json: not a run of enc: model: field required; left out",
        f"{tmp_path}/list/run.json: not a run of enc; left out",
        f"{tmp_path}/newer/run.json: by another enc: its schema_version is 99, this one reads 1; left out",
    ]


def test_run_of_an_older_enc_without_intervals_is_read(write, tmp_path):
    old = json.loads(make_result("a", "a").to_json())
    del old["intervals"], old["against"]
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "run.json").write_text(json.dumps(old))
    assert drawn(tmp_path) == [(0, "(models/base)"), (1, "a")]
