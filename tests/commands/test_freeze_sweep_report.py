"""Claims about a sweep on a screen: a table, a curve and a verdict, at any width."""

import io
import re

import pytest
from rich.console import Console

from commands.freeze_sweep_report import PLOT_HEIGHT, plot, show_sweep
from commands.tables import open_console
from tests.results import make_result, make_sweep

BEND = {k: (0.95, 0.951, 0.949) if k < 8 else (0.95 - 0.02 * (k - 7),) * 3 for k in range(13)}


def make(scores=BEND, **changes):
    return make_result(command="freeze-sweep", sweep=make_sweep(scores, **changes))


def shown(result, width):
    console = Console(file=io.StringIO(), force_terminal=True, width=width, no_color=True, highlight=False)
    show_sweep(result, console)
    return re.sub(r"\x1b\[[0-9;]*m", "", console.file.getvalue())


@pytest.mark.parametrize("width", [80, 140])
@pytest.mark.parametrize("layers", [1, 3, 6, 12, 24])
def test_nothing_is_wider_than_the_terminal_or_cut(width, layers):
    scores = {k: (0.95 - 0.01 * k, 0.951 - 0.01 * k) for k in range(layers + 1)}
    text = shown(make(scores), width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    for k in range(layers + 1):
        assert re.search(rf"^ +{k} +\d+\.\d M +0\.\d{{4}} ± 0\.\d{{4}} ", text, re.MULTILINE), k
    assert ("loss" in text.split("k: layers")[0]) == (width > 80)


def test_times_and_memory_stand_beside_their_share_of_k_0(capsys):
    show_sweep(make(), open_console())
    text = capsys.readouterr().out
    assert re.search(r"^ +0 .* 1 min 40 s \(1\.00\) +1\.0 GB \(1\.00\)", text, re.MULTILINE)
    assert re.search(r"^ +6 .* 40 s \(0\.40\) +400\.0 MB \(0\.40\)", text, re.MULTILINE)
    assert re.search(r"^ +7 .*← chosen$", text, re.MULTILINE)
    assert re.search(r"^ +8 .*hurts$", text, re.MULTILINE)
    assert "Scores on 500 validation rows, 3 seeds a point; in brackets the share of k = 0." in text
    assert "computed once for all points, which took 12 s" in text
    assert "From k = 8 on it hurts: it loses 2.0 points" in text
    assert "its latency is that of every k" in text


def test_shares_are_missing_without_k_0_and_memory_where_the_system_does_not_tell(capsys):
    show_sweep(make({k: BEND[k] for k in (3, 9)}, memory=False), open_console())
    text = capsys.readouterr().out
    assert "(" not in next(line for line in text.splitlines() if re.match(" +3 ", line))
    assert "share of k = 0" not in text
    assert "Memory is not known: this system keeps one peak" in text


def test_what_is_not_sure_is_marked(capsys):
    noisy = {0: (0.95, 0.93), 1: (0.93, 0.95), 2: (0.95, 0.93), 3: (0.90, 0.88)}
    show_sweep(make(noisy), open_console())
    text = capsys.readouterr().out
    assert re.search(r"^ +3 .*undecided$", text, re.MULTILINE)
    assert "◌ undecided" in text
    show_sweep(make(noisy, max_drop=4.0), open_console())
    text = capsys.readouterr().out
    assert re.search(r"^ +3 .*undecided$", text, re.MULTILINE)
    assert "◌ undecided" in text and "hurt" not in text.replace("shown to hurt", "")
    show_sweep(make(noisy, max_drop=6.0), open_console())
    text = capsys.readouterr().out
    assert re.search(r"^ +3 .*← chosen \?$", text, re.MULTILINE)
    assert "?: within the limit as measured, which the noise leaves open." in text


def test_curve_shows_means_where_they_are_and_seeds_around_them():
    points = make_sweep({0: (0.9, 0.8), 1: (0.85, 0.85), 2: (0.5, 0.5)}).points
    lines = plot(points, "accuracy")
    body = lines[1 : PLOT_HEIGHT + 1]
    assert body[0].startswith("   0.9000 ┤") and body[-1].startswith("   0.5000 ┤")
    column = {k: 12 + 6 * k for k in range(3)}
    drawn = {k: "".join(line[column[k] : column[k] + 1] for line in body).strip() for k in range(3)}
    assert drawn[0] == "│●│" and drawn[1] in "●◌" and drawn[2] in "○◌"
    assert body[-1][column[2]] in "○◌"
    assert lines[PLOT_HEIGHT + 2].split() == ["k", "0", "1", "2"]
    assert "from the lowest seed to the highest" in lines[-1]


@pytest.mark.parametrize("scores", [{0: (1.0, 1.0), 1: (1.0, 1.0)}, {0: (0.5,), 4: (0.5,)}])
def test_flat_curve_is_drawn_as_one(scores):
    lines = plot(make_sweep(scores).points, "accuracy")
    (row,) = [line for line in lines[1:-1] if "●" in line]
    assert row.count("●") == 2


def test_single_point_has_no_curve():
    assert plot(make_sweep({3: (0.9,)}).points, "accuracy") == []
