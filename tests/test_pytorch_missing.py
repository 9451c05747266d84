"""Where PyTorch is missing, the message says how to get it."""

import subprocess
import sys

import pytest

from variegate._install import install_command


@pytest.mark.parametrize(
    "use",
    [
        "import variegate.torch",
        "from benchmarks import load_benchmark; load_benchmark('torch')",
    ],
)
def test_without_pytorch_the_message_says_how_to_get_it(use):
    code = (
        "import sys, variegate; sys.modules['torch'] = None; "  # SciPy looks for it too
        f"{use}"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert install_command("torch") in done.stderr


def fit_without_pytorch(device):
    code = (
        "import sys, numpy as np, variegate as vg; "
        f"model = vg.LargeMarginDPP(kernel=vg.Linear(), device={device!r}, l2=0.1); "
        "sys.modules['torch'] = None; model.fit([np.eye(3)], [[0]]); print('learned')"
    )
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


@pytest.mark.parametrize(
    "device", ["cpu", pytest.param("cuda", marks=pytest.mark.slow)]
)
def test_learning_on_a_device_says_how_to_get_pytorch(device):
    assert install_command("torch") in fit_without_pytorch(device).stderr


def test_auto_is_numpy_without_pytorch():
    assert fit_without_pytorch("auto").stdout == "learned\n"
