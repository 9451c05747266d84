"""The package as a whole: its names, what importing it costs, what it loads."""

import importlib
import pkgutil
import subprocess
import sys

import pytest

import variegate as vg

OPTIONAL = (
    "click",
    "cv2",
    "matplotlib",
    "pyarrow",
    "dask",
    "torch",
    "numba",
    "pandas",
    "syntok",
    "regex",
)

PUBLIC = {
    "FixedKernel",
    "Gaussian",
    "GroundSet",
    "Kernel",
    "LEnsemble",
    "LargeMarginDPP",
    "LargeMarginDPPCV",
    "Linear",
    "Mixture",
    "MultipleKernel",
    "Precomputed",
    "Selection",
    "SimilarityRepairWarning",
    "__version__",
    "datasets",
    "decoding",
    "domains",
    "large_margin_loss",
    "load",
    "metrics",
    "nearest_psd",
    "sampling",
    "select",
    "solvers",
}


def test_public_names():
    assert set(vg.__all__) == PUBLIC
    for name in vg.__all__:
        assert getattr(vg, name) is not None


@pytest.mark.parametrize(
    "name",
    [
        module.name
        for module in pkgutil.walk_packages(vg.__path__, "variegate.")
        if ".cli" not in module.name
    ],
)
def test_every_module_exports_what_it_says(name):
    module = importlib.import_module(name)
    for exported in getattr(module, "__all__", []):
        assert hasattr(module, exported)


def python(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout


def test_import_loads_nothing_optional():
    # scikit-learn loads pandas where it is installed, and pandas loads others.
    code = (
        "import sys; sys.modules['pandas'] = None; "
        f"import variegate; print([m for m in {OPTIONAL!r} if sys.modules.get(m)])"
    )
    assert python(code).strip() == "[]"


def test_layers_point_one_way():
    # What each layer must not load: core numerics know nothing of the layers above.
    forbidden = {
        "variegate.linalg": [
            "ground_set",
            "kernels",
            "estimator",
            "experiments",
            "cli",
        ],
        "variegate.objective": ["kernels", "solvers", "estimator", "decoding"],
        "variegate.problem": ["estimator", "decoding", "sampling", "experiments"],
        "variegate.decoding": ["ensemble", "estimator", "kernels", "experiments"],
        "variegate.ensemble": ["estimator", "kernels", "solvers", "experiments"],
        "variegate.estimator": ["persistence", "experiments", "cli"],
        "variegate.tuning": ["persistence", "experiments", "tables", "cli"],
        "variegate.description.figures": ["experiments", "tables", "cli"],
        "variegate.tables": ["experiments", "text", "video", "cli"],
        "variegate.experiments.synthetic": ["cli"],
    }
    for module, above in forbidden.items():
        # The package's own __init__ loads everything, so it is left out.
        code = (
            "import sys, types, importlib.util as u;"
            "p = types.ModuleType('variegate');"
            f"p.__path__ = {list(vg.__path__)!r}; sys.modules['variegate'] = p;"
            f"import {module};"
            f"print([m for m in {above!r} if 'variegate.' + m in sys.modules])"
        )
        assert python(code).strip() == "[]", module


def test_the_package_is_typed():
    from pathlib import Path

    assert (Path(vg.__file__).parent / "py.typed").exists()
