"""The commands in messages about missing packages fit how the package was installed."""

import importlib.metadata
import json

import pytest

from variegate._install import install_command

COMMIT = "6f2c1d0"
INSTALLED = {
    "from an index": (None, "pip install 'variegate[text]'"),
    "editable, from a clone": (
        {"url": "file:///opt/a%20b", "dir_info": {"editable": True}},
        "pip install -e '/opt/a b[text]'",
    ),
    "from a clone": (
        {"url": "file:///opt/variegate", "dir_info": {}},
        "pip install '/opt/variegate[text]'",
    ),
    "from a repository": (
        {
            "url": "https://example.org/v.git",
            "vcs_info": {"vcs": "git", "commit_id": COMMIT},
        },
        f"pip install 'variegate[text] @ git+https://example.org/v.git@{COMMIT}'",
    ),
    "from a wheel": (
        {"url": "file:///tmp/v.whl", "archive_info": {}},
        "pip install 'variegate[text] @ file:///tmp/v.whl'",
    ),
}


@pytest.mark.parametrize(("record", "command"), INSTALLED.values(), ids=INSTALLED)
def test_install_command(record, command, tmp_path, monkeypatch):
    (tmp_path / "METADATA").write_text("Metadata-Version: 2.4\nName: variegate\n")
    if record is not None:
        (tmp_path / "direct_url.json").write_text(json.dumps(record))
    found = importlib.metadata.Distribution.at(tmp_path)
    monkeypatch.setattr(importlib.metadata, "distribution", {"variegate": found}.get)
    assert install_command("text") == command


def test_a_package_that_is_not_installed(monkeypatch):
    def distribution(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", distribution)
    assert install_command("text") == "pip install 'variegate[text]'"
