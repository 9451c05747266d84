"""The ``variegate`` command: parse, call the library, print.

Results go to standard output, everything else to standard error.  What a user can set
right ends with status 2 and one line; click itself is an optional dependency.
"""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run the command line; without click, print how to install it and exit."""
    # Before anything that takes long to import, or much memory.
    from variegate.cli.interrupts import exit_on_interrupt, ignore_interrupts

    exit_on_interrupt()
    # Python processes of this one import nothing from the current folder, where another
    # user may have put modules.
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        from variegate._install import explain_missing
        from variegate.cli.memory_limit import adapt_to_memory_limit

        adapt_to_memory_limit()
        with explain_missing("the command line needs click", "cli"):
            import click  # noqa: F401
        from variegate.cli.app import run
    except (ImportError, MemoryError) as error:
        print(f"variegate: {' '.join(str(error).split())}", file=sys.stderr)
        raise SystemExit(2) from None
    try:
        run()
    finally:
        ignore_interrupts()  # all is done, and Python ends
