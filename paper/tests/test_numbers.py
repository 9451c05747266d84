"""The paper's numbers, in minutes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    out = tmp_path_factory.mktemp("synthetic")
    command = [sys.executable, "-m", "paper", "synthetic", "--out", str(out)]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
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
