"""Numbers in sentences."""


def counted(amount: int, what: str) -> str:
    """``1 layer``, ``2 layers``; thousands have commas."""
    return f"{amount:,} {what}{'' if amount == 1 else 's'}"
