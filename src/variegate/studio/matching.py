"""Groups and items of DATA, found again by the keys and identities of a file of picks.

The page and the models know groups and items by number; a file of picks names them by
texts.  So picks stay with their items where DATA is in another order, or was edited.

A group of a column of a table is known by its value there.  Other groups are files,
folders, and pages of rows or pictures.  Such a group is, first, the one of its name
with the same items; else the only one with the same items, which was renamed; else the
one of its name, whose items have changed.  An item of a page that is on another page of
the same file or folder now moves its pick there.  Whatever fits several items or groups
is not matched, but named as lost.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from variegate.material.base import Material
from variegate.material.identity import digest, paged_file, unique_texts
from variegate.studio.events import Event
from variegate.studio.history import History

#: The number of groups whose identities are kept in memory.
_KEPT = 256


@dataclass
class DataChanges:
    """Lists lost and moved picks, and reopened and renamed groups, of edited DATA."""

    #: Names of picked items that are not found, by the key of their group.
    lost: dict[str, list[str]] = field(default_factory=dict)
    #: Bodies of the events that move picks to other pages, by number.
    moved: list[dict[str, Any]] = field(default_factory=list)
    #: Names of groups that are open again, as their items have changed.
    reopened: list[str] = field(default_factory=list)
    #: New names of groups by their keys.
    renamed: dict[str, str] = field(default_factory=dict)
    #: Whether none of the groups and items of the file is in DATA.
    is_other_data: bool = False

    def notes(self, nouns: tuple[str, str]) -> list[str]:
        """Return sentences on the changes; ``nouns`` are the words for items."""
        notes = [f"group {old!r} is called {new!r} now" for old, new in
                 self.renamed.items()]  # fmt: skip
        for key, names in self.lost.items():
            words = ", ".join(map(repr, names))
            one = f"{len(names)} picked {nouns[len(names) != 1]}"
            notes.append(
                f"group {key!r}: {one} cannot be found in DATA, or not with certainty: "
                f"{words}; pick again where needed"
            )
        if n_moved := sum(len(body["picks"]) for body in self.moved):
            notes.append(
                f"{n_moved} picked {nouns[n_moved != 1]} moved to other pages with "
                "their picks"
            )
        if self.reopened:
            notes.append(
                "the items of these groups have changed since they were done, so they "
                f"are open again: {', '.join(map(repr, self.reopened))}"
            )
        return notes


class Matching:
    """Keys and identities of a material, matched with those of a file's events.

    :meth:`stored` and :meth:`numbered` translate the bodies of events between numbers
    and texts.
    """

    def __init__(self, material: Material, events: Sequence[Event] = ()) -> None:
        self._material = material
        self._events = events
        kept = lru_cache(maxsize=_KEPT)
        self._identities = kept(material.identities)
        self._content, self._places = kept(self._digest), kept(self._by_identity)
        names = list(material.names)
        contents = names if len({*names}) == len(names) else [
            self._content(group) for group in range(len(names))
        ]  # fmt: skip
        #: The keys of groups that are not in the file.
        self._keys = unique_texts(names, contents)
        self._taken = frozenset(_contents_by_key(events))
        self._numbers = self._match_groups()
        self._known = {group: key for key, group in self._numbers.items()}

    # Groups ---------------------------------------------------------------------------

    def _digest(self, group: int) -> str:
        """Return a digest of all items of a group, in any order."""
        return digest(*sorted(self._identities(group)))

    def _match_groups(self) -> dict[str, int]:
        """Return the numbers of the groups of the file that are in DATA, by key."""
        named = {key: group for group, key in enumerate(self._keys)}
        contents = _contents_by_key(self._events)
        if not self._material.groups_are_files:
            return {key: named[key] for key in contents if key in named}
        found = {
            key: named[key]
            for key, content in contents.items()
            if key in named and content == self._content(named[key])
        }
        left = {key: one for key, one in contents.items() if key not in found}
        if any(left.values()):
            found |= self._match_contents(left, {*found.values()})
        for key in left:
            if key not in found and key in named and named[key] not in found.values():
                found[key] = named[key]
        return found

    def _match_contents(
        self, contents: Mapping[str, str | None], taken: set[int]
    ) -> dict[str, int]:
        """Return the only groups with the contents of keys, without those ``taken``."""
        there: dict[str, list[int]] = defaultdict(list)
        for group in range(len(self._keys)):
            if group not in taken:
                there[self._content(group)].append(group)
        wanted = Counter(contents.values())
        return {
            key: there[content][0]
            for key, content in contents.items()
            if content and wanted[content] == 1 and len(there.get(content, ())) == 1
        }

    def _key(self, group: int) -> str:
        """Return the key of a group in the file, a new one if it has none there."""
        if group not in self._known:
            key = self._keys[group]
            while key in self._numbers or key in self._taken:
                key += "+"
            self._known[group], self._numbers[key] = key, group
        return self._known[group]

    # Events ---------------------------------------------------------------------------

    def stored(self, kind: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the body of an event, by numbers, as it stands in the file."""
        group = body["group"]
        texts = self._identities(group)
        stored = dict(body) | {"group": self._key(group)}
        for name in ("base", "picks", "proposal"):
            if name in body:
                stored[name] = [texts[item] for item in body[name]]
        if kind in ("pick", "base", "done", "moved"):
            stored["content"] = self._content(group)
        if kind == "pick":
            stored["item"] = texts[body["item"]]
            stored["name"] = self._material.item_name(group, body["item"])
        if kind in ("done", "moved"):
            name_of = self._material.item_name
            stored["names"] = [name_of(group, item) for item in body["picks"]]
        if kind == "done":
            stored["next"] = self._key(body["next"])
        return stored

    def numbered(self, event: Event) -> Event | None:
        """Return an event of the file by numbers; None if its group is not in DATA.

        Items that are not found are left out: such a pick is of the item None.
        """
        body = event.body
        group = self._numbers.get(body["group"])
        if group is None:
            return None
        places = self._places(group)
        numbered = {**body, "group": group}
        for name in ("base", "picks", "proposal"):
            if name in body:
                numbered[name] = [places[t] for t in body[name] if t in places]
        if event.kind == "pick":
            numbered["item"] = places.get(body["item"])
        elif event.kind == "done":
            numbered["next"] = self._numbers.get(body["next"], group)
            numbered["is_changed"] = body["content"] != self._content(group)
        elif event.kind == "moved":
            source = numbered["source"] = self._numbers.get(body["source"])
            before = {} if source is None else self._places(source)
            numbered["left"] = [before[t] for t in body["picks"] if t in before]
        return Event(event.seq, event.kind, numbered)

    def _by_identity(self, group: int) -> dict[str, int]:
        """Return the numbers of the items of a group by identity."""
        return {text: item for item, text in enumerate(self._identities(group))}

    # Changes --------------------------------------------------------------------------

    def changes(self) -> DataChanges:
        """Return the changes of DATA since the events of the file."""
        history: History[str] = History(self._events)
        changes = DataChanges(is_other_data=self._is_other_data())
        for key, group in self._numbers.items():
            if group < len(self._keys) and self._keys[group] != key:
                changes.renamed[key] = self._material.names[group]
        missing = {
            key: lost for key in history.groups if (lost := self._missing(key, history))
        }
        where = self._find_on_pages(missing)
        names = _names_of_items(self._events)
        for key, texts in missing.items():
            targets = defaultdict(list)
            for text in texts:
                if (key, text) in where:
                    group, item = where[key, text]
                    targets[group].append(item)
                else:
                    named = names.get((key, text), text)
                    changes.lost.setdefault(key, []).append(named)
            for group, items in targets.items():
                moved = {"group": group, "source": key, "picks": sorted(items)}
                changes.moved.append(moved)
        for key in history.done:
            group = self._numbers.get(key, -1)
            contents = _contents_by_key(self._events, ("done",))
            if group >= 0 and contents[key] != self._content(group):
                changes.reopened.append(self._material.names[group])
        return changes

    def _missing(self, key: str, history: History[str]) -> list[str]:
        """Return the identities of the picks of a group that are not in it now."""
        mine = history.group_picks(key)
        taken = [text for text, picked in mine.decided.items() if picked]
        picks = sorted(mine.apply_to(())) if mine.is_done else taken
        group = self._numbers.get(key)
        places = {} if group is None else self._places(group)
        return [text for text in picks if text not in places]

    def _find_on_pages(
        self, missing: Mapping[str, Sequence[str]]
    ) -> dict[tuple[str, str], tuple[int, int]]:
        """Return group and item where items are once on other pages of their file.

        ``missing`` are identities by the keys of their groups; the result is by both.
        """
        if not self._material.groups_are_files:
            return {}
        files = {key: paged_file(key) for key in missing}
        pages = {key: file for key, file in files.items() if file is not None}
        there: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
        for group, name in enumerate(self._material.names if pages else ()):
            file = paged_file(name)
            if file is not None and file in pages.values():
                for item, text in enumerate(self._identities(group)):
                    there[file, text].append((group, item))
        wanted = Counter((pages[key], text) for key in pages for text in missing[key])
        return {
            (key, text): there[file, text][0]
            for key, file in pages.items()
            for text in missing[key]
            if wanted[file, text] == 1 and len(there.get((file, text), ())) == 1
        }

    def _is_other_data(self) -> bool:
        """Return whether events name items, but none of them, and no group, is here."""
        named = False
        for event in self._events:
            texts = {*_texts_of(event)}
            group = self._numbers.get(event.body["group"])
            named = named or bool(texts) or "content" in event.body
            if group is not None and (
                event.body.get("content") == self._content(group)
                or not texts.isdisjoint(self._places(group))
            ):
                return False
        return named


def _contents_by_key(
    events: Iterable[Event],
    kinds: Sequence[str] = ("pick", "base", "done", "moved"),
) -> dict[str, str | None]:
    """Return the last digest of the items of every group by key; None without any."""
    contents: dict[str, str | None] = {}
    for event in events:
        key = event.body["group"]
        contents.setdefault(key, None)
        if event.kind in kinds:
            contents[key] = event.body["content"]
        if event.kind == "done":
            contents.setdefault(event.body["next"], None)
    return contents


def _names_of_items(events: Iterable[Event]) -> dict[tuple[str, str], str]:
    """Return the last names of picked items by the key of the group and identity."""
    names = {}
    for event in events:
        body = event.body
        if event.kind == "pick":
            names[body["group"], body["item"]] = body["name"]
        elif event.kind in ("done", "moved"):
            for text, name in zip(body["picks"], body["names"], strict=False):
                names[body["group"], text] = name
    return names


def _texts_of(event: Event) -> list[str]:
    """Return the identities of items that an event names."""
    body = event.body
    lists = [body.get(name, ()) for name in ("base", "picks", "proposal")]
    item = [body["item"]] if event.kind == "pick" else []
    return [*item, *(text for texts in lists for text in texts)]
