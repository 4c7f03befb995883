"""Claims about several processes that train one model; tests/recipes/test_pretrain.py shows that they do."""

import numpy as np
import pytest
import torch

from encoder.errors import ConfigError
from encoder.processes import ALONE, Processes, find_processes


@pytest.fixture(autouse=True)
def no_processes(monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)


def test_without_torchrun_there_is_one_process():
    assert find_processes() is ALONE
    assert ALONE.is_first


def test_torchrun_says_who_is_there(monkeypatch):
    for name, value in {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1"}.items():
        monkeypatch.setenv(name, value)
    assert find_processes() == Processes(rank=5, count=8, local_rank=1)


@pytest.mark.parametrize(("rank", "size"), [("2", "2"), ("x", "2"), ("0", "0")])
def test_an_environment_that_cannot_be_is_refused(monkeypatch, rank, size):
    monkeypatch.setenv("RANK", rank)
    monkeypatch.setenv("WORLD_SIZE", size)
    with pytest.raises(ConfigError, match=rf"RANK={rank}, WORLD_SIZE={size}.*expected"):
        find_processes()


@pytest.mark.parametrize("rows", [1, 7, 32])
def test_every_row_is_in_one_share(rows):
    index = np.random.default_rng(0).permutation(rows)
    shares = [Processes(rank, 4).share(index) for rank in range(4)]
    assert np.array_equal(np.concatenate(shares), index)
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_one_process_changes_nothing():
    tensor = torch.arange(3.0)
    ALONE.add_([tensor])
    ALONE.wait()
    with ALONE.joined("cpu"):
        assert torch.equal(tensor, torch.arange(3.0))
