"""Which software a process runs, as far as results depend on it."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from variegate._version import __version__
from variegate.dask.errors import UnlikeWorkersWarning, VersionMismatchError

#: What else the last bits of a number depend on.
_NUMERICAL = ("numpy", "scipy", "numba")


@cache
def code_version() -> str:
    """Return the version of Variegate, and a hash of its source.

    The hash tells apart two states of a working copy that call themselves the same.
    """
    root = Path(__file__).parent.parent
    digest = sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0")
        digest.update(sha256(path.read_bytes()).digest())
    return f"{__version__} (source {digest.hexdigest()[:8]})"


def environment() -> dict[str, str]:
    """Return the versions that results of this process depend on."""
    import scipy.linalg  # noqa: F401 - only libraries that are loaded are listed
    from threadpoolctl import threadpool_info

    found = {
        "variegate": code_version(),
        "python": ".".join(map(str, sys.version_info[:2])),
    }
    for package in _NUMERICAL:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "missing"
    # The same library takes other roads on other processors.  Packages that compute
    # nothing here, such as OpenCV, bring libraries of their own.
    libraries = {
        f"{library.get('version')} for {library['architecture']}"
        for library in threadpool_info()
        if "architecture" in library
        and any(name in library["filepath"] for name in ("numpy", "scipy"))
    }
    return found | {"linear algebra": ", ".join(sorted(libraries))}


def environment_there() -> Callable[[], dict[str, str]]:
    """Return a function that describes a remote process, perhaps without Variegate.

    A function within a function travels as its code, so that a process may answer that
    has no Variegate, or one that knows no clusters.
    """

    def describe() -> dict[str, str]:
        try:
            from variegate.dask.versions import environment

            return environment()
        except ImportError:
            pass
        try:
            from variegate._version import __version__

            return {"variegate": f"{__version__}, which knows no clusters"}
        except ImportError:
            return {"variegate": "missing"}

    return describe


def check_alike(found: Mapping[str, Mapping[str, str]]) -> None:
    """Compare processes, by their names, with this one.

    Raises
    ------
    VersionMismatchError
        If one has another Variegate.

    Warns
    -----
    UnlikeWorkersWarning
        If one has another Python or another library of those that compute.
    """
    here: dict[str, Any] = environment()
    others = {name: there["variegate"] for name, there in found.items()}
    unlike = [
        f"{name} has {other}"
        for name, other in sorted(others.items())
        if other != here["variegate"]
    ]
    if unlike:
        raise VersionMismatchError(
            f"the driver has Variegate {here['variegate']}, but {_listed(unlike)}: "
            "start the whole cluster with the same one"
        )
    unlike = [
        f"{name} has {what} {there[what]}"
        for name, there in sorted(found.items())
        for what in here
        if there.get(what) != here[what]
    ]
    if unlike:
        own = ", ".join(f"{k} {v}" for k, v in here.items() if k != "variegate")
        warnings.warn(
            f"{_listed(unlike)}, while the driver has {own}: results may differ in "
            "their last digits from those of another run",
            UnlikeWorkersWarning,
            stacklevel=3,
        )


def _listed(problems: list[str], most: int = 3) -> str:
    more = len(problems) - most
    return "; ".join(problems[:most]) + (f"; and {more} more" if more > 0 else "")
