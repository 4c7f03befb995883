"""Claims about the tables of `enc bench`."""

import io
import re

import pytest
from rich.console import Console

from commands.bench_report import letter, show_bench
from commands.tables import open_console
from compress.latency import Unavailable
from recipes.measurements import BenchRow
from tests.results import TEXTS, make_bench, make_latency, make_ratio, make_shape

LONG = "runs/a-name-that-somebody-wrote-down-in-full-because-nobody-told-them-how-tables-look-then-at-all"
DATA = make_shape(32, None)


@pytest.fixture
def result():
    """Three models, two runtimes and a missing GPU, a grid and the data, with the largest numbers."""
    rows = []
    for runtime in ("torch-fp32", "onnx-fp32"):
        for model in range(3):
            for shape in (make_shape(1, 512), DATA):
                big = {"p50_ms": 12345.6, "rows_per_s": 123456.7, "tokens_per_s": 12345678.9, "noise": 0.123}
                rows.append(BenchRow(model=model, latency=make_latency(runtime=runtime, shape=shape, **big)))
        gpu = Unavailable(runtime=runtime, device="cuda", reason="no GPU on this machine")
        rows += [BenchRow(model=model, latency=gpu) for model in range(3)]
    ratios = [
        make_ratio(shape=make_shape(1, 512)),
        make_ratio(0.8, 0.7, 0.9, "slower", shape=DATA),
        make_ratio(1.02, 0.95, 1.09, "inside the noise", model=2, shape=DATA),
    ]
    models = (("runs/a", "a"), (LONG, "b"), ("runs/c", "c"))
    return make_bench(models, rows, ratios, data=TEXTS, output="runs/bench")


def shown_on(result, width):
    console = Console(file=io.StringIO(), force_terminal=True, width=width, highlight=False, no_color=True)
    show_bench(result, console)
    return re.sub(r"\x1b\[[0-9;]*m", "", console.file.getvalue())


@pytest.mark.parametrize("width", [80, 140])
def test_tables_fit_the_terminal_and_nothing_is_cut(result, width):
    shown = shown_on(result, width)
    assert max(map(len, shown.splitlines())) <= width
    assert "…" not in shown
    assert LONG in "".join(line.strip() for line in shown.splitlines()).replace(" ", "")


def test_at_eighty_columns_numbers_stay_in_one_piece(result):
    shown = shown_on(result, 80)
    assert re.search(r"A +1 +512 +12,346 +14,815 +18,518 +123,457 +12\.35 M +12\.3%", shown)
    assert re.search(r"C, torch-fp32 +32 +~93 +1\.02× +0\.95–1\.09 +inside the noise", shown)


def test_file_gets_plain_lines_that_say_what_was_measured_and_where(result, capsys):
    show_bench(result, open_console())
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert all(line == line.rstrip() for line in shown.splitlines())
    for words in (
        "p99 ms",
        "noise",
        "torch-fp32 on cuda: no GPU on this machine",
        "compared with A, torch-fp32 on cpu",
        "without embeddings",
        "MACs per token, 128 tokens",
        "on disk",
        "memory, onnx-fp32 on cpu",
        "Seventh Generation, 16 threads of 16 cores",
        "avx512_vnni avx512_bf16 amx_int8",
        "torch 2.13.0, onnxruntime 1.25.0",
        "data: 500 test rows of news.csv; tokens a row: median 81, 95% up to 240, longest 512",
        "3 rows cut by 1,200 tokens in all",
        "up to 25% of what it computes here",
        "Measured in turns in 6 launches",
        "saved in   runs/bench",
    ):
        assert words in shown, words


def test_one_model_has_no_letter_and_no_ratio(capsys):
    show_bench(make_bench(), open_console())
    shown = capsys.readouterr().out
    assert re.search(r"^ batch +tokens +p50 ms", shown, re.MULTILINE)
    assert "compared" not in shown and "speed-up" not in shown


def test_line_that_was_disturbed_is_marked(capsys):
    reasons = {"steady": "runs were not steady after the warm-up.", "cpu_wait": "up to 40% of the time."}
    for change in ({"steady": False}, {"cpu_wait": 0.4}):
        show_bench(make_bench(rows=[BenchRow(model=0, latency=make_latency(**change))]), open_console())
        shown = capsys.readouterr().out
        assert "2.1% *" in shown and "Repeat it when the machine is quiet" in shown
        assert [name for name, reason in reasons.items() if reason in shown] == list(change)
    assert "had the cores up to 40% of the time" in shown


def test_letters_go_on_after_the_alphabet():
    assert [letter(number) for number in (0, 25, 26, 52)] == ["A", "Z", "A2", "A3"]
