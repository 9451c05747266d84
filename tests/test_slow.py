"""Checks that take minutes: the package as it ships, and the paper's numbers."""

import json
import os
import subprocess
import sys
import venv
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


def test_a_wheel_works_in_an_empty_environment_and_another_folder(tmp_path):
    run(sys.executable, "-m", "build", "--wheel", "--outdir", tmp_path, cwd=ROOT)
    (wheel,) = tmp_path.glob("*.whl")
    venv.create(tmp_path / "env", with_pip=True)
    binaries = tmp_path / "env" / "bin"
    run(binaries / "pip", "install", "--quiet", f"{wheel}[cli]", cwd=tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    result = run(
        binaries / "variegate",
        *("reproduce", "synthetic", "--quick", "--out", "results"),
        cwd=elsewhere,
    )
    assert "what the paper says" in result.stdout
    assert (elsewhere / "results" / "fig1.png").exists()


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    out = tmp_path_factory.mktemp("synthetic")
    run(
        *(sys.executable, "-c", "from variegate.cli import main; main()"),
        *("reproduce", "synthetic", "--out", out),
        cwd=out,
    )
    return json.loads((out / "results.json").read_text())


def f_score(results, figure, axis, value, method):
    (row,) = (
        row for row in results[figure] if row[axis] == value and row["method"] == method
    )
    return row["f"]["mean"]


def test_figure_1a(results):
    oracle, margin, likelihood = (
        f_score(results, "fig1a", "n_train", 200, method)
        for method in ("oracle", "lme", "mle")
    )
    assert margin - likelihood >= 0.02
    assert oracle - margin <= 0.02


def test_figure_1b(results):
    margin, likelihood = (
        f_score(results, "fig1b", "sigma", 40.0, method) for method in ("lme", "mle")
    )
    assert margin - likelihood >= 0.08


def test_figure_1c(results):
    best_single = max(
        row["f"]["mean"] for row in results["fig1b"] if row["method"] == "lme"
    )
    assert f_score(results, "fig1c", "n_train", 200, "lme") >= best_single - 0.005
