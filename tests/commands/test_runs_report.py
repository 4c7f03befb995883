"""Claims about the ledger as it is shown."""

import io
import re

import pytest
from rich.console import Console

from commands.runs_report import branches, show_runs
from commands.tables import open_console
from recipes.runs import Entry, runs
from recipes.runs_config import RunsConfig
from tests.results import make_bench, make_latency, make_result, make_size


@pytest.fixture
def ledger(tmp_path):
    folder = tmp_path / "runs"
    long = "a-name-that-somebody-wrote-down-in-full-because-nobody-told-them-how-tables-look"
    faster = {"latency": (make_latency(5.0),), "size": make_size(30_000_000)}
    for name, run in {
        "news": make_result("news", "a"),
        f"pruned/{long}": make_result("pruned", "b", parent="a", command="prune", **faster),
        "bench": make_bench((("news", "a"), ("pruned", "b"))),
    }.items():
        (folder / name).mkdir(parents=True)
        (folder / name / "run.json").write_text(run.to_json())
    return runs(RunsConfig(folder=folder))


@pytest.mark.parametrize("width", [80, 140])
def test_tables_fit_the_terminal_and_nothing_is_cut(ledger, width):
    console = Console(file=io.StringIO(), force_terminal=True, width=width, highlight=False, no_color=True)
    show_runs(ledger, console)
    shown = re.sub(r"\x1b\[[0-9;]*m", "", console.file.getvalue())
    assert max(map(len, shown.splitlines())) <= width
    assert "…" not in shown
    assert re.search(r"5\.00 +30\.0 MB", shown) or "5.00 (2.50×)" in shown


def test_list_is_newest_first_and_the_tree_has_ratios(ledger, capsys):
    show_runs(ledger, open_console())
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert all(line == line.rstrip() for line in shown.splitlines())
    assert "accuracy 0.9540 [0.9340, 0.9700]" in shown
    first, *_ = re.findall(r"^ (bench|news|pruned\S*) ", shown, re.MULTILINE)
    assert first == "bench"
    assert re.search(r"^ models/base +from elsewhere +– +– +–$", shown, re.MULTILINE)
    assert re.search(r"^ └─ news +finetune +0\.9540 +12\.50 +90\.0 MB$", shown, re.MULTILINE)
    assert re.search(r"├─ pruned/\S+ +prune +0\.9540 +5\.00 \(2\.50×\) +30\.0 MB \(0\.33\)", shown)
    assert re.search(r"│ └─ bench +bench +– +10\.00 \(1\.25×\)", shown)
    assert re.search(r"  └─ bench +bench", shown)


def test_latency_from_a_busy_machine_is_marked(tmp_path, capsys):
    (tmp_path / "run.json").write_text(make_result(latency=(make_latency(cpu_wait=0.5),)).to_json())
    show_runs(runs(RunsConfig(folder=tmp_path)), open_console())
    shown = capsys.readouterr().out
    assert "12.50 *" in shown and "not to be relied on" in shown


def test_empty_folder_says_how_to_begin(tmp_path, capsys):
    show_runs(runs(RunsConfig(folder=tmp_path)), open_console())
    assert "No runs in" in capsys.readouterr().out


def test_branches_go_on_as_long_as_there_is_a_sibling_below():
    depths = [0, 1, 2, 2, 3, 1, 2, 0, 1]
    values = dict.fromkeys(("parent", "latency", "speedup", "bytes_on_disk", "size_ratio"))
    drawn = branches([Entry(name="x", depth=depth, **values) for depth in depths])
    assert drawn == ["", "├─ ", "│ ├─ ", "│ └─ ", "│   └─ ", "└─ ", "  └─ ", "", "└─ "]
