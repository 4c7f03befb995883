import math

import torch

from encoder.embeddings import Embeddings, sinusoidal_positions


def test_sinusoidal_table_follows_the_paper() -> None:
    table = sinusoidal_positions(7, 6)
    for position in range(7):
        for i in range(3):
            angle = position / 10000 ** (2 * i / 6)
            assert math.isclose(table[position, 2 * i], math.sin(angle), abs_tol=1e-5)
            assert math.isclose(table[position, 2 * i + 1], math.cos(angle), abs_tol=1e-5)
    assert sinusoidal_positions(4, 5).shape == (4, 5)


def test_positions_start_at_the_offset(make_config) -> None:
    embeddings = Embeddings(make_config(position_offset=3)).eval()
    for parameter in embeddings.parameters():
        torch.nn.init.normal_(parameter)
    zeros = torch.zeros(1, dtype=torch.int64)
    raw = embeddings.word.weight[0] + embeddings.position.weight[3] + embeddings.token_type.weight[0]
    assert torch.allclose(embeddings(zeros, zeros, zeros)[0], embeddings.norm(raw), atol=1e-6)
