"""Run the pages and keep the pictures that they make and show.

``python docs/pictures.py [PAGE...]``, by default for all illustrated pages.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from pages import ROOT, can_run, illustrated_pages, made_pictures, run


def main() -> None:
    """Copy what the pages make to where they show it from."""
    given = [Path(name).resolve() for name in sys.argv[1:]]
    for page in given or filter(can_run, illustrated_pages()):
        with TemporaryDirectory() as folder:
            run(page, Path(folder))
            for shown, made in made_pictures(page, Path(folder)).items():
                shown.parent.mkdir(exist_ok=True)
                shutil.copyfile(made, shown)
                print(f"{page.relative_to(ROOT)}: {shown.resolve().relative_to(ROOT)}")


if __name__ == "__main__":
    main()
