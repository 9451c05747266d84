"""Running the examples of the documentation as a reader would type them.

The tests run every page (``tests/test_docs.py``), and ``docs/pictures.py`` keeps the
pictures that pages make.  Blocks of a page build on each other and run in one folder:

- ```` ```python ```` blocks run in one namespace, those of the README each in its own;
- in ```` ```console ```` blocks the lines after ``$ `` are run by bash (and those
  after ``> ``, which continue them).  They must succeed; the other lines are what they
  print, and are not compared.  ``pip install`` is not run.  Where there are only plain
  ``variegate`` commands, they are called here: most take less time than a process of
  their own would to import what they need.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"

# What pages take from the examples, they import as if they lay beside them.
sys.path.insert(0, str(ROOT / "examples"))

#: Pages whose examples need PyTorch, which may not be there.
PYTORCH = ("guides/encoder.md", "pytorch.md")

#: Pages that show a picture which their own code makes.
ILLUSTRATED = (
    "concepts.md",
    "start.md",
    "tables.md",
    "summaries.md",
    "keyframes.md",
    "guides/*.md",
)

#: Of those, pages whose pictures are of a browser: scripts/studio_screenshots.py.
PHOTOGRAPHED = ("guides/studio.md",)

_BLOCK = re.compile(r"^```(python|console)\n(.*?)^```", re.DOTALL | re.MULTILINE)
_PICTURE = re.compile(r"!\[[^\]]*\]\(([^)\s]+)\)|^```\{(?:image|figure)\} (\S+)", re.M)
_GROUPS = re.compile(r"\bn_groups=(\d+)")
#: Nothing that an example does takes longer, in seconds.
_LONGEST = 600


class Block(NamedTuple):
    """A block of code: its language, its text and the line where the text begins."""

    language: str
    text: str
    line: int


def pages() -> list[Path]:
    """Return the pages of the documentation, and the README."""
    written = (
        page
        for page in DOCS.rglob("*.md")
        if not any(part.startswith("_") for part in page.relative_to(DOCS).parts)
    )
    return sorted([ROOT / "README.md", *written])


def illustrated_pages() -> list[Path]:
    """Return those pages that must show a picture which their own code makes."""
    found = {page for pattern in ILLUSTRATED for page in DOCS.glob(pattern)}
    return sorted(found - {DOCS / name for name in PHOTOGRAPHED})


def can_run(page: Path) -> bool:
    """Tell whether what the examples of a page need is installed."""
    needs_pytorch = any(page == DOCS / name for name in PYTORCH)
    return not needs_pytorch or find_spec("torch") is not None


def blocks(page: Path) -> Iterator[Block]:
    """Yield the blocks of a page that can be run, in order."""
    text = page.read_text(encoding="utf-8")
    for found in _BLOCK.finditer(text):
        yield Block(found[1], found[2], text.count("\n", 0, found.start(2)) + 1)


def pictures(page: Path) -> list[Path]:
    """Return the paths of the pictures that a page shows."""
    targets = _PICTURE.findall(page.read_text(encoding="utf-8"))
    return [page.parent / (plain or directive) for plain, directive in targets]


def run(page: Path, folder: Path, n_groups: int | None = None) -> None:
    """Run all blocks of a page in a folder, each block of the README by itself.

    With ``n_groups``, tables that the page makes have no more groups than that.
    """
    namespace: dict[str, Any] = {}
    with chdir(folder):
        for block in blocks(page):
            if not namespace or page.name == "README.md":
                namespace = {"__name__": page.stem}
            if block.language == "python":
                # Empty lines before it: errors name the line of the page.
                source = "\n" * (block.line - 1) + block.text
                if n_groups is not None:
                    source = _with_groups(source, n_groups)
                exec(compile(source, str(page), "exec"), namespace)
            else:
                _run_console(block, page, folder)
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def _with_groups(source: str, most: int) -> str:
    return _GROUPS.sub(lambda found: f"n_groups={min(int(found[1]), most)}", source)


def commands(block: Block) -> str:
    """Return what is typed in a console block.

    Installing is left out: the examples are about what is installed already.
    """
    typed = [line[2:] for line in block.text.splitlines() if line[:2] in ("$ ", "> ")]
    return "".join(f"{line}\n" for line in typed if not line.startswith("pip install"))


def _run_console(block: Block, page: Path, folder: Path) -> None:
    typed = commands(block)
    status, said = (_called if _is_plain(typed) else _run_by_bash)(typed, folder)
    if status != 0:
        raise RuntimeError(
            f"{page}, line {block.line}: exit status {status}\n{typed}{said}"
        )


def _lines(typed: str) -> list[str]:
    return [line for line in typed.replace("\\\n", " ").splitlines() if line]


def _is_plain(typed: str) -> bool:
    """Tell whether there is nothing that only a shell understands."""
    return all(
        line.startswith("variegate ") and not set(line) & set("|&;<>()$`\\*?[~#")
        for line in _lines(typed)
    )


def _called(typed: str, folder: Path) -> tuple[int, str]:
    """Call commands in this process; return the status and what was printed."""
    from click.testing import CliRunner

    from variegate.cli.app import app

    said = ""
    for line in _lines(typed):
        result = CliRunner().invoke(app, shlex.split(line)[1:])
        said += f"{result.output}{result.exception or ''}"
        if result.exit_code != 0:
            return result.exit_code, said
    return 0, said


def _run_by_bash(typed: str, folder: Path) -> tuple[int, str]:
    environment = {
        **os.environ,
        # The commands that are installed beside this Python, wherever it is run from.
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "MPLBACKEND": "agg",
    }
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", typed],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_LONGEST,
    )
    return done.returncode, done.stdout + done.stderr


def made_pictures(page: Path, folder: Path) -> dict[Path, Path]:
    """Return, of the pictures that a page shows, those that its code has made.

    From where the page has it to the file of the same name in the folder.
    """
    made = {file.name: file for file in sorted(folder.rglob("*")) if file.is_file()}
    shown = pictures(page)
    return {picture: made[picture.name] for picture in shown if picture.name in made}
