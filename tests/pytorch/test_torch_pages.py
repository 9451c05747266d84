"""The examples of pages about PyTorch, which the other tests cannot run."""

import importlib
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT / "docs"))
pages = importlib.import_module("pages")


@pytest.mark.parametrize("name", pages.PYTORCH)
def test_examples_run(name, tmp_path):
    pytest.importorskip("matplotlib", reason="pages draw pictures")
    page = pages.DOCS / name
    pages.run(page, tmp_path)
    if name.startswith("guides/"):
        assert pages.made_pictures(page, tmp_path)
