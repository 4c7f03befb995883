"""Claims about `enc report` and the page it writes of runs of every kind."""

import html
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser

import pytest

from commands.app import run
from commands.report import write_report
from recipes.pruning_result import PrunedLayer
from tests.commands.report_pages import (
    figures_of,
    make_classes,
    make_profile,
    make_training,
)
from tests.results import (
    make_compress,
    make_latency,
    make_pruning,
    make_result,
    make_shape,
    make_size,
    make_sweep,
)

HARM = "<script>alert('x')</script> & --ink %{x}"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture
def folder(tmp_path):
    """Runs of every kind, with a label that would do harm if it were taken for what it looks like."""
    many = tuple(make_latency(ms, shape=make_shape(batch)) for batch, ms in ((1, 12.0), (32, 200.0)))
    layers = tuple(
        PrunedLayer(layer=number, before=1, after=number % 2, importance=(0.1 * number,))
        for number in range(4)
    )
    neurons = tuple(PrunedLayer(layer=number, before=64, after=64 - 16 * number) for number in range(3))
    runs = {
        "a": make_result("a", "a", latency=many, training=make_training(), per_class=make_classes()),
        "b": make_result(
            "b",
            "b",
            parent="a",
            command="prune-heads",
            pruning=make_pruning(),
            per_class=make_classes((HARM, "pos")),
            config={"model": HARM},
        ),
        "c": make_result(
            "c", "c", parent="b", command="drop-layers", pruning=make_pruning(unit="layers", layers=layers)
        ),
        "d": make_result(
            "d",
            "d",
            parent="c",
            command="prune-neurons",
            size=make_size(4_000_000),
            compress=make_compress(),
            pruning=make_pruning(unit="neurons", layers=neurons),
        ),
        "sweep": make_result("e", "e", sweep=make_sweep({0: [0.9, 0.91], 2: [0.89, 0.9], 6: [0.4, 0.6]})),
        "profile": make_profile(),
    }
    for name, made in runs.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_text(made.to_json())
    return tmp_path


@pytest.fixture
def page(folder, capsys):
    assert run(["report", str(folder)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == str(folder / "report.html")
    return (folder / "report.html").read_text(encoding="utf-8")


class Tags(HTMLParser):
    """All tags of a page with their attributes."""

    def __init__(self, page):
        super().__init__()
        self.tags = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))


def test_page_loads_nothing_from_anywhere(page):
    tags = Tags(page).tags
    assert not [
        (tag, attributes)
        for tag, attributes in tags
        if {"src", "href", "srcset", "data", "action", "poster", "background"} & attributes.keys()
        or tag in ("link", "iframe", "img", "object", "embed", "base")
    ]
    style = re.search(r"<style>(.*?)</style>", page, re.S)[1]
    assert "url(" not in style and "@import" not in style
    assert "default-src 'none'" in page and "connect-src" not in page


def test_plotly_is_in_the_page_once(page):
    assert page.count("* plotly.js v") == 1
    assert len(page) < 6_000_000


def test_every_figure_has_a_place_and_is_one_that_plotly_accepts(page):
    import plotly.graph_objects as go

    figures = figures_of(page)
    places = [attributes["id"] for tag, attributes in Tags(page).tags if attributes.get("class") == "plot"]
    assert places == list(figures)

    def coloured(node, is_colour=False):
        if isinstance(node, str):
            return "#123456" if is_colour and node.startswith("--") else node
        if isinstance(node, list):
            return [coloured(one, is_colour) for one in node]
        if not isinstance(node, dict):
            return node
        return {
            key: coloured(value, is_colour or ("color" in key and key != "colorbar"))
            for key, value in node.items()
        }

    for figure in figures.values():
        go.Figure(**coloured(figure))


def test_page_has_a_section_for_all_that_the_runs_hold(page):
    there = {attributes.get("id") for tag, attributes in Tags(page).tags if tag == "section"}
    assert there == {
        *("steps", "candidates", "freezing", "removed", "removed-2", "removed-3", "profile", "training"),
        *("classes", "confusion", "latency", "size", "commands", "machine", "missing"),
    }


