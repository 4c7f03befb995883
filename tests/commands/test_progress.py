"""Claims about a run as it is shown on stderr."""

import io

import pytest
from rich.console import Console

import commands.progress
from commands.progress import PlainProgress, TerminalProgress, show_progress
from encoder.training import TrainingProgress
from recipes.forecast import Forecast, Work


def step(number, of=1000, validation=None, loss=0.5):
    return TrainingProgress(
        epoch=1,
        num_epochs=2,
        step=number,
        num_steps=of,
        loss=loss,
        rows_per_s=93.0,
        eta_s=42.0,
        validation=validation,
    )


@pytest.fixture
def clock(monkeypatch):
    """Seconds as the progress sees them; a test moves them."""
    seconds = [0.0]
    monkeypatch.setattr(commands.progress.time, "monotonic", lambda: seconds[0])
    return seconds


def test_file_gets_no_more_than_a_line_each_ten_seconds_and_tenth(clock, capsys):
    progress = show_progress()
    assert isinstance(progress, PlainProgress)
    progress.stage("Training")
    for number in range(1, 1001):
        clock[0] += 1.0  # a thousand seconds: a tenth takes a hundred
        progress.training(step(number))
    assert 1 + 8 <= len(capsys.readouterr().err.splitlines()) <= 1 + 10
    progress.stage("Training")
    for number in range(1, 1001):
        clock[0] += 0.05  # fifty seconds
        progress.training(step(number))
    assert len(capsys.readouterr().err.splitlines()) <= 1 + 5


def test_line_has_loss_speed_and_time_left(clock, capsys):
    progress = show_progress()
    progress.stage("Training")
    clock[0] = 20.0
    progress.training(step(500))
    assert capsys.readouterr().err.splitlines()[-1] == (
        "  step 500 of 1,000 · epoch 1/2 · loss 0.500 · 93 rows/s · 42 s left"
    )


def test_each_epoch_has_its_line(clock, capsys):
    progress = show_progress()
    progress.training(step(500, validation={"accuracy": 0.95, "macro_f1": 0.9}))
    assert "epoch 1/2 · loss 0.5000 · validation accuracy 0.9500, macro F1 0.9000" in capsys.readouterr().err


@pytest.mark.parametrize("width", [40, 80, 140])
def test_terminal_shows_a_bar_and_cleans_up_after_an_interrupt(width):
    console = Console(file=io.StringIO(), force_terminal=True, width=width)
    with pytest.raises(KeyboardInterrupt), TerminalProgress(console) as progress:
        progress.stage("Training")
        progress.training(step(500))
        raise KeyboardInterrupt
    shown = console.file.getvalue()
    assert "━" in shown
    assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l")  # the cursor is back


def test_what_is_ahead_is_a_line_for_the_whole_and_one_for_each_part(capsys):
    works = (Work("a table", 61.0), Work("an export", 10.0, 1, 4), Work("a teacher", 5.0, 0, 1))
    show_progress().ahead(Forecast((*works, Work("a training", 90.0, 0, 3)), trial_seconds=8.0))
    assert capsys.readouterr().err.splitlines() == [
        "Ahead: about 1 min 11 s to 6 min 16 s, by how much has to be tried",
        "  a table: 1 min 01 s",
        "  an export: 1 to 4 times 10 s",
        "  a teacher: if needed, 5.0 s",
        "  a training: 0 to 3 times 1 min 30 s",
        "  Times are by a trial of 8.0 s on this machine as it is now, and right within a factor of two if "
        "it stays so.",
    ]


def test_what_is_left_is_told_where_there_is_no_unit(clock, capsys):
    progress = show_progress()
    progress.stage("Measuring")
    progress.working(0, 40)
    clock[0] = 20.0
    progress.working(10, 40)
    assert capsys.readouterr().err.splitlines()[-1] == "  10 of 40 · 1 min 00 s left"


def test_loss_is_not_shown_before_there_is_one():
    assert "loss" not in commands.progress.describe_step(step(1, loss=0.0))
