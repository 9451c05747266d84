"""Where PyTorch is missing, the message says how to get it."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("module", ["variegate.torch", "variegate.tensors"])
def test_without_pytorch_the_message_says_how_to_get_it(module):
    code = (
        "import sys, variegate; sys.modules['torch'] = None; "  # SciPy looks for it too
        f"import {module}"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "pip install 'variegate[torch]'" in done.stderr
