"""How commands end: what they print, or what becomes of their work."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import click


class Interrupted(KeyboardInterrupt):
    """The user interrupted a command that knows what becomes of its work."""


json_option = partial(click.option, "--json", "as_json", is_flag=True)


def echo_json(result: Any) -> None:
    """Print a result for programs."""
    click.echo(json.dumps(result, indent=1, ensure_ascii=False))


def say_written(*paths: Path | None) -> None:
    """Name the files that were written, on standard error."""
    for path in paths:
        if path is not None:
            click.echo(f"written: {path}", err=True)
