"""Several processes that train one model together: who is there, and what they tell each other.

`torchrun` starts them and says so in the environment. Each computes its share of every batch; gradients are
summed over all of them, so that an update is that of the whole batch, however many there are (data
parallelism, as in Li et al. 2020, "PyTorch Distributed", but without its averaging: the loss of a batch is
divided by what the whole batch counts).
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from encoder.errors import ConfigError

if TYPE_CHECKING:
    from torch import Tensor

# Gradients are summed in pieces of about so many numbers: few messages, and little memory beside them.
NUMBERS_A_MESSAGE = 1 << 23


@dataclass(frozen=True)
class Processes:
    """``count`` processes, of which this one is number ``rank``; ``local_rank`` on its own machine."""

    rank: int = 0
    count: int = 1
    local_rank: int = 0

    @property
    def is_first(self) -> bool:
        """Whether this process is the one that writes and speaks."""
        return self.rank == 0

    @contextmanager
    def joined(self, device: str) -> Iterator[None]:
        """Within the context the processes can reach each other: by NCCL between GPUs, by Gloo otherwise."""
        if self.count == 1:
            yield
            return
        import torch
        import torch.distributed

        if torch.device(device).type == "cuda":
            torch.cuda.set_device(self.local_rank)
        torch.distributed.init_process_group("nccl" if torch.device(device).type == "cuda" else "gloo")
        try:
            yield
        finally:
            torch.distributed.destroy_process_group()

    def share(self, index: NDArray[np.int64]) -> NDArray[np.int64]:
        """This process's part of ``index``; the parts differ by one at most, and may be empty."""
        return index if self.count == 1 else np.array_split(index, self.count)[self.rank]

    def add_(self, tensors: Sequence["Tensor"]) -> None:
        """Put into each of ``tensors`` its sum over all processes."""
        if self.count == 1:
            return
        import torch
        import torch.distributed

        for _, same in groupby(tensors, key=lambda tensor: tensor.dtype):
            for piece in _pieces(list(same)):
                joined = torch.cat([tensor.reshape(-1) for tensor in piece])
                torch.distributed.all_reduce(joined)
                for tensor, total in zip(piece, joined.split([t.numel() for t in piece]), strict=True):
                    tensor.copy_(total.view_as(tensor))

    def wait(self) -> None:
        """Return when all processes have come here."""
        if self.count > 1:
            import torch.distributed

            torch.distributed.barrier()


ALONE = Processes()


def find_processes() -> Processes:
    """What `torchrun` says in the environment; without it, one process.

    Raises:
        ConfigError: the environment says what cannot be.
    """
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
    if "RANK" not in os.environ and "WORLD_SIZE" not in os.environ:
        return ALONE
    values = {name: os.environ.get(name, "0") for name in names}
    problem = ", ".join(f"{name}={value}" for name, value in values.items())
    if not all(value.isdigit() for value in values.values()):
        raise ConfigError(f"{problem} in the environment: expected numbers, as torchrun sets them")
    rank, count, local = (int(values[name]) for name in names)
    if not rank < count:
        raise ConfigError(f"{problem} in the environment: expected RANK from 0 to WORLD_SIZE - 1")
    return Processes(rank, count, local)


def _pieces(tensors: Sequence["Tensor"]) -> Iterator[list["Tensor"]]:
    """``tensors`` in runs of about ``NUMBERS_A_MESSAGE``."""
    piece: list[Tensor] = []
    for tensor in tensors:
        piece.append(tensor)
        if sum(one.numel() for one in piece) >= NUMBERS_A_MESSAGE:
            yield piece
            piece = []
    if piece:
        yield piece
