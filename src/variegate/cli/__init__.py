"""The ``variegate`` command: parse, call the library, print.

Results go to standard output, everything else to standard error.  What a user can set
right ends with status 2 and one line; click itself is an optional dependency.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; without click, print how to install it and exit."""
    try:
        import click  # noqa: F401
    except ImportError:
        from variegate._install import install_command

        print(
            f"variegate: the command line needs click: {install_command('cli')}",
            file=sys.stderr,
        )
        raise SystemExit(2) from None
    from variegate.cli.app import run

    run()
