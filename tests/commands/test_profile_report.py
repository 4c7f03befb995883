"""Claims about the table of `enc profile`."""

import io
import re

import pytest
from rich.console import Console

from commands.profile_report import show_profile
from commands.tables import open_console
from compress.profile import Profile, ProfileRow
from compress.stopwatch import PARTS
from recipes.measurements import ProfileResult
from recipes.result import Parent
from tests.results import MACHINE, START, TEXTS, make_model, make_shape


def make_row(length, attention):
    values = (0.002, attention / 2, attention / 2, 0.9 - attention, 0.058, 0.04)
    shares = dict(zip(PARTS, values, strict=True))
    part_ms = {part: share * 12345 for part, share in shares.items()}
    macs = dict.fromkeys(PARTS, 0.0) | {"projections": 0.4, "feed-forward": 0.6}
    return ProfileRow(shape=make_shape(1, length), part_ms=part_ms, shares=shares, mac_shares=macs)


def made(overtakes_at=300.0, overtakes_at_macs=768.0):
    lengths = {16: 0.3, 128: 0.4, 512: 0.6, None: 0.35}
    return ProfileResult(
        command="profile",
        created=START,
        seconds=10.0,
        output=None,
        config={},
        seed=0,
        machine=MACHINE,
        parent=Parent(source="runs/a", sha256="a"),
        notes=(),
        model=make_model(),
        data=TEXTS,
        profile=Profile(
            rows=tuple(make_row(*one) for one in lengths.items()),
            overtakes_at=overtakes_at,
            overtakes_at_macs=overtakes_at_macs,
            runtime="torch-fp32",
            device="cpu",
            device_name=MACHINE.cpu,
            threads=16,
        ),
        advice="On the lengths of this data neurons are the better thing to prune.",
    )


@pytest.mark.parametrize("width", [80, 140])
def test_table_fits_the_terminal_with_time_beside_arithmetic(width):
    console = Console(file=io.StringIO(), force_terminal=True, width=width, highlight=False, no_color=True)
    show_profile(made(), console)
    shown = re.sub(r"\x1b\[[0-9;]*m", "", console.file.getvalue())
    assert max(map(len, shown.splitlines())) <= width
    assert re.search(r"512 +12,345 +time +<1% +30% +30% +30% +6% +4%", shown)
    assert re.search(r"FLOPs +0% +40% +0% +60% +0% +0%", shown)
    assert re.search(r"~93 +12,345 +time +<1% +18% +18% +55%", shown)


def test_length_that_was_disturbed_is_marked_and_that_is_said(capsys):
    result = made()
    quiet, busy, *others = result.profile.rows
    rows = (quiet, busy.model_copy(update={"cpu_wait": 0.31}), *others)
    disturbed = result.model_copy(update={"profile": result.profile.model_copy(update={"rows": rows})})
    show_profile(disturbed, open_console())
    shown = capsys.readouterr().out
    assert re.search(r"^ +128 +12,345 \* +time", shown, re.MULTILINE)
    assert re.search(r"^ +16 +12,345 +time", shown, re.MULTILINE)
    assert "not to be relied on: other processes had the cores up to 31% of the time. Repeat" in shown
    show_profile(result, open_console())
    assert "relied" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("result", "sentence"),
    [
        (made(), "from about 300 tokens on; by arithmetic alone from 768 tokens on."),
        (made(None), "Attention does not overtake the feed-forward blocks up to 512 tokens; by arithmetic"),
        (made(16.0, 1.0), "at all lengths measured; by arithmetic alone at any length."),
        (made(300.0, None), "from about 300 tokens on."),
    ],
)
def test_it_says_where_attention_overtakes(result, sentence, capsys):
    show_profile(result, open_console())
    shown = capsys.readouterr().out
    assert sentence in shown
    assert "On these rows attention takes 35% of the time, the feed-forward blocks 55%." in shown
    assert shown.rstrip().endswith("neurons are the better thing to prune.")
    assert "\x1b" not in shown
