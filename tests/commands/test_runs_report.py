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
    assert re.search(r"5\.00 \(~2\.50×\) +30\.0 MB \(0\.33\)", shown)
    assert re.search(r"accuracy 0\.9540 +0\.9340–0\.9700", shown)


def test_scores_take_a_line_each_on_80_columns(tmp_path):
    data = make_result().data.model_copy(update={"source": "/home/somebody/data/goemotions"})
    scores = {"scores": {"validation": {"accuracy": 0.9}}, "intervals": {}}
    for name, run in {
        "seed-1": make_result("a", "a"),
        "some-longer-name": make_result("b", "b", data=data),
        "by-validation": make_result("c", "c", data=data, **scores),
    }.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_text(run.to_json())
    console = Console(file=io.StringIO(), force_terminal=True, width=80, highlight=False, no_color=True)
    show_runs(runs(RunsConfig(folder=tmp_path)), console)
    shown = re.sub(r"\x1b\[[0-9;]*m", "", console.file.getvalue())
    list_ = [line.strip() for line in shown.partition("model  ")[0].splitlines() if line.strip()][2:]
    assert [line.split()[0] for line in list_] == [
        "by-validation",
        "(validation)",
        "some-longer-name",
        "seed-1",
    ]
    assert all("goemotions" in line for line in (list_[0], list_[2])) and "somebody" not in shown
    assert list_[2].endswith("accuracy 0.9540  0.9340–0.9700")


def test_list_is_newest_first_and_the_tree_has_ratios(ledger, capsys):
    show_runs(ledger, open_console())
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert all(line == line.rstrip() for line in shown.splitlines())
    assert re.search(r"^ news +\S+ \S+ +finetune +news\.csv +accuracy 0\.9540 +0\.9340–0\.9700$", shown, re.M)
    first, *_ = re.findall(r"^ (bench|news|pruned\S*) ", shown, re.MULTILINE)
    assert first == "bench"
    assert re.search(r"^ models/base +elsewhere +– +– +–$", shown, re.MULTILINE)
    assert re.search(r"^ └─ news +finetune +0\.9540 +12\.50 +90\.0 MB$", shown, re.MULTILINE)
    assert re.search(r"├─ pruned/\S+ +prune +0\.9540 +5\.00 \(~2\.50×\) +30\.0 MB \(0\.33\)", shown)
    assert re.search(r"│ └─ bench +bench +– +10\.00 \(~1\.25×\)", shown)
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
