"""Claims about tables: they fit 80 columns, use 140, and are plain text in a file."""

import io
import re

import pytest
from rich.console import Console

from commands.result_tables import show_data, show_result, time_fact, training_facts
from commands.tables import duration, encoder_words, number, open_console, size
from compress.latency import Latency, Unavailable
from compress.uncertainty import McNemar, ScoreDifference
from compress.workload import Shape
from encoder.data_report import DataReport, Dropped, LabelRange, Overlap, SplitReport
from recipes.finetune import finetune
from recipes.finetune_config import FinetuneConfig
from recipes.result import Against
from recipes.variant import Variant

LONG = "an_intent_name_that_somebody_wrote_down_in_full_because_nobody_told_them_how_tables_look_then"


def latency(batch_size, device="cpu", **changes):
    values = {
        "runtime": "torch-fp32",
        "device": device,
        "device_name": "A Processor With A Rather Long Name (R) CPU @ 2.00GHz, Seventh Generation",
        "precision": "fp32",
        "threads": 16,
        "shape": Shape(
            batch_size=batch_size,
            sequence_length=None,
            mean_tokens=212.4,
            max_tokens=512,
            padding=0.2,
            batches=9,
        ),
        "p50_ms": 1234.5,
        "p95_ms": 2345.6,
        "p99_ms": 3456.7,
        "mean_ms": 1300.0,
        "rows_per_s": 123456.7,
        "tokens_per_s": 1e6,
        "runs": 100,
        "noise": 0.02,
        "warm_up_runs": 10,
        "steady": True,
        "peak_memory_bytes": 10**9,
    }
    return Latency(**values | changes)


@pytest.fixture(scope="module")
def result(tiny_model, reviews, tmp_path_factory):
    output = tmp_path_factory.mktemp("report") / LONG
    options = {"model": str(tiny_model), "data": str(reviews), "output": output, "num_epochs": 1}
    result = finetune(FinetuneConfig(**options, freeze_layers=1, latency=False))
    gpu = Unavailable(runtime="torch-fp32", device="cuda", reason="no GPU on this machine")
    return result.model_copy(update={"latency": (latency(1), latency(32), gpu)})


@pytest.fixture
def report():
    names = [f"class_{number:02d}" for number in range(40)] + [LONG]
    train = SplitReport(
        origin="train.csv",
        rows=1000,
        classes={name: 100 - place for place, name in enumerate(names)},
        dropped=(Dropped("empty text", 7, ("train.csv:3", "train.csv:9")),),
        duplicates=12,
        conflicts=2,
    )
    test = SplitReport(origin="test.csv", rows=100, classes=dict.fromkeys(names, 2))
    return DataReport(
        source="data",
        task="single-label, 41 labels, single texts: labels are 41 different names",
        columns={"text": "body", "label": "intent"},
        splits={"train": train, "test": test},
        overlaps=(Overlap("train", "test", 5, 1),),
        notes=("no validation split",),
    )


def terminal(width):
    return Console(file=io.StringIO(), force_terminal=True, width=width, highlight=False, no_color=True)


def plain(text):
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.mark.parametrize("width", [80, 140])
def test_tables_fit_the_terminal_and_nothing_is_cut(result, report, width):
    console = terminal(width)
    show_result(result, console)
    lines = plain(console.file.getvalue()).splitlines()
    assert max(map(len, lines)) <= width
    whole = "".join(line.strip() for line in lines)
    assert "…" not in whole
    assert LONG in whole.replace(" ", "")
    console = terminal(width)
    show_data(report, console)
    lines = plain(console.file.getvalue()).splitlines()
    assert max(map(len, lines)) <= width


def test_result_says_everything_that_was_asked_for(result, capsys):
    show_result(result, open_console())
    shown = capsys.readouterr().out
    for words in (
        "validation",
        "test",
        "MCC",
        "1234.50",
        "2345.60",
        "16 threads",
        "A Processor With A Rather Long Name",
        "cuda: no GPU on this machine",
        "peak memory",
        "rows/s",
        "without dropout",
        str(result.output),
    ):
        assert words in shown, words


@pytest.fixture
def compared(result):
    """The result, its test rows scored with another model too."""
    difference = ScoreDifference(metric="accuracy", difference=-0.021, low=-0.04, high=-0.002, rows=24)
    against = Against(
        source="runs/first",
        sha256="b",
        split="test",
        scores=result.scores["test"],
        difference=difference,
        mcnemar=McNemar(only_first=1, only_second=12, p_value=0.0034),
        verdict="worse than the other, more than chance explains on 24 rows",
    )
    return result.model_copy(update={"against": against})


