"""Tables in, selections out.

A table is read twice, in batches: once to find its groups and to learn how columns
become features (:mod:`~variegate.tables.survey`, :mod:`~variegate.tables.encoding`),
and once to bring the rows of each group together (:mod:`~variegate.tables.groups`).
Groups are learned from (:mod:`~variegate.tables.training`), chosen from
(:mod:`~variegate.tables.choosing`) and judged by (:mod:`~variegate.tables.evaluation`).
"""

from __future__ import annotations

try:
    import narwhals as _narwhals
    import pyarrow as _pyarrow
except ImportError as error:
    raise ImportError(
        f"tables need pyarrow and narwhals ({error}): pip install 'variegate[tables]'"
    ) from error

from variegate.tables.columns import Columns
from variegate.tables.folder.files import FolderTable
from variegate.tables.folder.gather import Gathered, gather
from variegate.tables.folder.judging import FolderEvaluation, evaluate_folder
from variegate.tables.folder.learning import learn_folder
from variegate.tables.folder.selecting import FolderSelection, select_folder
from variegate.tables.output import write_table
from variegate.tables.reading import TableFile, TableFileError
from variegate.tables.sample import make_table
from variegate.tables.selector import TableSelector
from variegate.tables.table import TableError
from variegate.tables.untrained import select_untrained

__all__ = [
    "Columns",
    "FolderEvaluation",
    "FolderSelection",
    "FolderTable",
    "Gathered",
    "TableError",
    "TableFile",
    "TableFileError",
    "TableSelector",
    "evaluate_folder",
    "gather",
    "learn_folder",
    "make_table",
    "select_folder",
    "select_untrained",
    "write_table",
]

del _narwhals, _pyarrow
