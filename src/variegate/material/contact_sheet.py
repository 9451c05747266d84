"""Show chosen items, group by group, on one page of HTML that loads nothing else."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any

from variegate._typing import FloatArray, IntArray
from variegate.material.base import Material, MaterialError
from variegate.report.page import render
from variegate.report.wording import count, percent

#: The width, in pixels, of a picture on the page.
_WIDTH = 320


def contact_sheet(
    material: Material,
    chosen: Mapping[int, IntArray],
    probability: Sequence[FloatArray] | None = None,
    *,
    title: str = "Chosen items",
    description: str = "",
    commands: str = "",
) -> str:
    """Return a page of HTML with the pictures, texts and fields of chosen items.

    ``chosen`` are item numbers by group; ``probability[group][item]`` is shown if
    given, and so are the texts ``description``, of a model, and ``commands``.
    """
    groups = []
    for group, items in chosen.items():
        shown = [_template_values(material, group, int(item)) for item in items]
        if probability is not None:
            for entry, item in zip(shown, items, strict=True):
                entry["chance"] = percent(float(probability[group][item]))
        note = f"{len(items)} of {count(material.sizes[group], material.nouns[0])}"
        is_titled = material.kind == "table"  # titles of sentences are numbers
        one = {"name": material.names[group], "note": note, "items": shown}
        groups.append(one | {"is_titled": is_titled})
    n_chosen = sum(map(len, chosen.values()))
    n_items = sum(material.sizes[group] for group in chosen)
    return render(
        "material",
        "contact_sheet.html",
        title=title,
        facts={
            "groups": f"{len(groups):,} of {len(material.names):,}",
            material.nouns[1]: f"{n_chosen:,} of {n_items:,} chosen",
        },
        groups=groups,
        description=description,
        commands=commands,
    )


def _template_values(material: Material, group: int, item: int) -> dict[str, Any]:
    """Return an item of a group as a dict for the template, pictures as data URLs."""
    one = material.items(group)[item]
    picture = None
    if one.has_image:
        try:
            content, kind = material.image(group, item, _WIDTH)
            picture = f"data:{kind};base64,{b64encode(content).decode('ascii')}"
        except MaterialError:
            picture = None
    fields = {name: value for name, value in one.fields if value}
    return {
        "picture": picture,
        "title": one.title,
        "text": one.text,
        "fields": fields,
        "chance": "",
    }
