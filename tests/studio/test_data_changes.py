"""DATA that is sorted, renamed or edited between two starts of the studio.

Every pick is on its item again, or named as lost.  An item is its identifier, or else
its cells, bytes or text, as these tests read them from the files themselves.
"""

import csv
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from studio_fakes import start_session

from variegate.material.opening import open_material
from variegate.studio.store import StoreError


class Generator(random.Random):
    def random_seed(self):
        return self.randrange(2**32)


@dataclass
class Case:
    """DATA with options, what returns the items of its groups, and what edits it."""

    data: Path
    options: dict
    items_of: Callable
    edit: Callable


def start(data, path, **options):
    """Return a session on DATA, and what changed since its store was written."""
    return start_session(path, open_material(data, **options))


def work(session, generator):
    """Pick and finish at random, as a person does."""
    sizes = session.material.sizes
    for _ in range(generator.randrange(3, 15)):
        group = generator.randrange(min(4, len(sizes)))
        act = generator.random()
        if act < 0.6:
            item = generator.randrange(sizes[group])
            session.pick(group, item, item not in session.picks(group))
        elif act < 0.85:
            session.done(group)
        elif act < 0.95:
            session.go(group)
        else:
            session.undo()


def picks_of(session, items_of_groups):
    """Return groups with decisions: what a person picked, all picks, and the items."""
    found = {}
    for group, items in enumerate(items_of_groups):
        mine = session._history.group_picks(group)
        if mine.base is None and not mine.decided:
            continue
        shown = session.picks(group)
        own = {item for item, picked in mine.decided.items() if picked}
        found[session.material.names[group]] = SimpleNamespace(
            own=Counter(items[n] for n in (shown if mine.is_done else own)),
            all=Counter(items[n] for n in shown),
            items=Counter(items),
            is_done=mine.is_done,
        )
    return found


def total(counters):
    return sum(counters, Counter())


def check(before, after, changes):
    """Assert that every pick is on its item or named as lost; return the numbers."""
    own = total(one.own for one in before.values())
    picked, every = (
        total(getattr(one, name) for one in groups.values())
        for groups, name in ((after, "all"), (before, "all"))
    )
    # Nothing is picked that was not.
    assert picked <= every
    lost = own - picked
    names = [name for names in changes.lost.values() for name in names]
    assert sum(lost.values()) <= len(names) <= sum(own.values())
    done = [one for one in after.values() if one.is_done]
    assert all(
        any(one.items == old.items and one.own == old.own for old in before.values())
        for one in done
    )
    return sum(own.values()), len(names)


# Tables -------------------------------------------------------------------------------


def table_rows(generator, n_groups, has_id):
    """Return rows with some that are alike."""
    rows = [
        {
            "query": f"q{n % n_groups}",
            "id": f"d{n}" if has_id else "",
            "text": generator.choice("abcdefgh") * generator.randrange(1, 4),
            "score": generator.randrange(50),
            "age": generator.randrange(50),
        }
        for n in range(n_groups * generator.randrange(6, 12))
    ]
    return rows + ([] if has_id else generator.sample(rows, 3))


def edit_rows(rows, generator, has_id):
    """Return the rows in another order, with rows added, edited and removed."""
    rows = [dict(row) for row in rows]
    for _ in range(generator.randrange(4)):
        act, place = generator.random(), generator.randrange(len(rows))
        if act < 0.3:
            del rows[place]
        elif act < 0.6:
            rows[place]["score"] += 100
        elif act < 0.9:
            new = {**rows[place], "id": f"new {place}"} if has_id else rows[place]
            rows.insert(generator.randrange(len(rows)), dict(new))
        else:
            old = rows[place]["query"]
            for row in rows:
                row["query"] = "renamed" if row["query"] == old else row["query"]
    if generator.random() < 0.8:
        generator.shuffle(rows)
    return rows


