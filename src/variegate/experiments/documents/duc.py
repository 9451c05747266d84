"""The paper's own data, for those who hold their licence: DUC 2003 and 2004.

The folder holds ``duc2003`` and ``duc2004``, each with ``docs`` and ``models`` as NIST
distributes them.
"""

from __future__ import annotations

from pathlib import Path

from variegate.text import Cluster, read_duc


def check_duc(folder: Path) -> Path:
    """Return the folder, absolute; refuse one of another shape before any work."""
    for year in ("duc2003", "duc2004"):
        for part in ("docs", "models"):
            if not (folder / year / part).is_dir():
                raise ValueError(
                    f"no folder {year}/{part} in {folder}: --duc DIR expects duc2003 "
                    "and duc2004, each with docs and models as NIST distributes them"
                )
    return folder.resolve()


def read_year(folder: str, year: str) -> list[Cluster]:
    """Return the clusters of one year."""
    return read_duc(Path(folder) / year / "docs", Path(folder) / year / "models")
