"""Claims about `enc report` and the page it writes."""

import html
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser

import pytest

from commands.app import run
from commands.report import write_report
from compress.profile import Profile, ProfileRow
from compress.stopwatch import PARTS
from recipes.class_scores import ClassScores, Confusion, PerClass
from recipes.measurements import ProfileResult
from recipes.pruning_result import PrunedLayer
from recipes.result import Epoch, TrainingResult
from tests.results import (
    MACHINE,
    make_bench,
    make_compress,
    make_latency,
    make_model,
    make_pruning,
    make_ratio,
    make_result,
    make_shape,
    make_size,
    make_sweep,
)

HARM = "<script>alert('x')</script> & --ink %{x}"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def make_training():
    epochs = tuple(
        Epoch(epoch=number, loss=1 / number, validation={"accuracy": 0.8 + 0.05 * number})
        for number in (1, 2, 3)
    )
    return TrainingResult(
        trainable_parameters=1,
        total_parameters=1,
        frozen="Nothing is frozen.",
        new_parameters=(),
        epochs=epochs,
        best_epoch=2,
        best_metric="accuracy",
        seconds=1.0,
        rows_per_s=1.0,
        peak_memory_bytes=None,
        device_memory_bytes=None,
        precision="fp32",
        device="cpu",
        threads=1,
    )


def make_profile():
    rows = tuple(
        ProfileRow(
            shape=make_shape(1, length),
            part_ms=dict.fromkeys(PARTS, length / 10),
            shares=dict.fromkeys(PARTS, 1 / len(PARTS)),
            mac_shares=dict.fromkeys(PARTS, 1 / len(PARTS)),
        )
        for length in (16, 64)
    )
    profile = Profile(
        rows=rows,
        overtakes_at=None,
        overtakes_at_macs=512.0,
        runtime="torch-fp32",
        device="cpu",
        device_name=MACHINE.cpu,
        threads=1,
    )
    common = make_bench().model_dump(include=set(ProfileResult.model_fields))
    return ProfileResult(
        **common | {"command": "profile", "data": None},
        model=make_model("a", "a"),
        profile=profile,
        advice="Prune neurons.",
    )


def make_classes(labels=("neg", "pos")):
    classes = tuple(
        ClassScores(label=label, rows=250, predicted=250, right=240, precision=0.96, recall=0.96, f1=0.96)
        for label in labels
    )
    confusions = (Confusion(label=labels[0], predicted=labels[1], rows=10),)
    return {"test": PerClass(classes=classes, confusions=confusions)}


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


def figures_of(page):
    return json.loads(
        re.search(r'<script type="application/json" id="figures">(.*?)</script>', page, re.S)[1]
    )


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


def made_of(what):
    """One run alone, or two that hold next to nothing."""
    regression = {"main_metric": "pearson", "intervals": {}}
    return {
        "bench": [make_bench((("a", "a"), ("b", "b")), ratios=[make_ratio()])],
        "profile": [make_profile()],
        "evaluation": [make_result("e", "a", parent="a", command="evaluate", size=None, latency=())],
        "sweep alone": [make_result(sweep=make_sweep({3: [0.9]}))],
        "no latency": [make_result(latency=()), make_result("b", "b", parent="a", latency=())],
        "no score": [make_result("r", "r", scores={"test": {"pearson": None}}, **regression)],
        "regression": [
            make_result("r", "r", scores={"test": {"pearson": 0.9, "mse": 1.0}}, **regression),
            make_result("s", "s", parent="r", scores={"test": {"pearson": 0.8}}, **regression),
        ],
        "all heads named": [
            make_result(
                "b",
                "b",
                parent="a",
                pruning=make_pruning(
                    layers=(PrunedLayer(layer=0, before=2, after=1, heads_before=(0, 1), heads_after=(1,)),)
                ),
            )
        ],
    }[what]


@pytest.mark.parametrize(
    "what",
    [
        *("bench", "profile", "evaluation", "sweep alone"),
        *("no latency", "no score", "regression", "all heads named"),
    ],
)
def test_page_is_made_of_whatever_there_is(tmp_path, what):
    for number, one in enumerate(made_of(what)):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "run.json").write_text(one.to_json())
    page = write_report(tmp_path).read_text(encoding="utf-8")
    assert len(figures_of(page)) == page.count('class="plot"')
    assert run(["report", str(tmp_path), "--markdown"]) == 0


