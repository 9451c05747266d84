"""Run the tests on every Python, with the least and the newest versions allowed.

For each Python and each end of the ranges in ``pyproject.toml`` this makes an empty
environment, installs the package with what its tests need, and runs the tests there:

    python scripts/versions.py
    python scripts/versions.py --python 3.13 --end least -- tests/test_kernels.py

What follows ``--`` goes to pytest; without it, every test runs but the slow ones. The
least versions are those of the direct requirements that have a wheel for that Python.
Each Python is one that uv finds, on the PATH or elsewhere, or fetches.
Ruff and mypy are not run here: ``make test`` runs them with the versions of ``dev``.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = ("3.11", "3.12", "3.13")
RESOLUTIONS = {"least": "lowest-direct", "newest": "highest"}


def install(python: str, end: str, folder: Path) -> Path:
    """Make an environment and return its Python."""
    uv = [sys.executable, "-m", "uv"]
    subprocess.run([*uv, "venv", "--quiet", "--python", python, folder], check=True)
    interpreter = folder / "bin" / "python"
    subprocess.run(
        [
            *(*uv, "pip", "install", "--quiet", "--python", interpreter),
            *("--resolution", RESOLUTIONS[end]),
            *("--only-binary", ":all:", "--no-binary", "variegate"),
            *("--editable", f"{ROOT}[test]"),
        ],
        check=True,
    )
    return interpreter


def passes(interpreter: Path, arguments: list[str]) -> bool:
    """Whether the tests pass under this Python."""
    command = [interpreter, "-m", "pytest", "-m", "not slow", "-p", "no:cacheprovider"]
    # The cache of compiled code is of one version of Numba.
    settings = {"NUMBA_CACHE_DIR": str(interpreter.parents[1] / "numba")}
    return (
        subprocess.run(
            [*command, *(arguments or ["-n", "auto"])],
            cwd=ROOT,
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1"} | settings,
            check=False,
        ).returncode
        == 0
    )


def main() -> int:
    """Try every Python and both ends; return 1 if anything failed."""
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").partition("\n")[0],
        epilog="What follows -- goes to pytest.",
    )
    parser.add_argument("--python", choices=PYTHONS, action="append")
    parser.add_argument("--end", choices=tuple(RESOLUTIONS), action="append")
    parser.add_argument("pytest", nargs="*", help="arguments of pytest")
    chosen = parser.parse_args()

    failed = []
    for python in chosen.python or PYTHONS:
        for end in chosen.end or RESOLUTIONS:
            name = f"Python {python} with the {end} versions"
            print(f"\n== {name}", flush=True)
            with tempfile.TemporaryDirectory() as folder:
                try:
                    interpreter = install(python, end, Path(folder))
                except subprocess.CalledProcessError:  # uv has said why
                    failed.append(f"{name} (could not be installed)")
                    continue
                if not passes(interpreter, chosen.pytest):
                    failed.append(name)
    print("\nfailed: " + "; ".join(failed) if failed else "\neverything passed")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
