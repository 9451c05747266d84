"""The report of a training on a folder, from a few groups that are brought here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sklearn.utils.validation import check_is_fitted

from variegate.partitions import Engine
from variegate.tables.derived import derived
from variegate.tables.folder.files import FolderTable, as_folder
from variegate.tables.folder.groups import FolderGroups
from variegate.tables.folder.judging import labelled
from variegate.tables.networks import refuse_network
from variegate.tables.report import Report
from variegate.tables.report.gathering import check_report_columns, report_of
from variegate.tables.selector import TableSelector
from variegate.tables.settings import watched
from variegate.tables.table import Progress

__all__ = ["report_folder"]


def report_folder(
    selector: TableSelector,
    folder: str | Path | FolderTable,
    engine: Engine,
    *,
    relevance: str | None = None,
    show: Sequence[str] | None = None,
    model: str = "model.json",
    skip_unreadable: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Return the report of a training on the files of a folder.

    It is that of home (:meth:`variegate.tables.TableSelector.report`): what ways to
    choose are compared on, at most 2,000 of the groups held out, and what rivals learn
    from, as many others, are brought here.

    Parameters
    ----------
    selector : TableSelector
        Fitted to the folder.
    folder : str, Path or FolderTable
    engine : Engine
    relevance, show, model, progress
        As for :meth:`variegate.tables.TableSelector.report`.
    skip_unreadable : bool, default=False
        As for learning.
    """
    check_is_fitted(selector, "family_")
    refuse_network(selector.model_, "report")
    progress = watched(progress, selector.verbose)
    relevance = relevance or selector.columns_.relevance
    table = as_folder(folder, skip_unreadable)
    made = derived(table, selector.columns_)
    check_report_columns(made, relevance, show)
    found = labelled(
        selector, table, engine,
        relevance=relevance, skip_unreadable=skip_unreadable, progress=progress,
    )  # fmt: skip
    groups = FolderGroups(found, selector.encoding_, engine)
    return report_of(
        selector, made, groups, groups.texts, relevance, show, model, progress
    )
