"""Local attention in tiles: of a long row only the pairs of tokens that are near each other are computed.

Tokens of all rows lie end to end, and what a tile of them sees is itself and a window on either side, so the
tiles go over the ends of rows and a mask keeps rows apart: no padding, however long the rows are.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from encoder.packing import Packing

MIN_TILE = 64
# Tiles copy keys and values; they are worth it where they have so many times fewer pairs.
WORTH_IT = 2


def tile_size(window: int) -> int:
    """Tokens of a tile; as many again and more are beside them."""
    return max(MIN_TILE, window)


def is_worth_it(packing: Packing, window: int) -> bool:
    """Whether tiles have clearly fewer pairs than all pairs of tokens of a row, in blocks or rectangles."""
    in_tiles = packing.num_tokens * (tile_size(window) + 2 * window)
    pairs = packing.num_rows * packing.max_length**2
    if pairs > WORTH_IT * in_tiles and packing.lengths.device.type == "cpu":
        pairs = sum(part.num_blocks * part.width**2 for part in packing.blocks.parts)
    return pairs > WORTH_IT * in_tiles


def mix_tiles(qkv: Tensor, packing: Packing, num_heads: int, window: int, p: float) -> Tensor:
    """As ``encoder.attention.mix``: qkv [N, 3·H·K] → [N, H·K], each token seeing those within ``window``."""
    N, size = packing.num_tokens, tile_size(window)
    filling = -N % size
    query, key, value = qkv.unflatten(1, (3, num_heads, -1)).unbind(1)  # [N, H, K]
    query = F.pad(query, (0, 0, 0, 0, 0, filling)).unflatten(0, (-1, size)).transpose(1, 2)
    key, value = (
        F.pad(one, (0, 0, 0, 0, window, window + filling)).unfold(0, size + 2 * window, size).transpose(2, 3)
        for one in (key, value)
    )  # [tiles, H, size + 2·window, K]
    mask = _mask(packing, window, size, filling)
    mixed = F.scaled_dot_product_attention(query, key, value, mask, dropout_p=p)  # [tiles, H, size, K]
    return mixed.transpose(1, 2).flatten(0, 1)[:N].flatten(1)


def _mask(packing: Packing, window: int, size: int, filling: int) -> Tensor:
    """Which tokens each of a tile sees, bool [tiles, 1, size, size + 2·window]."""
    if window not in packing.tiles:
        rows = packing.rows
        asking = F.pad(rows, (0, filling), value=-1).unflatten(0, (-1, size))  # [tiles, size]
        beside = F.pad(F.pad(rows, (0, filling + window), value=-1), (window, 0), value=-2)
        seen = beside.unfold(0, size + 2 * window, size)  # [tiles, size + 2·window]
        places = torch.arange(size + 2 * window, device=rows.device)
        apart = places - window - places[:size, None]  # [size, size + 2·window]
        same_row = asking[:, :, None] == seen[:, None, :]
        packing.tiles[window] = (same_row & (apart.abs() <= window))[:, None]
    return packing.tiles[window]
