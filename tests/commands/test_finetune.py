"""Claims about what `enc finetune` prints."""

import json
import re

from commands.app import run


def test_json_is_all_that_is_on_stdout_and_equals_run_json(finetuned, finetuning, capsys):
    assert run([*finetuning, "--resume", "--json"]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out) == json.loads((finetuned / "run.json").read_text())
    assert "is finished; there is nothing to resume" in shown.err


def test_run_tells_what_it_read_froze_trained_and_wrote(tiny_model, reviews, tmp_path, capsys):
    output = tmp_path / "my runs"
    arguments = ["--model", tiny_model, "--data", reviews, "--output", output, "--freeze-layers", 1]
    assert run(["finetune", *map(str, arguments), "--num-epochs", "1", "--no-latency"]) == 0
    shown = capsys.readouterr()
    assert re.search(r"in all +80 +24 +24", shown.err)
    assert re.search(r"pos +40 +12 +12", shown.err)
    assert "single-label" in shown.err
    assert "without dropout" in shown.err
    assert "epoch 1/1 · loss" in shown.err
    assert re.search(r"test +\d\.\d{4} +\d\.\d{4}–\d\.\d{4} +\d\.\d{4} +-?\d\.\d{4} +24", shown.out)
    for fact in ("trained", "frozen", "training", "peak memory", "size", str(output)):
        assert fact in shown.out
    assert "Try it: enc predict '" in shown.out  # quoted for the shell: the folder's name has a blank
    for text in (shown.out, shown.err):
        assert "\x1b" not in text
        assert "…" not in text
        assert all(line == line.rstrip() for line in text.splitlines())
