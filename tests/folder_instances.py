"""Folders of table files, for the tests of tables in folders."""

import pickle
from itertools import pairwise

import pyarrow as pa
import pyarrow.parquet as parquet

from variegate.partitions import Serial
from variegate.tables import make_table, write_table

#: What the columns of a generated table are.
COLUMNS = {
    "group": "query",
    "label": "chosen",
    "item": "item",
    "quality": ["score", "freshness"],
    "categorical": "kind",
    "similarity": "embedding",
}


def some_table(n_groups=24, random_state=0):
    return make_table(n_groups, 6, 4, random_state=random_state)


def cut(table, *rows):
    """Return the parts of a table between some rows."""
    ends = [0, *rows, table.num_rows]
    return [table.slice(a, b - a) for a, b in pairwise(ends)]


def write_folder(folder, parts, suffix=".parquet"):
    """Write tables as files of a folder, in the order of their names."""
    folder.mkdir(exist_ok=True)
    for number, part in enumerate(parts):
        write_table(part, folder / f"part-{number:03d}{suffix}")
    return folder


def folder_of(folder, n_groups=24, *, groups_a_file=(5, 1, 11, 7), random_state=0):
    """Write a generated table as a folder whose files hold so many groups each."""
    table = some_table(n_groups, random_state)
    ends, n_rows = [], 0
    for groups in groups_a_file[:-1]:
        n_rows += 6 * groups
        ends.append(n_rows)
    assert sum(groups_a_file) == n_groups
    return write_folder(folder, cut(table, *ends))


def rows_of(folder):
    """Return all rows of a folder, read by nothing of ours."""
    files = sorted(folder.glob("*.parquet"))
    return pa.concat_tables([parquet.read_table(path) for path in files])


class Pickling:
    """An engine that sends everything as to another process, and counts the items."""

    def __init__(self):
        self.n_items = 0

    def map(self, function, items, progress=lambda *_: None, ordered=True):
        for n_done, item in enumerate(items, 1):
            self.n_items += 1
            sent, here = pickle.loads(pickle.dumps((function, item)))
            result = pickle.loads(pickle.dumps(sent(here)))
            progress(n_done, len(items))
            yield result

    def tree_sum(self, function, items, add):
        sent = pickle.loads(pickle.dumps(function))

        def there(item):
            return pickle.loads(pickle.dumps(sent(pickle.loads(pickle.dumps(item)))))

        return Serial().tree_sum(there, items, add)


def learn_folder(selector, folder, engine, **options):
    return selector.fit(folder, engine=engine, **options)


def select_folder(selector, folder, out, engine, **options):
    return selector.select(folder, out=out, engine=engine, **options)


def evaluate_folder(selector, folder, engine, **options):
    return selector.evaluate(folder, engine=engine, **options)
