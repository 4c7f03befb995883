"""Claims about numbers in sentences."""

import pytest

from encoder.wording import counted, signed_points


@pytest.mark.parametrize(
    ("change", "digits", "said"),
    [
        (0.012, 2, "+1.20"),
        (-0.004, 2, "-0.40"),
        (0.0, 2, "0.00"),
        (-0.0, 2, "0.00"),
        (-0.00004, 2, "0.00"),
        (0.00004, 2, "0.00"),
        (-0.0001, 1, "0.0"),
        (-0.1, 1, "-10.0"),
    ],
)
def test_only_points_that_can_be_seen_have_a_sign(change: float, digits: int, said: str) -> None:
    assert signed_points(change, digits) == said


def test_one_is_singular() -> None:
    assert [counted(amount, "cell") for amount in (0, 1, 1200)] == ["0 cells", "1 cell", "1,200 cells"]
