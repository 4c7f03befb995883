"""Numbers in sentences."""


def counted(amount: int, what: str) -> str:
    """``1 layer``, ``2 layers``; thousands have commas."""
    return f"{amount:,} {what}{'' if amount == 1 else 's'}"


def signed_points(change: float, digits: int = 2) -> str:
    """``+1.20`` of 0.012, ``-0.40`` of -0.004; what rounds to nothing is ``0.00``, without a sign."""
    found = f"{100 * change:+z.{digits}f}"
    return found if found.strip("+0.") else found[1:]
