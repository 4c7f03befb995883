"""Padded rows as other libraries take them, and what they are here."""

import torch
from torch import Tensor

from encoder.batches import Batch
from encoder.packing import Packing


def pack(input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None) -> Batch:
    """All int [B, T], ``attention_mask`` non-zero where a token exists.

    Padding may be on either side and a mask may have holes: a masked token does not exist, so the others move
    up.
    """
    exists = attention_mask != 0  # [B, T]
    types = torch.zeros_like(input_ids) if token_type_ids is None else token_type_ids
    return Batch(
        input_ids=input_ids[exists].long(),
        token_type_ids=types[exists].long(),
        packing=Packing.from_lengths(exists.sum(1)),
    )
