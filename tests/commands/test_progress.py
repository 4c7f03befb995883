"""Claims about a run as it is shown on stderr."""

import io

import pytest
from rich.console import Console

import commands.progress
from commands.progress import PlainProgress, TerminalProgress, show_progress
from encoder.training import TrainingProgress


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


def test_loss_is_not_shown_before_there_is_one():
    assert "loss" not in commands.progress.describe_step(step(1, loss=0.0))
