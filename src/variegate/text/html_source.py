"""HTML source, cut so that libxml2 parses it in time linear in its length."""

from __future__ import annotations

import re

#: Attributes of an element that are kept: libxml2 takes the square of their number.
_MOST_ATTRIBUTES = 200

_OPENING = re.compile(r"<(?:!--|[a-zA-Z][^\s/>]*+)")
# One attribute with the space before it: a name, and perhaps a value.
_ATTRIBUTE = re.compile(
    r"[\s/]*+[^\s/>][^\s/>=]*+(?:\s*+=\s*+(?:\"[^\"]*+\"|'[^']*+'|[^\s>]*+))?+"
)
_END = re.compile(r"-->|\Z")
#: Elements whose content has no elements, and their ends.
_RAW = {
    name: re.compile(rf"(?i)</{name}|\Z")
    for name in ("script", "style", "textarea", "title", "xmp", "noembed")
}


def limit_attributes(source: str) -> str:
    """Return the source of a page without the attributes after the 200th of a tag."""
    kept: list[str] = []
    done = place = 0
    while opening := _OPENING.search(source, place):
        place = opening.end()
        if opening[0] == "<!--":
            place = _end_of(_END, source, place)
            continue
        limit, n_attributes = place, 0
        while attribute := _ATTRIBUTE.match(source, place):
            place = attribute.end()
            n_attributes += 1
            if n_attributes <= _MOST_ATTRIBUTES:
                limit = place
        if place > limit:
            kept.append(source[done:limit])
            done = place
        if raw := _RAW.get(opening[0][1:].lower()):
            place = _end_of(raw, source, place)
    return "".join([*kept, source[done:]])


def _end_of(pattern: re.Pattern[str], source: str, place: int) -> int:
    """Return where the first match of a pattern that always matches ends."""
    match = pattern.search(source, place)
    assert match is not None
    return match.end()
