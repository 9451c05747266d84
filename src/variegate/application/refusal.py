"""Errors that name settings: as parameters in Python, as options in commands.

A message is made of text and :class:`Setting` objects.  ``str`` of the error writes
these as Python does, ``missing='mean'``; :meth:`RefusalError.written` writes them in
another way, such as ``--columns missing=mean``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True)
class Setting:
    """A parameter, with a value to give if not None (column names are a tuple).

    A parameter that is ``left_out`` should not be given at all.
    """

    name: str
    value: str | float | tuple[str, ...] | None = None
    left_out: bool = False

    def __str__(self) -> str:
        """Return the setting as Python writes it: ``missing='mean'``."""
        if self.left_out:
            return f"{self.name}=None"
        if self.value is None:
            return self.name
        value = list(self.value) if isinstance(self.value, tuple) else self.value
        return f"{self.name}={value!r}"


class InPython(str):
    """A part of a message that makes sense in Python only."""


class RefusalError(ValueError):
    """An error for one reason or for several.

    Parameters
    ----------
    *parts : str, Setting or InPython
        The message, in pieces.
    fixes : sequence of Setting, optional
        Settings that solve the problem, if they are known.
    """

    def __init__(self, *parts: Any, fixes: Sequence[Setting] = ()) -> None:
        super().__init__("".join(map(str, parts)))
        self.parts = parts
        self.fixes = tuple(fixes)
        self._problems: tuple[RefusalError, ...] = ()

    @property
    def problems(self) -> tuple[RefusalError, ...]:
        """One error for each reason; the error itself if there is one reason."""
        return self._problems or (self,)

    @classmethod
    def from_problems(
        cls, problems: Sequence[RefusalError], fixes: Sequence[Setting] = ()
    ) -> Self:
        """Return one error for several, a line each; ``fixes`` solve all problems."""
        lines = [f"{len(problems)} problems:"]
        lines += [f"- {problem}" for problem in problems]
        if fixes:
            lines.append(f"all are solved by {', '.join(map(str, fixes))}")
        error = cls("\n".join(lines), fixes=fixes)
        error._problems = tuple(problems)
        return error

    def with_prefix(self, before: str) -> Self:
        """Return a new error with text before the message, without its ``problems``."""
        return type(self)(before, *self.parts, fixes=self.fixes)

    def written(self, write: Callable[[Setting], str]) -> str:
        """Return the message with settings by ``write``, and without ``InPython``."""
        return "".join(
            write(part) if isinstance(part, Setting) else str(part)
            for part in self.parts
            if not isinstance(part, InPython)
        )
