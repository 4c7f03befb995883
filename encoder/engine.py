"""The pieces that make training fast, each with a switch."""

from encoder.config import Strict


class Engine(Strict):
    """Which pieces are in use. All are, unless one is to be measured (``benchmarks/engine.py``) or doubted.

    None changes what is learnt: without it a step takes longer or more memory, to the same result but for
    rounding (without ``cheap_dropout``, for other random numbers).

    ``blocks``: on the CPU, attention in blocks that rows share, with its gradient written out
    (``encoder.blocks``), and local attention in tiles (``encoder.local_attention``); otherwise torch's own,
    on padded rows. ``first_token_only``: the last layer computes only what the classifier looks at.
    ``cheap_dropout``: ``encoder.dropout``; otherwise torch's. ``fused_optimizer``: AdamW and the shortening
    of gradients in one pass. ``rounded_weights``: in bf16, weights are rounded once an update and gradients
    not widened before it. ``compact_vocabulary``: the optimizer holds only the rows of the word table that
    the data uses. ``filled_batches``: sizes of products come again, so that few kernels are compiled and
    kept. ``freed_memory_returned``: ``encoder.heap``.

    Other pieces are options of a training or of a command: the precision, and computing what is frozen once.
    """

    blocks: bool = True
    first_token_only: bool = True
    cheap_dropout: bool = True
    fused_optimizer: bool = True
    rounded_weights: bool = True
    compact_vocabulary: bool = True
    filled_batches: bool = True
    freed_memory_returned: bool = True


ALL_ON = Engine()
