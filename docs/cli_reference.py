"""Write ``reference/cli.md`` from the help texts of the commands.

The commands of the repository, ``python -m paper`` and others, follow.

``python docs/cli_reference.py`` writes the page; with ``--check`` it only says whether
the page is that of the commands as they are, by its exit status.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).parent.parent))
from benchmarks.__main__ import app as benchmarks
from paper.__main__ import app as paper
from variegate.cli.app import app

PAGE = Path(__file__).parent / "reference" / "cli.md"

INTRODUCTION = """\
# Command line

What each command prints with `--help`. The extra `cli` brings the command; `text`,
`video` and `tables` bring what their commands need, and `dask` what is needed for
`--cluster` and `--workers`. `python -m variegate` is the same.

Results go to standard output, everything else to standard error. Bad input ends with
exit status 2 and one line that says what was wrong. No command replaces a file that
exists without `--force`.

Files appear whole or not at all, also where a command is interrupted or killed, and its
worker processes end with it. Control characters in names and texts are printed as `�`,
so that no file can command a terminal. Compiled code is kept beside the package, in
`$NUMBA_CACHE_DIR`, or in the user's cache; where none of them can be written, commands
work all the same and take some seconds longer to start.

The shell completes commands and options once it is told to, in `~/.bashrc`,
`~/.zshrc` or `~/.config/fish/completions/variegate.fish`:

```bash
eval "$(_VARIEGATE_COMPLETE=bash_source variegate)"    # bash
eval "$(_VARIEGATE_COMPLETE=zsh_source variegate)"     # zsh
_VARIEGATE_COMPLETE=fish_source variegate | source     # fish
```
"""


RESEARCH = """\
## Research

Figures and tables of the paper and benchmarks are in `paper/` and `benchmarks/` of the
repository, not in the package. These commands run at its root, with the extra `bench`,
`text` or `video` where they need it.
"""


def reference() -> str:
    """Return the whole page."""
    sections = [INTRODUCTION, *_sections(app, "variegate"), RESEARCH]
    sections += _sections(paper, "python -m paper", level=3)
    sections += _sections(benchmarks, "python -m benchmarks", level=3)
    return "\n".join(sections)


def _sections(command: click.Command, name: str, level: int = 2) -> list[str]:
    """Return the help texts of a command and of its commands."""
    sections = []
    for depth, context in _commands(_context(command, name, None)):
        heading = "#" * (level + max(depth - 1, 0))
        sections.append(
            f"{heading} {context.command_path}\n\n```text\n{_help(context)}\n```\n"
        )
    return sections


def _commands(
    context: click.Context, depth: int = 0
) -> Iterator[tuple[int, click.Context]]:
    yield depth, context
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            command = context.command.get_command(context, name)
            if command is not None and not command.hidden:
                yield from _commands(_context(command, name, context), depth + 1)


def _context(
    command: click.Command, name: str, parent: click.Context | None
) -> click.Context:
    settings = {"terminal_width": 80, **command.context_settings}
    return command.context_class(command, info_name=name, parent=parent, **settings)


def _help(context: click.Context) -> str:
    text = context.command.get_help(context)
    return "\n".join(line.rstrip() for line in text.splitlines())


def main() -> None:
    """Write the page, or check it."""
    if "--check" not in sys.argv[1:]:
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text(reference(), encoding="utf-8")
    elif PAGE.read_text(encoding="utf-8") != reference():
        sys.exit(f"{PAGE} is out of date: run python docs/cli_reference.py")


if __name__ == "__main__":
    main()
