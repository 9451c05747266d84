"""Versions of the software that results of a process depend on."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

from distributed import Client
from distributed.versions import VersionMismatchWarning

from variegate._version import __version__
from variegate.dask.errors import VersionMismatchError

#: Seconds that all workers together may take to report their versions.
_CENSUS = 30.0


@cache
def code_version() -> str:
    """Return the version of Variegate and a hash of its source files, as one text."""
    root = Path(__file__).parent.parent
    digest = sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0")
        digest.update(sha256(path.read_bytes()).digest())
    return f"{__version__} (source {digest.hexdigest()[:8]})"


def software_versions() -> dict[str, str]:
    """Return versions, by name, of software that results of this process depend on."""
    import scipy.linalg  # noqa: F401 - only libraries that are loaded are listed
    from threadpoolctl import threadpool_info

    # The same library computes differently on other processors.  Packages that compute
    # nothing here, such as OpenCV, bring libraries of their own.
    libraries = {
        f"{library.get('version')} for {library['architecture']}"
        for library in threadpool_info()
        if "architecture" in library
        and any(name in library["filepath"] for name in ("numpy", "scipy"))
    }
    return {
        "Variegate": code_version(),
        "Python": ".".join(map(str, sys.version_info[:2])),
        **{package: version(package) for package in ("numpy", "scipy", "numba")},
        "linear algebra": ", ".join(sorted(libraries)),
    }


def compare_versions(client: Client) -> None:
    """Ask all workers for their versions, and call :func:`check_same_versions`."""

    # A nested function travels as its code, so that a process without Variegate, or
    # with a version too old for this, can answer.
    def describe() -> dict[str, str]:
        """Return the versions of the process that runs this."""
        try:
            from variegate.dask.versions import software_versions
        except ImportError:
            return {"Variegate": "missing or too old"}
        return software_versions()

    options: dict[str, Any] = {"on_error": "ignore", "callback_timeout": _CENSUS}
    # A worker that does not answer in time will compare versions in its first task.
    with suppress(TimeoutError):
        check_same_versions(client.run(describe, **options))


def check_same_versions(found: Mapping[str, Mapping[str, str]]) -> None:
    """Raise VersionMismatchError for workers with another Variegate than this process.

    ``found`` are ``software_versions`` by the worker's address; a difference in other
    software is a warning.
    """
    here = software_versions()
    unlike = [
        (library, f"the worker at {address} has {library} {there.get(library)}")
        for address, there in sorted(found.items())
        for library in here
        if there.get(library) != here[library]
    ]
    own = ", ".join(f"{library} {version}" for library, version in here.items())
    others = [words for library, words in unlike if library == "Variegate"]
    if others:
        raise VersionMismatchError(
            f"{_list_problems(others)}, while the driver has {own}: "
            "start the whole cluster with the same Variegate"
        )
    if unlike:
        warnings.warn(
            f"{_list_problems([words for _, words in unlike])}, while the driver has "
            f"{own}: results may differ in their last digits from those of another run",
            VersionMismatchWarning,
            stacklevel=2,
        )


def _list_problems(problems: list[str], most: int = 3) -> str:
    """Return the first ``most`` problems as one text, with the number of the others."""
    more = len(problems) - most
    return "; ".join(problems[:most]) + (f"; and {more} more" if more > 0 else "")
