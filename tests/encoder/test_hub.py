import json
from pathlib import Path

import pytest
from huggingface_hub.errors import LocalEntryNotFoundError, RepositoryNotFoundError

from encoder.checkpoint import load_classifier, save_classifier
from encoder.errors import CheckpointError
from encoder.model import Classifier
from encoder.model_folder import read_tokenizer, resolve_model
from encoder.task import Task

TASK = Task(kind="single_label", labels=("neg", "neutral", "pos"))


class FakeHub:
    """The file layout of a hub repository, handed out from a local folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.asked: list[str] = []
        self.reachable = True
        self.known = True

    def repo_info(self, name: str, *, repo_type: str, timeout: float) -> None:
        if not self.reachable:
            raise ConnectionError("no network")
        if not self.known:
            raise RepositoryNotFoundError.__new__(RepositoryNotFoundError)

    def hf_hub_download(self, name: str, file: str, *, local_files_only: bool) -> str:
        assert local_files_only != self.reachable
        self.asked.append(file)
        if not (self.folder / file).exists():
            raise LocalEntryNotFoundError(file)
        return str(self.folder / file)

    def snapshot_download(self, name: str, *, allow_patterns: list[str], local_files_only: bool) -> str:
        assert local_files_only != self.reachable
        self.asked += allow_patterns
        return str(self.folder)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch) -> FakeHub:
    fake = FakeHub(tmp_path / "repository")
    fake.folder.mkdir()
    monkeypatch.setattr(
        "huggingface_hub.HfApi.repo_info", lambda _, *args, **how: fake.repo_info(*args, **how)
    )
    monkeypatch.setattr("huggingface_hub.hf_hub_download", fake.hf_hub_download)
    monkeypatch.setattr("huggingface_hub.snapshot_download", fake.snapshot_download)
    return fake


@pytest.mark.parametrize("reachable", [True, False])
def test_a_hub_model_is_fetched_or_found_in_the_cache_without_pickles(
    hub: FakeHub, make_classifier, tiny_model: Path, reachable: bool
) -> None:
    save_classifier(make_classifier(task=TASK), read_tokenizer(tiny_model), hub.folder)
    hub.reachable = reachable
    folder = resolve_model("owner/model")
    assert isinstance(load_classifier(folder), Classifier)
    assert hub.asked[0] == "config.json" and "pytorch_model.bin" not in hub.asked


def test_a_pickle_is_fetched_only_where_there_is_nothing_else(hub: FakeHub, tiny_model: Path) -> None:
    (hub.folder / "config.json").write_bytes((tiny_model / "config.json").read_bytes())
    (hub.folder / "pytorch_model.bin").touch()
    assert resolve_model("owner/model") == hub.folder
    assert hub.asked[-1] == "pytorch_model.bin"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "t5"}, "'t5' is not supported"),
        ({"quantization_config": {"quant_method": "gptq"}}, r"quantized weights \(gptq\) are not supported"),
        ({"is_decoder": True}, "this is a decoder"),
    ],
)
def test_an_unsupported_hub_model_is_refused_before_its_weights_are_fetched(
    hub: FakeHub, tiny_model: Path, changes: dict[str, object], message: str
) -> None:
    config = json.loads((tiny_model / "config.json").read_text())
    (hub.folder / "config.json").write_text(json.dumps(config | changes))
    with pytest.raises(CheckpointError, match=message):
        resolve_model("owner/model")
    assert hub.asked == ["config.json"]


def test_a_name_that_the_hub_does_not_know_is_told_from_a_hub_out_of_reach(hub: FakeHub) -> None:
    hub.known = False
    with pytest.raises(CheckpointError, match="has no model of that name"):
        resolve_model("bert-base-uncasedd")
    hub.reachable = False
    with pytest.raises(CheckpointError, match="cannot be reached"):
        resolve_model("bert-base-uncased")
