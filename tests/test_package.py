"""The package as a whole: its names, what importing it costs, what it loads."""

import ast
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import variegate as vg
from frameworks import need_framework_of

OPTIONAL = (
    "click",
    "cv2",
    "jinja2",
    "matplotlib",
    "pyarrow",
    "dask",
    "distributed",
    "torch",
    "triton",
    "safetensors",
    "numba",
    "pandas",
    "syntok",
    "trafilatura",
    "lxml",
    "regex",
    "rich",
    "haystack",
    "langchain_core",
    "llama_index",
    "pydantic",
    "starlette",
    "uvicorn",
    "anyio",
)

PUBLIC = {
    "FixedKernel",
    "Gaussian",
    "GroundSet",
    "Kernel",
    "Kinds",
    "LEnsemble",
    "LargeMarginDPP",
    "LargeMarginDPPCV",
    "Linear",
    "Metric",
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
    need_framework_of(name)
    module = importlib.import_module(name)
    for exported in getattr(module, "__all__", []):
        assert hasattr(module, exported)


def python(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout


def test_import_loads_nothing_optional():
    # scikit-learn loads pandas, which loads others, pyarrow and rich where they are
    # installed.  Without them, our own import of one would fail.
    code = (
        "import sys; "
        "sys.modules.update(dict.fromkeys(('pandas', 'pyarrow', 'rich'))); "
        f"import variegate; print([m for m in {OPTIONAL!r} if sys.modules.get(m)])"
    )
    assert python(code).strip() == "[]"


#: The rooms of the house from the ground up.  Each may import, at once, when called or
#: for a type, from its own room and from those on lines above it.
LAYERS = """
_version _typing
_validation _random _files _processes schema subsets
compiled report
linalg
tensors
ground_set selection metrics
decoding sampling
ensemble
kernels streaming
learning
solvers
partitions
model_format
stored_kernels
persistence
estimator baselines datasets
tuning
application
text video tables
torch dask
experiments benchmarks integrations studio
cli
__main__
"""


def imports_of(path):
    """Return every module of the package that a file imports, wherever it does."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            inside = node.module == "variegate"
            found |= {f"variegate.{a.name}" for a in node.names if inside}
            found |= {node.module} - {"variegate"}
    return {name for name in found if name.split(".")[0] == "variegate"}


def test_layers_point_one_way():
    height = {
        room: number
        for number, line in enumerate(LAYERS.split("\n"))
        for room in line.split()
    }
    root = Path(vg.__file__).parent
    wrong = []
    for path in sorted(root.rglob("*.py")):
        room, *rest = path.relative_to(root).with_suffix("").parts
        if room == "__init__":
            continue
        assert room in height, f"{room} has no place among the layers"
        for name in sorted(imports_of(path)):
            other = name.split(".")[1]
            if other != room and not height.get(other, 99) < height[room]:
                wrong.append(f"{'/'.join([room, *rest])} imports {name}")
    assert wrong == []


def test_the_package_is_typed():
    assert (Path(vg.__file__).parent / "py.typed").exists()
