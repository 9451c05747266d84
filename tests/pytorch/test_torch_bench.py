"""``python -m benchmarks torch`` measures what it says."""

import json

import pytest
import torch
from click.testing import CliRunner

from benchmarks import tensors as bench
from benchmarks.__main__ import app
from benchmarks.timing import Effort


def test_the_command_writes_a_table(tmp_path):
    done = CliRunner().invoke(app, ["torch", "--quick", "--out", f"{tmp_path}"])
    assert done.exit_code == 0, done.output
    rows = json.loads((tmp_path / "torch.json").read_text())
    assert {row["question"] for row in rows} == {"loss", "features"}
    assert all(row["ratio"] > 0 and row["growth"] for row in rows)
    assert "autograd, solve" in (tmp_path / "torch.md").read_text()


def test_memory_of_a_gpu_is_counted(device):
    if device == "cpu":
        pytest.skip("counts memory of a GPU")
    rows = bench.loss_rows(device, ((1, 200),), Effort(1, 0.0))
    assert all(row["peak_mib"] >= 200 * 200 * 8 / 2**20 for row in rows)


def test_who_finds_another_gradient_has_no_time(monkeypatch):
    right = bench._by_solve
    monkeypatch.setattr(bench, "_by_solve", lambda *given: 2.0 * right(*given))
    with pytest.raises(RuntimeError, match="autograd, solve finds another gradient"):
        bench.loss_rows("cpu", ((2, 5),), Effort(1, 0.0))


def test_threads_are_as_before():
    before = torch.get_num_threads()
    bench.feature_rows("cpu", (50,), 3, Effort(1, 0.0))
    assert torch.get_num_threads() == before
