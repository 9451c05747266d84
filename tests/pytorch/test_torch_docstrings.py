"""The examples of docstrings about PyTorch, which the other tests cannot run."""

import doctest
import importlib
import pkgutil

import pytest

import variegate.torch

MODULES = [
    module.name
    for module in pkgutil.walk_packages(variegate.torch.__path__, "variegate.torch.")
]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0
