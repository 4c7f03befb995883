"""Where what was computed once is kept for all later runs.

Anything may happen to such a folder: what is missing or damaged is made again.
"""

import os
from pathlib import Path

# The folder; set to nothing it switches all caches off.
VARIABLE = "ENC_CACHE"


def cache_folder(kind: str) -> Path | None:
    """``kind`` in the folder that ``ENC_CACHE`` names, or in the user's cache; None: switched off."""
    given = os.environ.get(VARIABLE)
    if given is not None:
        return Path(given) / kind if given else None
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "enc" / kind
    except RuntimeError:  # a user without a home
        return None
