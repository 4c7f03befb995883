"""Claims about the command as a process: what it imports, where it writes, how it ends."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import commands.exit_codes
from commands.app import run

MAIN = "import sys; from commands.app import main; main()"
# Runs a command line, then says on stdout which heavy libraries were imported for it.
SPY = """
import sys
import commands.exit_codes
from commands.app import run
code = run(sys.argv[1:])
heavy = ("torch", "datasets", "evaluate", "onnxruntime")
print("HEAVY", code, [name for name in heavy if name in sys.modules])
"""


def enc(*arguments, script=MAIN, **options):
    return subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)], capture_output=True, text=True, **options
    )


def start(arguments, **streams):
    """``enc``, with other streams than those that are read here."""
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | streams
    return subprocess.run([sys.executable, "-c", MAIN, *map(str, arguments)], text=True, **streams)


@pytest.mark.parametrize(
    "command",
    [
        [],
        ["finetune"],
        ["freeze-sweep"],
        ["evaluate"],
        ["predict"],
        ["bench"],
        ["profile"],
        ["runs"],
        ["run"],
        ["recipes"],
        ["embed"],
        ["attention"],
        ["probe"],
        ["pretrain"],
        ["depth"],
    ],
)
def test_help_leaves_torch_alone_and_has_no_cut_words(command):
    done = enc(*command, "--help", script=SPY)
    assert done.stdout.endswith("HEAVY 0 []\n")
    assert "…" not in done.stdout


@pytest.mark.parametrize(
    ("command", "usage"),
    [
        ("finetune", "[OPTIONS]"),
        ("freeze-sweep", "[OPTIONS]"),
        ("evaluate", "[OPTIONS] MODEL"),
        ("predict", "[OPTIONS] MODEL [TEXT]..."),
        ("bench", "[OPTIONS] MODEL..."),
        ("profile", "[OPTIONS] MODEL"),
        ("run", "[OPTIONS] RECIPE"),
        ("runs", "[OPTIONS] [DIR]"),
    ],
)
def test_usage_has_brackets_around_what_may_be_left_out(command, usage, capsys):
    assert run([command, "--help"]) == 0
    assert f"Usage: enc {command} {usage}\n" in re.sub(" +\n", "\n", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["finetune", "--epochs", "3"],
            "--epochs is not an option of enc finetune; did you mean --num-epochs?",
        ),
        (["finetune", "--batchsize", "3"], "did you mean --batch-size?"),
        (["finetune", "--freeze-layers"], "--freeze-layers"),
        (["finetune", "--num-epochs", "many"], "--num-epochs is 'many'; expected a whole number above 0"),
        (
            ["freeze-sweep", "--freeze-layers", "3"],
            "--freeze-layers is not an option of enc freeze-sweep; did you mean --points?",
        ),
        (["freeze-sweep", "--train-classifier-only"], "--train-classifier-only is not an option"),
        (["freeze-sweep", "--points", ""], "--points is ''; expected whole numbers from 0 up, with commas"),
        (["freeze-sweep", "--points", "1,x"], "--points is 'x'; expected whole numbers from 0 up"),
        (
            ["freeze-sweep", "--model=m", "--data=d", "--output=o", "--points=1", "--search"],
            "--points and --search both say which numbers to try; give one of them",
        ),
        (["freeze-sweep", "--seeds", "0"], "--seeds is '0'; expected a whole number at least 1"),
        (
            ["freeze-sweep", "--max-drop", "-1"],
            "--max-drop is '-1'; expected a number at least 0 and at most 100",
        ),
        (["evaluate", "runs/x"], "--data is missing"),
        (["predict"], "MODEL is missing"),
        (["predict", "runs/x", "text", "--format", "cvs"], "did you mean 'csv'?"),
        (["finetuen"], "finetune"),
        (["bench"], "MODEL is missing"),
        (["bench", "runs/x", "--runtimes", "onnx-int4"], "did you mean 'onnx-int8'?"),
        (["bench", "runs/x", "--min-runs", "0"], "--min-runs is '0'; expected a whole number above 0"),
        (["bench", "."], ".: not a model folder: config.json is missing"),
        (["profile", "."], ".: not a model folder: config.json is missing"),
        (["runs", "nowhere"], "nowhere: no such folder"),
    ],
)
def test_mistyped_command_line_fails_before_torch_is_imported(arguments, message):
    done = enc(*arguments, script=SPY)
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == "HEAVY 2 []\n"


@pytest.mark.parametrize(
    ("command", "extra", "message"),
    [
        (["finetune", "--model"], ["--freeze-layers", "9"], "--freeze-layers 9: {model} has 3 layers"),
        (["freeze-sweep", "--model"], ["--points", "1,9"], "--points 9: {model} has 3 layers"),
        (["prune-heads"], ["--keep", "foo"], "--keep: 'foo' is not LAYER:NUMBERS"),
        (["prune-neurons"], ["--keep", "9:1"], "--keep: no layer 9; the model has 3"),
        (["drop-layers"], ["--drop", "7"], "--drop 7: {model} has 3 layers"),
        (["distill"], ["--layers", "9", "--unlabeled", "no.txt"], "--layers 9: {model} has 3 layers"),
    ],
)
def test_all_mistakes_in_output_shape_and_data_are_told_together_and_without_torch(
    command, extra, message, tiny_model, tmp_path
):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").write_text("")
    done = enc(*command, tiny_model, "--data", "no.csv", "--output", tmp_path / "there", *extra, script=SPY)
    assert f"--output {tmp_path / 'there'}: the folder exists and is not empty" in done.stderr
    assert message.format(model=tiny_model) in done.stderr
    assert "no.csv: no such file or folder" in done.stderr
    assert ("--unlabeled no.txt: no such file" in done.stderr) == ("--unlabeled" in extra)
    assert done.stdout == "HEAVY 2 []\n"


@pytest.mark.parametrize("command", ["evaluate", "probe", "export", "bench", "profile"])
def test_measuring_and_exporting_tell_all_mistakes_together_too(command, tmp_path):
    (tmp_path / "file").write_text("")
    output = tmp_path / "file" / "out"
    done = enc(command, "./nope", "--data", "nope.csv", "--output", output, script=SPY)
    assert f"--output {output}: cannot write in {tmp_path / 'file'}" in done.stderr
    assert "./nope: no such folder" in done.stderr and "nope.csv: no such file or folder" in done.stderr
    assert done.stdout == "HEAVY 2 []\n"


def test_missing_model_missing_data_and_impossible_output_are_one_message(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    output = tmp_path / "file" / "out"
    assert run(["finetune", "--model", "./nope", "--data", "nope.csv", "--output", str(output)]) == 2
    shown = capsys.readouterr().err
    assert f"--output {output}: cannot write in {tmp_path / 'file'}" in shown
    assert "./nope: no such folder" in shown and "nope.csv: no such file or folder" in shown


def test_rows_are_looked_through_where_something_else_is_wrong(tiny_model, tmp_path):
    (tmp_path / "data.csv").write_text("text,lable\nfine,1\n")
    (tmp_path / "out").write_text("")
    arguments = ["--model", tiny_model, "--data", tmp_path / "data.csv", "--output", tmp_path / "out"]
    done = enc("finetune", *arguments, script=SPY)
    assert "a file of that name exists" in done.stderr and "text, lable" in done.stderr
    assert done.stdout == "HEAVY 2 []\n"


def test_no_arguments_show_the_help(capsys):
    assert run([]) == 0
    assert "finetune" in capsys.readouterr().out


def test_version_is_one_line(capsys):
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == "enc 0.1.0\n"


def test_mistake_in_the_data_is_a_message_without_traceback(tiny_model, tmp_path, capsys):
    (tmp_path / "data.csv").write_text("text,lable\nfine,1\n")
    arguments = ["--model", tiny_model, "--data", tmp_path / "data.csv", "--output", tmp_path / "out"]
    assert run(["finetune", *map(str, arguments)]) == 2
    shown = capsys.readouterr()
    assert "text, lable" in shown.err
    assert "Traceback" not in shown.err
    assert shown.out == ""


@pytest.mark.parametrize("words", [["evaluate", "model", "--data", "data.csv"], ["runs", "."]])
def test_bug_shows_its_traceback_and_has_an_exit_code_that_no_gate_has(words, monkeypatch, capsys):
    for name in ("recipes.evaluate.evaluate", "recipes.runs.runs"):
        monkeypatch.setattr(name, lambda *_, **__: 1 / 0)
    assert run(words) == 70
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "Traceback (most recent call last)" in shown.err
    assert "a mistake of its own, not of yours: ZeroDivisionError: division by zero" in shown.err


def test_exit_codes_are_those_that_the_documentation_lists():
    page = (Path(__file__).parents[2] / "docs/exit-codes.md").read_text()
    listed = set(map(int, re.findall(r"^\| `(\d+)` \|", page, re.MULTILINE)))
    assert listed == {code for name, code in vars(commands.exit_codes).items() if name.isupper()}


def test_reader_that_leaves_is_no_error(finetuned):
    lines = "the film was good\n" * 3000
    done = subprocess.run(
        f"{sys.executable} -c '{MAIN}' predict {finetuned} 2>{finetuned}.err | head -n 1",
        shell=True,
        input=lines,
        capture_output=True,
        text=True,
    )
    assert done.stdout.count("\n") == 1
    assert finetuned.with_name(finetuned.name + ".err").read_text() == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a disk that is always full")
@pytest.mark.parametrize("command", ["recipes show small-cpu", "runs {place}", "--version"])
def test_stdout_without_room_is_told_in_a_line(command, tmp_path):
    with Path("/dev/full").open("w") as full:
        done = start(command.format(place=tmp_path).split(), stdout=full)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "stdout cannot be written (No space left on device)" in done.stderr


@pytest.mark.parametrize("command", ["recipes list", "predict model text"])
def test_closed_stdout_is_told_before_anything_is_begun(command):
    done = start(command.split(), preexec_fn=lambda: os.close(1))
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("stdout is closed")


def test_stderr_that_cannot_be_written_changes_no_exit_code(tmp_path):
    assert start(["runs", tmp_path / "none"], preexec_fn=lambda: os.close(2)).returncode == 2
    assert start(["recipes", "list"], preexec_fn=lambda: os.close(2)).returncode == 0
    if Path("/dev/full").exists():
        with Path("/dev/full").open("w") as full:
            assert start(["runs", tmp_path / "none"], stderr=full).returncode == 2


def test_reader_that_leaves_a_table_is_no_failed_gate():
    reading, writing = os.pipe()
    os.close(reading)
    done = start(["--help"], stdout=writing)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


def children_of(process):
    path = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    return path.read_text().split() if path.exists() else []


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="children are found in /proc")
def test_told_to_stop_a_measurement_ends_with_the_processes_it_started(finetuned):
    command = [sys.executable, "-c", MAIN, "bench", finetuned, "--min-seconds", "600", "--threads", "1"]
    process = subprocess.Popen([*map(str, command)], stderr=subprocess.PIPE, text=True)
    while not (children := children_of(process)) and process.poll() is None:
        time.sleep(0.05)
    process.terminate()
    _, stderr = process.communicate(timeout=120)
    assert (process.returncode, stderr.splitlines()[-1]) == (130, "Interrupted.")
    assert children
    while any(
        Path(f"/proc/{child}").exists() for child in children
    ):  # one just forked finds its stdin closed
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_told_to_stop_a_run_says_how_to_continue_and_does(number, tiny_model, reviews, tmp_path):
    options = ["finetune", "--model", tiny_model, "--data", reviews, "--output", tmp_path / "out"]
    options += ["--num-epochs", 2000, "--no-latency"]
    command = [sys.executable, "-c", MAIN, *map(str, options)]
    # Where the tests run in the background of a shell, SIGINT is ignored, and a child would inherit that.
    process = subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    while not any("epoch 2/" in line for line in iter(process.stderr.readline, "")):
        pass
    os.kill(process.pid, number)
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "--resume" in stderr
    assert "Traceback" not in stderr
    assert not (tmp_path / "out").exists()
    changed = enc(*options[:-3], "--num-epochs", 1, "--no-latency", "--resume")
    assert changed.returncode == 2
    assert "num_epochs: 2000 then, 1 now" in changed.stderr