@pytest.mark.parametrize("width", [80, 140])
def test_other_model_stands_below_with_what_may_be_claimed(compared, width):
    console = terminal(width)
    show_result(compared, console)
    shown = plain(console.file.getvalue())
    assert max(map(len, shown.splitlines())) <= width
    for words in (
        "95% interval",
        "Worse than the other, more than chance explains on 24 rows.",
        "Difference in accuracy: -0.0210, 95% interval -0.0400 to -0.0020.",
        "1 row right here alone, 12 there alone; McNemar's exact test: p = 0.0034.",
    ):
        assert words in shown, words


def test_other_models_row_says_which_rows_it_is_about(compared, capsys):
    show_result(compared, open_console())
    assert re.search(r"^ test, runs/first +0\.\d{4} .* 24$", capsys.readouterr().out, re.MULTILINE)
    only = {"scores": {"test": compared.scores["test"]}}
    show_result(compared.model_copy(update=only), open_console())
    assert re.search(r"^ runs/first +0\.\d{4} .* 24$", capsys.readouterr().out, re.MULTILINE)


def test_file_gets_plain_lines_without_blanks_at_their_ends(result, report, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    show_result(result, open_console())
    show_data(report, open_console(stderr=True))
    shown = capsys.readouterr()
    for text in (shown.out, shown.err):
        assert "\x1b" not in text
        assert all(line == line.rstrip() for line in text.splitlines())
    assert any(result.output in line for line in shown.out.splitlines())
    assert any(LONG in line for line in shown.err.splitlines())


def test_no_color_is_honoured_on_a_terminal(result, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    console = Console(file=io.StringIO(), force_terminal=True, width=80)
    show_result(result, console)
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]", console.file.getvalue())


def test_long_class_lists_show_the_most_and_the_least_frequent(report, capsys):
    show_data(report, open_console())
    shown = capsys.readouterr().out
    for name in ("class_00", "class_05", "… 32 more", "class_39", LONG):
        assert name in shown
    assert "class_20" not in shown


def test_what_is_odd_about_the_data_is_said(report, capsys):
    show_data(report, open_console())
    shown = capsys.readouterr().out
    for words in (
        "text from 'body', label from 'intent'",
        "no validation split",
        "train: 7 rows left out: empty text (train.csv:3, train.csv:9, …)",
        "train: 12 rows with the text of an earlier row",
        "train: 2 texts with more than one label",
        "test: 5 rows with a text that is also in train, 1 of them with another label",
    ):
        assert words in shown


def test_regression_shows_the_range_of_its_labels(capsys):
    split = SplitReport(origin="x", rows=3, label_range=LabelRange(0.0, 2.5, 5.0))
    show_data(DataReport("x", "regression", {"text": "a"}, {"train": split}), open_console())
    assert re.search(r"largest label +5", capsys.readouterr().out)


def test_unsteady_measurement_is_said(result, capsys):
    noisy = result.model_copy(update={"latency": (latency(1, steady=False),)})
    show_result(noisy, open_console())
    assert "repeat it when it is quiet" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (duration(4.24), "4.2 s"),
        (duration(59.4), "59 s"),
        (duration(185), "3 min 05 s"),
        (duration(7800), "2 h 10 min"),
        (duration(None), "?"),
        (size(950), "950 bytes"),
        (size(91_632_000), "91.6 MB"),
        (size(2.5e9), "2.5 GB"),
        (number(None), "–"),
        (number(0.97304), "0.9730"),
    ],
)
def test_numbers_are_written_for_reading(shown, text):
    assert shown == text


def test_a_model_is_described_by_how_its_layers_are_built():
    plain = {"norm": "post", "residual": "add", "position_embedding": "learned", "activation": "gelu"}
    assert encoder_words(1, 64, Variant(**plain)) == "1 layer, hidden size 64, post-norm"
    other = plain | {"norm": "pre", "position_embedding": "rotary", "activation": "silu", "gated": True}
    blocks = {"residual": "block_attention", "residual_block_size": 2}
    assert encoder_words(4, 64, Variant(**other | blocks)) == (
        "4 layers, hidden size 64, pre-norm, rotary positions, silu, gated, residual block_attention in "
        "blocks of 2 sublayers"
    )
    assert encoder_words(4, 64, None) == "4 layers, hidden size 64"  # of an older run.json


def test_times_of_a_resumed_training_say_which_run_they_are_of(result):
    assert time_fact(20.0, result.training) == ("whole run", "20 s")
    resumed = result.training.model_copy(update={"resumed_from_step": 3})
    assert time_fact(20.0, resumed) == ("this run", "20 s, without what was done before the interruption")
    assert dict(training_facts(resumed))["training"].endswith(", with what was done before the interruption")
