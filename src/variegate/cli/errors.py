"""How commands end when they cannot go on."""

from __future__ import annotations


class Interrupted(KeyboardInterrupt):
    """The user interrupted a command that knows what becomes of its work."""
