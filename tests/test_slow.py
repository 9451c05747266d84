"""The package as it ships, in an environment of its own."""

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent


def run(*command, cwd, env=None):
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        check=True,
    )


#: Used without any extra.
USE = """
import numpy as np
import variegate as vg
rng = np.random.default_rng(0)
X = rng.normal(size=(30, 4))
assert len(vg.select(X, X[:, 0], 3)) == 3
data = vg.datasets.make_synthetic(n_sets=20, random_state=0)
model = vg.LargeMarginDPP(kernel=vg.Linear()).fit(data.ground_sets, data.subsets)
print(model.score(data.ground_sets, data.subsets))
"""


def test_a_wheel_works_in_an_empty_environment_and_another_folder(tmp_path):
    run(sys.executable, "-m", "build", "--wheel", "--outdir", tmp_path, cwd=ROOT)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        rooms = {name.split("/")[0] for name in archive.namelist()}
    assert {room.partition("-")[0] for room in rooms} == {"variegate"}
    venv.create(tmp_path / "env", with_pip=True)
    binaries = tmp_path / "env" / "bin"
    run(binaries / "pip", "install", "--quiet", wheel, cwd=tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    result = run(binaries / "python", "-c", USE, cwd=elsewhere)
    assert 0.5 < float(result.stdout) <= 1.0
    run(binaries / "pip", "install", "--quiet", f"{wheel}[cli]", cwd=tmp_path)
    assert "summarize" in run(binaries / "variegate", "--help", cwd=elsewhere).stdout
