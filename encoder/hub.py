"""Models and data sets of a hub: whether it can be reached, and a model's files.

Without network the hub's own library retries for half a minute; here a short look-up comes first, and what is
in the library's cache is still found.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from encoder.errors import CheckpointError


def hub_answers(name: str, repo_type: Literal["model", "dataset"]) -> bool:
    """Whether the hub can be reached. Raises ``HfHubHTTPError`` if it can and has nothing called ``name``."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError

    try:
        HfApi().repo_info(name, repo_type=repo_type, timeout=10)
    except HfHubHTTPError:
        raise
    except Exception:  # of whichever HTTP client is in use
        return False
    return True


def download_model(
    name: str,
    *,
    config_file: str,
    check_config: Callable[[Path], object],
    files: Sequence[str],
    weights: Sequence[Sequence[str]],
) -> Path:
    """The local folder of the hub's model ``name``.

    ``config_file`` comes first, and ``check_config`` may refuse it before anything else is fetched. Then come
    ``files`` with the first of the alternative patterns in ``weights`` that matches a file.

    Raises:
        CheckpointError: the hub has no such model or cannot be reached, and neither has the local cache.
    """
    from huggingface_hub import hf_hub_download, snapshot_download

    with _explained(name):
        offline = not hub_answers(name, "model")
        check_config(Path(hf_hub_download(name, config_file, local_files_only=offline)))
        for patterns in weights:
            wanted = [config_file, *files, *patterns]
            folder = Path(snapshot_download(name, allow_patterns=wanted, local_files_only=offline))
            if any(next(folder.glob(pattern), None) for pattern in patterns):
                break
    return folder


def download_config(name: str, config_file: str) -> Path:
    """The local copy of the hub's config of the model ``name``, and nothing else of that model.

    Raises:
        CheckpointError: the hub has no such model or cannot be reached, and neither has the local cache.
    """
    from huggingface_hub import hf_hub_download

    with _explained(name):
        offline = not hub_answers(name, "model")
        return Path(hf_hub_download(name, config_file, local_files_only=offline))


@contextmanager
def _explained(name: str) -> Iterator[None]:
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    try:
        yield
    except HfHubHTTPError as error:
        raise CheckpointError(
            f"{name}: no such folder here, and the model hub has no model of that name, or does not show it "
            f"without a login ({type(error).__name__})"
        ) from error
    except (OSError, HFValidationError) as error:
        raise CheckpointError(
            f"{name}: no such folder here, and the model hub cannot be reached to look for it there"
        ) from error
