"""The package as a whole: its names, what importing it costs, what it loads."""

import ast
import importlib
import json
import pkgutil
import subprocess
import sys
from inspect import signature
from itertools import pairwise
from pathlib import Path

import pytest

import variegate as vg
from frameworks import need_framework_of
from variegate.application.table_defaults import LAM, default_estimator
from variegate.baselines import METHODS
from variegate.cli.app import app
from variegate.text.cluster_view import FEATURE_SETS
from variegate.text.evidence import QUALITY_MODELS, EvidenceSelector
from variegate.text.summarizer import SIMILARITIES, Summarizer
from variegate.video import KeyframePicker

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
    "SequentialDPP",
    "SimilarityRepairWarning",
    "__version__",
    "check_kernel",
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


def test_every_module_exports_what_it_says():
    missing = []
    for module in pkgutil.walk_packages(vg.__path__, "variegate."):
        if ".cli" in module.name or is_without_framework(module.name):
            continue
        imported = importlib.import_module(module.name)
        names = getattr(imported, "__all__", [])
        missing += [f"{module.name}.{n}" for n in names if not hasattr(imported, n)]
    assert missing == []


def is_without_framework(module):
    try:
        need_framework_of(module)
    except pytest.skip.Exception:
        return True
    return False


def test_stubs_export_the_names_that_are_imported_lazily():
    # lazy_loader reads the imports of a stub, type checkers its __all__.
    root = Path(vg.__file__).parent
    stubs = sorted(root.rglob("__init__.pyi"))
    assert root / "__init__.pyi" in stubs
    for stub in stubs:
        name = ".".join(["variegate", *stub.relative_to(root).parts[:-1]])
        *imports, exported = ast.parse(stub.read_text()).body
        imported = [alias.name for node in imports for alias in node.names]
        names = sorted(ast.literal_eval(exported.value))
        assert names == sorted(imported)
        assert names == sorted(importlib.import_module(name).__all__)


def test_names_can_be_completed():
    assert set(dir(vg)) >= PUBLIC
    with pytest.raises(AttributeError, match="nothing"):
        vg.nothing  # noqa: B018


#: Modules that take long to import, or need not be installed.
HEAVY = """
scipy.fft scipy.linalg scipy.ndimage scipy.optimize scipy.sparse scipy.spatial
scipy.special scipy.stats sklearn sklearn.cluster sklearn.linear_model sklearn.metrics
sklearn.preprocessing joblib threadpoolctl numba pandas
click cv2 jinja2 matplotlib narwhals pyarrow dask distributed torch triton safetensors
syntok trafilatura lxml docutils pypdfium2 regex rich haystack langchain_core
llama_index pydantic starlette uvicorn anyio
"""

#: scikit-learn imports these itself: scipy.stats, which imports most of SciPy, and
#: pandas where it is installed, which imports others.
OF_SKLEARN = """
scipy.fft scipy.linalg scipy.ndimage scipy.optimize scipy.sparse scipy.spatial
scipy.special scipy.stats sklearn joblib threadpoolctl pandas narwhals pyarrow
"""

#: Steps of one process, and the heavy modules that each may import.
STEPS = [
    ("import variegate as vg", ""),
    (
        "import numpy as np\n"
        "X = np.random.default_rng(0).standard_normal((30, 4))\n"
        "subsets = [[0, 1], [2, 3]]",
        "",
    ),
    *((f"vg.select(X, X[:, 0], 3, {name!r})", "") for name in METHODS),
    ("vg.select(X, X[:, 0], budget=3.0, costs=X[:, 1] ** 2, include=[1])", ""),
    (
        "from variegate.integrations import ContextSelector, Found\n"
        "found = Found(list(map(str, X)), list(X[:, 0]), list(X))\n"
        "ContextSelector(fetch_k=20, k=3).choose(found)",
        "",
    ),
    ("vg.metrics.f_score([0, 1], [1, 2])", ""),
    ("model = vg.LEnsemble(X @ X.T)\nmodel.sample(2)", "scipy.linalg numba"),
    (
        "sets = [vg.GroundSet(X[:15]), vg.GroundSet(X[15:])]\n"
        "model = vg.LargeMarginDPP().fit(sets, subsets)",
        OF_SKLEARN,
    ),
    ("model.predict(sets)", ""),
]


