"""Claims about `enc prune-neurons`."""

from commands.app import run


def test_result_is_shown(finetuned, reviews, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("recipes.pruning.prove_reloaded", lambda *_: 0.0)
    words = ["prune-neurons", str(finetuned), "--data", str(reviews), "--output", str(tmp_path / "out")]
    assert run([*words, "--sparsity", "0.5", "--no-latency", "--rows", "32"]) == 0
    shown = capsys.readouterr().out
    assert "96 of 192 neurons removed (50.0%)" in shown
    assert "of 64" in shown
