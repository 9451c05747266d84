"""Tests of what is made with PyTorch, on the device that VARIEGATE_DEVICE names."""

import importlib.util
import os

import pytest

if os.environ.get("VARIEGATE_DEVICE", "cpu") == "cpu":
    os.environ.setdefault("TRITON_INTERPRET", "1")  # before Triton is imported

# In an environment without PyTorch there is nothing to collect here.
collect_ignore_glob = [] if importlib.util.find_spec("torch") else ["test_*.py"]


@pytest.fixture(scope="session")
def device():
    return os.environ.get("VARIEGATE_DEVICE", "cpu")
