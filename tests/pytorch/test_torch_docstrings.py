"""The examples of docstrings about PyTorch, which the other tests cannot run."""

import doctest
import importlib
import pkgutil

import pytest

import variegate.tensors
import variegate.torch

MODULES = [
    module.name
    for package in (variegate.tensors, variegate.torch)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0