def loaded_by(steps, preparation=""):
    """Return the heavy modules that each of some steps imports, in one process."""
    code = f"import json, sys\n{preparation}\nloaded = []\n" + "\n".join(
        f"{step}\nloaded.append([m for m in {HEAVY.split()!r} if m in sys.modules])"
        for step in steps
    )
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nprint(json.dumps(loaded))"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    loaded = [set(names) for names in json.loads(done.stdout.splitlines()[-1])]
    return [now - before for before, now in pairwise([set(), *loaded])]


def test_heavy_modules_are_imported_where_they_are_needed():
    loaded = loaded_by([step for step, _ in STEPS])
    too_much = {
        step: names - set(allowed.split())
        for (step, allowed), names in zip(STEPS, loaded, strict=True)
        if names - set(allowed.split())
    }
    assert too_much == {}


def test_help_of_commands_imports_no_heavy_module():
    commands = [[], *([name] for name in app.list_commands(None))]
    steps = [f"run({[*command, '--help']!r})" for command in commands]
    run = (
        "def run(words):\n"
        "    from variegate.cli.app import app\n"
        "    app.main(words, prog_name='variegate', standalone_mode=False)"
    )
    assert set().union(*loaded_by(steps, run)) == {"click"}


def test_options_have_the_defaults_and_choices_of_the_estimators():
    of_video = {**parameters(KeyframePicker), **parameters(KeyframePicker.fit)}
    compared = []
    for command, defaults in (
        ("fit-summarizer", parameters(Summarizer)),
        ("fit-evidence", parameters(EvidenceSelector)),
        ("fit-keyframes", of_video),
    ):
        for option in app.get_command(None, command).params:
            if option.name in defaults and option.name != "omega":  # which may repeat
                assert option.default == defaults[option.name], option.name
                compared.append(option.name)
    assert compared == [
        *("budget", "lam", "max_iter", "similarity", "features"),
        *("quality_model", "lam", "max_iter"),
        *("lam", "max_iter", "every"),
    ]
    command = app.get_command(None, "fit-summarizer")
    options = {each.name: each for each in command.params}
    assert set(options["similarity"].type.choices) == set(SIMILARITIES)
    assert set(options["features"].type.choices) == set(FEATURE_SETS)
    options = app.get_command(None, "fit-evidence").params
    (quality,) = (each for each in options if each.name == "quality_model")
    assert tuple(quality.type.choices) == QUALITY_MODELS
    assert default_estimator().lam == LAM


def parameters(function):
    return {name: each.default for name, each in signature(function).parameters.items()}


#: The rooms of the house from the ground up.  Each may import, at once, when called or
#: for a type, from its own room and from those on lines above it.
LAYERS = """
_version _typing _progress _memory
_install
_validation _random _processes files subsets
report
linalg
ground_set selection metrics
decoding sampling
ensemble
kernels
learning
solvers
partitions
files.model_format files.models
estimator baselines datasets
tuning
application
text video tables
torch dask material
integrations studio
cli
__main__
"""


#: Packages whose imports are checked; only the first is installed.
OURS = {"variegate", "paper", "benchmarks"}


def imports_of(path):
    """Return every module of ours that a file imports, wherever it does."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            inside = node.module == "variegate"
            found |= {f"variegate.{a.name}" for a in node.names if inside}
            found |= {node.module} - {"variegate"}
    return {name for name in found if name.split(".")[0] in OURS}


def place_of(parts, height):
    """Return the module of a path that has a place of its own, or else the room."""
    module = ".".join(parts[:2])
    place = module if module in height else parts[0]
    assert place in height, f"{place} has no place among the layers"
    return place


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
        here = place_of([room, *rest], height)
        for name in sorted(imports_of(path)):
            package, *parts = name.split(".")
            assert package == "variegate", f"{path} imports {name}"
            other = place_of(parts, height)
            if parts[0] != room and not height[other] < height[here]:
                wrong.append(f"{'/'.join([room, *rest])} imports {name}")
    assert wrong == []


def test_the_package_is_typed():
    assert (Path(vg.__file__).parent / "py.typed").exists()
