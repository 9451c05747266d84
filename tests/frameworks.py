"""Which modules need a framework that may not be there."""

import importlib.util

import pytest

#: From modules to what they are made for, and the extra that brings it.
FRAMEWORKS = {
    "variegate.integrations.haystack": ("haystack", "haystack"),
    "variegate.integrations.langchain": ("langchain_core", "langchain"),
    "variegate.integrations.llamaindex": ("llama_index", "llamaindex"),
}


#: Rooms in which every module needs PyTorch.
PYTORCH = ("variegate.torch",)


#: Rooms in which every module needs Starlette and uvicorn.
STUDIO = "variegate.studio"


def is_installed(module):
    return importlib.util.find_spec(FRAMEWORKS[module][0]) is not None


def need_framework_of(module):
    """Skip the test where a module needs a framework that is not installed."""
    if module in FRAMEWORKS and not is_installed(module):
        extra = FRAMEWORKS[module][1]
        pytest.skip(f"needs 'variegate[{extra}]': make test-integrations has it")
    if module.startswith("variegate.dask") and not importlib.util.find_spec(
        "distributed"
    ):
        pytest.skip("needs 'variegate[dask]': make test has it")
    if module.startswith(PYTORCH) and importlib.util.find_spec("torch") is None:
        pytest.skip("needs 'variegate[torch]': make test-torch has it")
    if module.startswith(STUDIO) and importlib.util.find_spec("starlette") is None:
        pytest.skip("needs 'variegate[studio]': make test has it")