def test_of_many_trainings_those_of_the_line_in_the_headline_are_drawn(tmp_path):
    letters = "abcdefghij"
    for letter in letters:  # j is made of i, all others of an encoder from elsewhere
        parent = "i" if letter == "j" else "base"
        made = make_result(letter, letter, parent=parent, training=make_training())
        (tmp_path / letter).mkdir()
        (tmp_path / letter / "run.json").write_text(made.to_json())
    figures = figures_of(write_report(tmp_path).read_text(encoding="utf-8"))
    named = [{trace.get("name") for trace in figure["data"]} for figure in figures.values()]
    curves = next(names for names in named if {"i", "j"} <= names)
    assert len(curves) == 6


def write_all(folder, **runs):
    for name, made in runs.items():
        (folder / name).mkdir()
        (folder / name / "run.json").write_text(made.to_json())
    return write_report(folder).read_text(encoding="utf-8")


def section(page, name):
    return re.search(rf'<section class="[^"]*" id="{name}">.*?</section>', page, re.S)[0]


@pytest.mark.parametrize("latency", [(), (make_latency(),)])
def test_models_scored_on_other_rows_are_in_the_chart_and_said_to_be_no_comparison(tmp_path, latency):
    here = make_result("a", "a", latency=latency)
    other = here.data.model_copy(update={"fingerprint": "g", "source": "other.csv"})
    page = write_all(tmp_path, a=here, b=make_result("b", "b", parent="a", data=other, latency=()))
    steps = section(page, "steps")
    assert "Accuracy against size" in steps and "Grey: scored on other rows" in steps
    assert ": 3 b." in steps.split("Grey: ")[1]
    traces = [trace for figure in figures_of(page).values() for trace in figure["data"]]
    (grey,) = (trace for trace in traces if trace.get("name") == "on other rows")
    assert grey["text"] == ["3"]
    (front,) = (trace for trace in traces if trace.get("name") == "Pareto front")
    assert len(front["x"]) == 1


def test_one_model_alone_has_no_chart_and_that_is_said(tmp_path):
    page = write_all(tmp_path, a=make_result("a", "a"))
    assert "No chart: only one model here has both a score" in section(page, "steps")


def test_no_chart_is_without_points_and_why_is_said(tmp_path):
    """What has no number to show: a sweep without scores, classes without F1, a training without epochs."""
    nameless = ClassScores(label="x", rows=1, predicted=0, right=0, precision=None, recall=None, f1=None)
    classes = {"test": PerClass(classes=(nameless,) * 2, confusions=())}
    sweep = make_sweep({0: [0.9, 0.91], 2: [0.8, 0.82]})
    blank = tuple(one.model_copy(update={"mean": None, "scores": (None, None)}) for one in sweep.points)
    trained = make_training()
    trained = trained.model_copy(
        update={"epochs": tuple(one.model_copy(update={"validation": None}) for one in trained.epochs)}
    )
    page = write_all(
        tmp_path,
        a=make_result("a", "a", training=trained, per_class=classes),
        b=make_result("b", "b", sweep=sweep.model_copy(update={"points": blank})),
    )
    assert "No chart: F1 is defined for no class." in section(page, "classes")
    assert "No chart: the score is defined at no point." in section(page, "freezing")
    assert "No validation score was kept" in section(page, "training")
    for figure in figures_of(page).values():
        assert any(trace.get("z") or trace["x"] for trace in figure["data"])
    assert page.count('class="plot"') == len(figures_of(page))


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


def test_card_table_and_markdown_have_the_measured_p50_and_say_where_the_machine_was_busy(tmp_path, capsys):
    busy = make_latency(0.12, cpu_wait=0.6)
    made = {
        "a": make_result("a", "a", latency=(make_latency(7.62),)),
        "b": make_result("b", "b", parent="a", latency=(busy,), pruning=make_pruning()),
    }
    for name, one in made.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_text(one.to_json())
    assert run(["report", str(tmp_path), "--markdown"]) == 0
    assert "| 0.12, busy | 1.20× (1.10–1.30), busy |" in capsys.readouterr().out
    assert run(["report", str(tmp_path), "--output", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text()
    assert "0.12 <small>ms</small>" in page and "was 7.62 ms in another run" in page
    assert "on a busy machine" in page and "0.12 *" in page