def test_chart_without_data_is_left_out_and_what_would_fill_it_is_said(folder, capsys):
    shutil.rmtree(folder / "sweep")
    page = write_report(folder, folder / "other.html").read_text(encoding="utf-8")
    assert 'id="freezing"' not in page
    assert "no freeze-sweep among these runs: <code>enc freeze-sweep --model" in page


def test_what_the_user_wrote_stays_text(page):
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page  # the command
    told = json.dumps(figures_of(page))
    assert "&lt;script&gt;" in told and "<script>" not in told  # Plotly reads entities, and some tags
    assert not [tag for tag, attributes in Tags(page).tags if tag == "script" and "alert" in str(attributes)]


def test_markdown_has_the_headline_a_line_a_step_and_the_commands(folder, capsys):
    assert run(["report", str(folder), "--markdown"]) == 0
    shown = capsys.readouterr().out
    lines = shown.splitlines()
    assert lines[0].startswith("### 6 layers")
    assert len([line for line in lines if re.match(r"\| \d+ \|", line)]) == 6
    assert "~~~sh" in shown and "enc prune-heads" in shown
    assert len({line.count("|") - line.count("\\|") for line in lines if line.startswith("|")}) == 1
    assert not (folder / "report.html").exists()


def test_markdown_goes_into_the_file_that_is_named(folder, tmp_path, capsys):
    assert run(["report", str(folder), "--markdown", "--output", str(tmp_path / "pr.md")]) == 0
    assert (tmp_path / "pr.md").read_text(encoding="utf-8").startswith("### ")
    assert capsys.readouterr().out.endswith("pr.md\n")


def test_json_is_the_report_and_nothing_is_written(folder, capsys):
    assert run(["report", str(folder), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [step["name"] for step in shown["steps"]][1:5] == ["a", "b", "c", "d"]
    assert not (folder / "report.html").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--output", "a.pdf"], "--output is 'a.pdf'; expected a name in .html"),
        (["--markdown", "--output", "a.html"], "--output is 'a.html'; expected a name in .md"),
        (["--output", "nowhere/a.html"], "nowhere is no folder; make it first"),
    ],
)
def test_file_that_cannot_be_is_refused(folder, monkeypatch, words, message, capsys):
    monkeypatch.chdir(folder)
    assert run(["report", str(folder), *words]) == 2
    assert message in capsys.readouterr().err


def test_folder_that_is_not_there_is_told(tmp_path, capsys):
    assert run(["report", str(tmp_path / "nowhere")]) == 2
    assert "no such folder" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium to open the page in")
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_browser_draws_every_figure_without_an_error_a_request_or_an_overflow(
    page, folder, tmp_path, width, dark
):
    # A frame, because a browser's own window is never as narrow as a phone.
    watch = (
        "<script>const root = document.documentElement;"
        "document.body.dataset.beyond = root.scrollWidth - root.clientWidth;"
        "document.body.dataset.dark = matchMedia('(prefers-color-scheme: dark)').matches;"
        "parent.document.body.append(document.body.cloneNode(true));</script></body>"
    )
    framed = html.escape(page.replace("</body>", watch))
    (folder / "framed.html").write_text(
        f'<meta charset="utf-8"><iframe width="{width}" height="900" srcdoc="{framed}"></iframe>',
        encoding="utf-8",
    )
    words = [
        *("--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0"),
        *(["--blink-settings=preferredColorScheme=0"] if dark else []),
        "--host-resolver-rules=MAP * ~NOTFOUND",
        f"--user-data-dir={tmp_path / 'profile-of-the-browser'}",
        "--virtual-time-budget=20000",
        "--dump-dom",
        (folder / "framed.html").as_uri(),
    ]
    done = subprocess.run([CHROMIUM, *words], capture_output=True, text=True, timeout=300, check=True)
    assert "CONSOLE" not in done.stderr, done.stderr
    number = len(figures_of(page))
    drawn = done.stdout.rpartition("</iframe>")[2]
    assert f'data-drawn="{number}"' in drawn
    assert drawn.count('class="main-svg"') >= number
    assert 'data-beyond="0"' in drawn and f'data-dark="{str(dark).lower()}"' in drawn
    assert "alert('x')" in drawn and "<script>alert" not in drawn
