r"""Mathematics as MathML, written when the site is built.

Browsers draw MathML by themselves, so pages need no script and nothing from the
network.  latex2mathml does the translation; this module puts right what it leaves:
names of functions and the space around them, brackets and commas that it takes for
variables, and several lines aligned at ``&``.

``\tag{8}`` in a displayed equation is its number, and ``#eq-8`` a link to it.
"""

from __future__ import annotations

import re
from html import escape
from typing import Any
from xml.etree import ElementTree

from docutils import nodes
from latex2mathml.converter import convert

NAMESPACE = "http://www.w3.org/1998/Math/MathML"

#: What is set upright, with a thin space to what follows.
FUNCTIONS = {"arg max", "arg min", "det", "diag", "exp", "log", "max", "min", "tr"}
#: What has its index below in a displayed formula.
WITH_LIMITS = {"arg max", "arg min", "max", "min"}
OPENING = {"(", "[", "{", "⟨", "|", "‖"}
CLOSING = {")", "]", "}", "⟩", "|", "‖"}
#: Operators that latex2mathml writes as if they were variables.
NOT_VARIABLES = {"⟨", "⟩", ";", ",", ":"}


def to_mathml(latex: str, display: str) -> str:
    """Return a ``<math>`` element."""
    body, number = _split_number(latex)
    rows = _rows(body)
    if rows is None:
        inner = "".join(_serialized(part) for part in _translated(body, display))
    else:
        inner = _table(rows, display)
    # The source is what screen readers and copying fall back on.
    label = escape(" ".join(body.split()))
    element = f'<math xmlns="{NAMESPACE}" display="{display}" alttext="{label}">'
    element += f"<mrow>{inner}</mrow></math>"
    if number is None:
        return element
    return f'{element}<span class="equation-number">({escape(number)})</span>'


def _split_number(latex: str) -> tuple[str, str | None]:
    found = re.search(r"\\tag\{(.*?)\}", latex)
    if found is None:
        return latex.strip(), None
    return (latex[: found.start()] + latex[found.end() :]).strip(), found.group(1)


def _rows(body: str) -> list[list[str]] | None:
    r"""Return the cells of an ``aligned`` block, or of lines that end in ``\\``."""
    aligned = re.fullmatch(
        r"\\begin\{aligned\}(.*)\\end\{aligned\}", body, flags=re.DOTALL
    )
    if aligned:
        body = aligned.group(1)
    elif "\\begin" in body or "\\\\" not in body:
        return None
    return [
        [cell.strip() for cell in re.split(r"(?<!\\)&", line)]
        for line in re.split(r"\\\\(?:\[.*?\])?", body)
        if line.strip()
    ]


def _table(rows: list[list[str]], display: str) -> str:
    lines = []
    for row in rows:
        cells = []
        for cell in row:
            parts = _translated(cell, display) if cell else []
            inner = "".join(_serialized(part) for part in parts)
            cells.append(f"<mtd><mrow>{inner}</mrow></mtd>")
        lines.append(f"<mtr>{''.join(cells)}</mtr>")
    return f'<mtable class="aligned" displaystyle="true">{"".join(lines)}</mtable>'


def _translated(latex: str, display: str) -> list[ElementTree.Element]:
    latex = re.sub(r"\\arg\s*\\(max|min)", r"\\operatorname{arg\1}", latex)
    latex = re.sub(r"\\(mathcal|mathbb|mathbf|mathrm) ([A-Za-z])", r"\\\1{\2}", latex)
    root = ElementTree.fromstring(convert(latex, display=display))
    for element in root.iter():
        element.tag = element.tag.removeprefix(f"{{{NAMESPACE}}}")
    unknown = [e.text for e in root.iter() if (e.text or "").startswith("\\")]
    if unknown:
        raise ValueError(f"no MathML for {', '.join(map(str, unknown))} in {latex!r}")
    _repair(root, display)
    (row,) = root
    return list(row)


def _repair(parent: ElementTree.Element, display: str) -> None:
    _join_upright_letters(parent)
    for child in list(parent):
        _repair(child, display)
        text = re.sub(r"^arg(max|min)$", r"arg \1", child.text or "")
        if child.tag == "mi" and text in NOT_VARIABLES:
            child.tag = "mo"
            if text in OPENING | CLOSING:
                child.set("stretchy", "false")
        elif child.tag in ("mi", "mo") and text in FUNCTIONS:
            child.tag, child.text = "mi", text
            child.attrib.clear()
        elif child.tag == "mover" and child.get("accent") == "true":
            # A hat is as wide as hats are, not as what is below it.
            child[1].set("stretchy", "false")
        elif child.tag == "msub" and _is_fence(child[0], CLOSING):
            # Chromium draws large brackets with an index small.
            bracket = child[0]
            child[0] = ElementTree.Element("mrow")
            parent.insert(list(parent).index(child), bracket)
        elif child.tag == "msub" and child[0].text in WITH_LIMITS:
            child.tag = "munder" if display == "block" else "msub"
    if parent.tag in ("math", "mrow", "mtd"):
        _space_functions(parent)


def _join_upright_letters(parent: ElementTree.Element) -> None:
    r"""Make one name of the letters of ``\mathrm{diag}``."""
    previous = None
    for child in list(parent):
        upright = child.tag == "mi" and child.get("mathvariant") == "normal"
        if upright and previous is not None:
            previous.text = (previous.text or "") + (child.text or "")
            parent.remove(child)
        else:
            previous = child if upright else None


def _space_functions(row: ElementTree.Element) -> None:
    children = list(row)
    for i, child in enumerate(children):
        if not _is_function(child):
            continue
        if i + 1 < len(children) and not _is_fence(children[i + 1], OPENING):
            _insert_space(row, after=child)
        if i > 0 and _ends_a_factor(children[i - 1]):
            _insert_space(row, after=children[i - 1])


def _is_function(element: ElementTree.Element) -> bool:
    if element.tag in ("msub", "msup", "munder", "mrow") and len(element):
        if element.tag == "mrow" and len(element) > 1:
            return False
        return _is_function(element[0])
    return element.tag == "mi" and element.text in FUNCTIONS


def _is_fence(element: ElementTree.Element, fences: set[str]) -> bool:
    if element.tag == "mrow" and len(element):
        return _is_fence(element[0], fences)
    return element.tag == "mo" and element.text in fences


def _ends_a_factor(element: ElementTree.Element) -> bool:
    if _is_function(element) or element.tag in ("mspace", "mtext"):
        return False
    return element.tag != "mo" or element.text in CLOSING


def _insert_space(row: ElementTree.Element, after: ElementTree.Element) -> None:
    space = ElementTree.Element("mspace", width="0.167em")
    row.insert(list(row).index(after) + 1, space)


def _serialized(element: ElementTree.Element) -> str:
    return ElementTree.tostring(element, encoding="unicode")


def visit_math(translator: Any, node: nodes.math) -> None:
    """Write an inline formula."""
    translator.body.append(to_mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def visit_displaymath(translator: Any, node: nodes.math_block) -> None:
    """Write a displayed formula, with its number if it has one."""
    number = _split_number(node.astext())[1]
    identity = "" if number is None else f' id="eq-{number}"'
    math = to_mathml(node.astext(), "block")
    translator.body.append(f'<div class="equation"{identity}>{math}</div>\n')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, Any]:
    """Offer the renderer to Sphinx."""
    app.add_html_math_renderer(
        "mathml",
        inline_renderers=(visit_math, None),
        block_renderers=(visit_displaymath, None),
    )
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
