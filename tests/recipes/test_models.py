"""Claims about finding the models of a measurement."""

import subprocess
import sys
from pathlib import Path

import pytest

from encoder.errors import CheckpointError
from recipes.models import find_models


def test_folder_tells_shape_task_and_lengths_without_torch(finetuned):
    script = (
        "import sys; from recipes.models import find_models; (model,) = find_models(sys.argv[1:]); "
        "print(model.task.labels, model.max_tokens, model.max_length(), 'torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, finetuned.output], capture_output=True, text=True, check=True
    )
    assert done.stdout == "('neg', 'pos') 64 12 False\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [("{", "not readable as JSON"), ("[]", "expected a JSON object, found list"), ("{}", "no 'model_type'")],
)
def test_config_that_cannot_be_read_is_told(tmp_path, content, message):
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(CheckpointError, match=message):
        find_models([str(tmp_path)])


def test_number_where_a_model_belongs_is_a_list_with_blanks():
    assert not Path("8").exists()
    with pytest.raises(CheckpointError, match="8: no such folder; a list of numbers has commas"):
        find_models(["8"])
