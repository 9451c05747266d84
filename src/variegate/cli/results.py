"""How commands end: what they print, or what becomes of their work."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import click


class Interrupted(KeyboardInterrupt):
    """The user interrupted a command that knows what becomes of its work."""


json_option = partial(click.option, "--json", "as_json", is_flag=True)


#: Characters that command a terminal; lines and tabs are not among them.
_COMMANDS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def say(text: str, err: bool = False) -> None:
    """Print text, in which nothing that came from a file can command a terminal."""
    click.echo(_COMMANDS.sub("\ufffd", text), err=err)


def echo_json(result: Any, **options: Any) -> None:
    """Print a result for programs; ``options`` are those of ``json.dumps``."""
    text = json.dumps(result, ensure_ascii=False, **{"indent": 1, **options})
    click.echo(_COMMANDS.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


def say_written(*paths: Path | None) -> None:
    """Name the files that were written, on standard error."""
    for path in paths:
        if path is not None:
            say(f"written: {path}", err=True)