def write_rows(path, rows):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def row_items(path, is_paged, has_id):
    """Return the items of all groups: identifiers, or cells."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    if is_paged:
        groups = [rows[n : n + 8] for n in range(0, len(rows), 8)]
    else:
        names = list(dict.fromkeys(row["query"] for row in rows))
        groups = [[r for r in rows if r["query"] == name] for name in names]
    kept = ["id"] if has_id else list(rows[0])
    # The same row in another group is another item of a table with groups.
    kept += [] if is_paged else ["query"]
    return [[tuple(row[k] for k in kept) for row in group] for group in groups]


def table(generator, folder):
    is_paged, has_id = generator.random() < 0.4, generator.random() < 0.5
    columns = {"quality": ["score", "age"], "similarity": ["score"]}
    columns |= {"item": "id"} if has_id else {}
    columns |= {} if is_paged else {"group": "query"}
    data = folder / "items.csv"
    rows = table_rows(generator, 4, has_id)
    write_rows(data, rows)
    return Case(
        data,
        {"columns": columns, "page": 8 if is_paged else None},
        lambda session: row_items(data, is_paged, has_id),
        lambda: write_rows(data, edit_rows(rows, generator, has_id)),
    )


# Folders ------------------------------------------------------------------------------


def picture(generator):
    cv2 = pytest.importorskip("cv2", reason="needs 'variegate[video]'")
    pixels = np.random.default_rng(generator.random_seed()).integers(
        0, 255, (8, 8, 3), dtype=np.uint8
    )
    return cv2.imencode(".png", pixels)[1].tobytes()


WORDS = ("river", "mountain", "kettle", "garden", "window", "letter", "market")


def document(generator):
    sentences = [
        f"The {' '.join(generator.choices(WORDS, k=6))} was seen on day "
        f"{generator.randrange(10**6)}."
        for _ in range(generator.randrange(4, 8))
    ]
    return " ".join(sentences).encode()


def edit_folder(folder, make, suffix, generator):
    """Rename, replace, copy, add and remove files."""
    for _ in range(generator.randrange(1, 5)):
        files = sorted(f for f in folder.rglob("*") if f.is_file())
        one, other = generator.sample(files, 2)
        act = generator.random()
        new = one.parent / f"{generator.choice('abxyz')}{generator.random_seed()}"
        new = new.with_suffix(suffix)
        if act < 0.3:
            one.rename(new)
        elif act < 0.45:
            content = one.read_bytes()
            one.write_bytes(other.read_bytes())
            other.write_bytes(content)
        elif act < 0.6:
            one.write_bytes(make(generator))
        elif act < 0.75:
            new.write_bytes(make(generator))
        elif act < 0.85:
            new.write_bytes(one.read_bytes())
        else:
            one.unlink()


def pictures(generator, folder):
    data = folder / "pictures"
    for name in ("", "", "cats", "dogs") * 6:
        place = data / name
        place.mkdir(parents=True, exist_ok=True)
        made = picture(generator)
        (place / f"{generator.random_seed()}.png").write_bytes(made)

    def items_of(session):
        where = {file.name: file for file in data.rglob("*.png")}
        found = []
        for group, name in enumerate(session.material.names):
            inside = "" if name.startswith("page ") else name.partition(",")[0]
            titles = [item.title for item in session.material.items(group)]
            found.append([(inside, where[title].read_bytes()) for title in titles])
        return found

    edit = partial(edit_folder, data, picture, ".png", generator)
    return Case(data, {"page": 5}, items_of, edit)


def documents(generator, folder):
    data = folder / "documents"
    data.mkdir()
    for n in range(5):
        (data / f"{n}.txt").write_bytes(document(generator))

    def items_of(session):
        material = session.material
        return [
            [item.text for item in material.items(group)]
            for group in range(len(material.names))
        ]

    edit = partial(edit_folder, data, document, ".txt", generator)
    return Case(data, {}, items_of, edit)


KINDS = {"table": table, "pictures": pictures, "documents": documents}


def check_change(kind, seed, folder):
    """Work, change DATA and start again; return the numbers of picks, and of lost."""
    generator = Generator(seed)
    case = KINDS[kind](generator, folder)
    path = folder / "picks.sqlite"
    session, changes = start(case.data, path, **case.options)
    assert not changes.notes(("row", "rows"))
    work(session, generator)
    before = picks_of(session, case.items_of(session))
    session.close()
    case.edit()
    try:
        session, changes = start(case.data, path, **case.options)
    except StoreError as error:
        if "of which nothing is in DATA now" not in str(error):
            raise
        n_own = sum(sum(one.own.values()) for one in before.values())
        return n_own, n_own
    try:
        return check(before, picks_of(session, case.items_of(session)), changes)
    finally:
        session.close()


@pytest.mark.parametrize("kind", KINDS)
def test_some_changes_between_two_starts(kind, tmp_path):
    for seed in range(4):
        folder = tmp_path / str(seed)
        folder.mkdir()
        check_change(kind, seed, folder)


@pytest.mark.fuzz
@pytest.mark.parametrize(
    ("kind", "n"), [("table", 100), ("pictures", 50), ("documents", 50)]
)
def test_two_hundred_changes_between_two_starts(kind, n, tmp_path):
    numbers = []
    for seed in range(100, 100 + n):
        folder = tmp_path / str(seed)
        folder.mkdir()
        numbers.append(check_change(kind, seed, folder))
    n_picks, n_lost = map(sum, zip(*numbers, strict=True))
    print(f"{n} changes of {kind}: {n_picks} picks, {n_lost} named as lost")
    assert 0 < n_lost < n_picks / 2
