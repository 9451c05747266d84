"""Docstrings, messages and help texts avoid phrases that readers must decode."""

import ast
import re
from pathlib import Path

import pytest

import variegate

ROOT = Path(variegate.__file__).parent

PHRASES = {
    "an object without a name": r"^(Return|Say|Tell|Make|Give|Keep) (what|those)\b",
    "a noun phrase without a noun": r"^(What|Who|Whose|Those|How many|How much)\b",
    "is no X": r"(?<!there )\b(is|are|was|were) no (?!longer|more)\w",
    "a person for a caller or a process": r"\b(nobody|somebody|whoever|anybody)\b",
    "a place for local or separate": r"\b(elsewhere|at home|at hand|apart)\b",
    "an idiom": r"\b(so many|as they come|comes? to|(gone|goes?) on from)\b",
    "'in words' for 'with a message'": r"\bin words\b",
}


def prose(path):
    """Yield the lines and texts that users and readers of the code see first."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            text = ast.get_docstring(node) or ""
            yield getattr(node, "lineno", 1), text.split("\n\n")[0].replace("\n", " ")
        shown = node.exc if isinstance(node, ast.Raise) else None
        if isinstance(node, ast.keyword) and node.arg in ("help", "epilog"):
            shown = node.value
        for part in ast.walk(shown) if shown is not None else ():
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                yield part.lineno, part.value


@pytest.mark.parametrize("what", PHRASES)
def test_no_text_has_a_phrase_that_must_be_decoded(what):
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for path in sorted(ROOT.rglob("*.py"))
        for line, text in prose(path)
        if re.search(PHRASES[what], text)
    ]
    assert not found, f"{what}:\n" + "\n".join(found)


def test_a_phrase_is_found(tmp_path):
    path = tmp_path / "module.py"
    path.write_text('raise ValueError(f"{name} is no matrix")')
    assert re.search(PHRASES["is no X"], " ".join(t for _, t in prose(path)))
