"""Commands under hardship: on a full disk."""

import resource
from pathlib import Path

import pytest

from table_instances import names_in, process

MODEL = Path(__file__).parent / "files" / "table-selector-v1.json"

#: A disk that is full after so many bytes, for one process.
FULL = (
    "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
    "from variegate.cli import main; main()"
)


@pytest.mark.skipif(not hasattr(resource, "RLIMIT_FSIZE"), reason="needs such a limit")
def test_a_full_disk_leaves_what_was_there(tmp_path):
    picture = tmp_path / "weights.png"
    picture.write_text("before")
    command = ("describe", MODEL, "--png", picture, "--force")
    started = process(*command, code=FULL)
    _, messages = started.communicate(timeout=120)
    assert started.returncode == 2
    assert "Traceback" not in messages
    assert picture.read_text() == "before"
    assert names_in(tmp_path) == ["weights.png"]
