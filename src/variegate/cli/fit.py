"""``variegate fit``: learn from a table of good selections."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from variegate.application.table_defaults import (
    EMPTY_GROUPS,
    KERNELS,
    LAM,
    MISSING,
)
from variegate.cli.cluster_options import (
    Cluster,
    cluster_options,
    note_unreadable,
    refuse_elsewhere,
    refuse_on_cluster,
)
from variegate.cli.learning_options import OUT
from variegate.cli.notes import notes
from variegate.cli.paths import (
    FOLDER,
    FORCE,
    PATH,
    output_option,
    refuse_existing,
    refuse_to_replace,
)
from variegate.cli.progress import stage_progress
from variegate.cli.results import Interrupted, echo_json, say, say_written
from variegate.cli.table_options import (
    JOBS,
    JSON,
    MEMORY,
    SEPARATOR,
    column_options,
    columns_of,
    empty_groups,
    need_tables,
    open_table,
)
from variegate.cli.values import NAMES, POSITIVE, SIZE, Number

if TYPE_CHECKING:
    from variegate.tables.columns import Columns
    from variegate.tables.folder.files import FolderTable
    from variegate.tables.report import Report
    from variegate.tables.selector import TableSelector
    from variegate.tables.table import Table

#: Parts of a table that have an option.
_COLUMNS = (
    "group", "label", "item", "quality", "categorical", "similarity", "relevance",
    "cost",
)  # fmt: skip

#: Options that are for a cluster only, and those that it has no use for.
_ON_CLUSTER = ("checkpoint", "first_passes", "worker_cache")
_AT_HOME = {
    "n_jobs": "each worker has one thread",
    "device": "workers learn on their CPUs",
    "n_epochs": "--first-passes is for them",
    "separator": "the files of a folder need none",
}

_SHARE = Number(min=0.0, max=1.0, min_open=True, max_open=True)


@click.command(
    epilog="\b\nvariegate fit train.parquet --group query --label chosen \\\n"
    "    --quality score,freshness --similarity embedding -o model.json\n"
    "variegate fit train.parquet --columns columns.toml --tune \\\n"
    "    --target-recall 0.8 -o model.json --html report.html\n"
    "variegate fit train/ --columns columns.toml --workers 8 -o model.json"
)
@click.argument("table", type=PATH)
@OUT
@SEPARATOR
@column_options(*_COLUMNS)
@click.option(
    "--missing",
    type=click.Choice(MISSING),
    help="What an empty cell is: an error (the default), the average of its column, "
    "or a kind of its own.",
)
@empty_groups(
    default=EMPTY_GROUPS[0],
    show_default=True,
    help="What to do with groups of which no row was chosen, here and in evaluate.",
)
@click.option(
    "--lam",
    type=Number(min=0.0),
    help=f"Weight of the margin; 0 is maximum likelihood.  [default: {LAM:g}]",
)
@click.option(
    "--omega",
    type=POSITIVE,
    multiple=True,
    help="What a missed row costs against a wrong one; repeat to learn for several. "
    "By default 1/16, 1/4, 1, 4 and 16, and select takes any value between them.",
)
@click.option(
    "--tune",
    is_flag=True,
    help="Choose lambda and omega for the best F-score by cross-validation.",
)
@click.option(
    "--target-precision",
    type=_SHARE,
    help="Choose them for this precision on new groups.",
)
@click.option(
    "--target-recall",
    type=_SHARE,
    help="Choose them for this recall on new groups.",
)
@click.option(
    "--kernel",
    type=click.Choice(KERNELS),
    default=KERNELS[0],
    show_default=True,
    help="The similarity: Gaussians and a linear part with learned weights, learned "
    "kinds, a learned metric, or linear; auto is what does best on groups held out in "
    "turn.",
)
@click.option(
    "--decoder",
    type=click.Choice(["greedy", "local", "mbr", "expected-f"]),
    help="How rows are chosen: one after the other, then with exchanges, by the "
    "agreement of samples, which takes longer and chooses more, or for the largest "
    "F-score that can be expected, which chooses more too. By default what does best "
    "with the kernel on groups held out, greedy if a kernel is named.",
)
@click.option("--l2", type=Number(min=0.0), help="Penalty on weights.")
@click.option(
    "--max-iter",
    type=click.IntRange(min=1),
    help="When to stop at the latest.",
)
@click.option(
    "--epochs",
    "n_epochs",
    type=click.IntRange(min=1),
    help="Passes over a table that does not fit in memory.",
)
@click.option(
    "--validation",
    "validation_fraction",
    type=Number(min=0.0, max=1.0, max_open=True),
    default=0.2,
    show_default=True,
    help="Share of the groups that is held out to judge by.",
)
@click.option(
    "--seed", "random_state", type=click.IntRange(min=0), default=0, show_default=True,
    help="For the groups held out, and for choosing.",
)  # fmt: skip
@MEMORY
@JOBS
@click.option(
    "--device", metavar="NAME",
    help="Where models are learned: cuda for a GPU, cuda:1 for the second, auto for a "
    "GPU where there is one, cpu for PyTorch there. All but auto need the extra torch.",
)  # fmt: skip
@cluster_options()
@output_option(
    "--checkpoint",
    help="On a cluster, where it is kept what was finished, so that the command goes "
    "on if it is run again; by default beside -o. It is gone at the end.",
)
@click.option(
    "--first-passes", type=click.IntRange(min=0), metavar="N",
    help="On a cluster, passes over the groups by stochastic gradients before the "
    "others; by default one for more than 10,000,000 groups.",
)  # fmt: skip
@click.option(
    "--worker-cache", type=SIZE, metavar="SIZE",
    help="On a cluster, memory in which each worker keeps features; what it cannot "
    "keep goes to its disk.  [default: 256MB]",
)  # fmt: skip
@output_option("--html", help="Write a report, as one page.")
@click.option(
    "--report", type=FOLDER, metavar="DIR",
    help="Write the report as Markdown with pictures.",
)  # fmt: skip
@click.option(
    "--show", type=NAMES, metavar="A,B,...",
    help="Columns to show in the report's examples; by default the item and some more.",
)  # fmt: skip
@FORCE
@JSON
def fit(
    table: Path,
    out: Path,
    separator: str | None,
    columns_file: Path | None,
    cluster: Cluster | None,
    html: Path | None,
    report: Path | None,
    show: tuple[str, ...] | None,
    force: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Learn from a table which rows of each group to choose.

    TABLE is a Parquet, CSV, JSON-lines or Arrow file, or a folder of Parquet or Arrow
    files, and may be larger than memory. Some groups are held out, and how well the
    model does on them is reported.

    On a cluster, TABLE is a folder, and each of its groups lies in one file.
    """
    need_tables()
    _refuse_outputs(table, out, html, report, force)
    parts = {part: given.pop(part) for part in (*_COLUMNS, "missing")}
    how = {name: given.pop(name) for name in _ON_CLUSTER}
    columns = columns_of(columns_file, **parts)
    selector = _selector(columns, given)
    shown = _Shown(out, show, html is not None or report is not None)
    with notes():
        if cluster is None:
            refuse_elsewhere(*_ON_CLUSTER)
            made = _fit_here(selector, open_table(table, separator), shown)
        else:
            refuse_on_cluster(_AT_HOME)
            made = _fit_on(cluster, selector, cluster.folder(table), shown, **how)
        if made is not None:
            _write(made, html, report)
    if as_json:
        echo_json(selector.describe().numbers)
    else:
        say(str(selector.describe()))
    say_written(out, html, report)


class _Shown(NamedTuple):
    """Where the model goes, and what a report shows if one is wanted."""

    out: Path
    columns: tuple[str, ...] | None
    is_reported: bool


def _fit_here(selector: TableSelector, table: Table, shown: _Shown) -> Report | None:
    """Learn, write the model, and return a report if one is wanted."""
    from variegate.tables.report.gathering import check_report_columns

    check_report_columns(table, None, shown.columns)
    with stage_progress() as progress:
        selector.fit(table, progress=progress)
        selector.save(shown.out)
        if not shown.is_reported:
            return None
        return selector.report(table, None, shown.columns, str(shown.out), progress)


def _fit_on(
    cluster: Cluster,
    selector: TableSelector,
    table: FolderTable,
    shown: _Shown,
    *,
    checkpoint: Path | None,
    first_passes: int | None,
    worker_cache: int | None,
) -> Report | None:
    """Do the same on a cluster."""
    from variegate.partitions import Limits
    from variegate.tables.folder.learning import journal_of
    from variegate.tables.report.gathering import check_report_columns

    check_report_columns(table, None, shown.columns)
    out = shown.out
    path = checkpoint or out.with_name(f"{out.name}.journal")
    if path.resolve() == out.resolve():
        raise click.UsageError(f"{out} is for the model: name another for --checkpoint")
    limits = Limits() if worker_cache is None else Limits(memory=worker_cache)
    with (
        _kept(path),
        cluster.engine() as (engine, progress),
        journal_of(selector, table, path) as journal,
    ):
        selector.fit(
            table,
            progress=progress,
            engine=engine,
            journal=journal,
            first_passes=first_passes,
            limits=limits,
            skip_unreadable=cluster.skip_unreadable,
        )
        selector.save(out)
        journal.remove()
        note_unreadable(selector.training_["folder"]["unreadable"])
        if not shown.is_reported:
            return None
        return selector.report(
            table,
            show=shown.columns,
            model=str(out),
            progress=progress,
            engine=engine,
            skip_unreadable=cluster.skip_unreadable,
        )


@contextmanager
def _kept(journal: Path) -> Iterator[None]:
    """Say what is kept of a run that was interrupted; nothing of one that cannot be."""
    is_new = not journal.exists()
    try:
        yield
    except KeyboardInterrupt:
        if not journal.exists():
            raise
        raise Interrupted(
            f"run it again, and it goes on from what is in {journal}"
        ) from None
    except ValueError:
        # With other settings, or another table, it would be that of another run.
        if is_new:
            journal.unlink(missing_ok=True)
        raise


def _refuse_outputs(
    table: Path, out: Path, html: Path | None, report: Path | None, force: bool
) -> None:
    """Refuse files that must not be written, before the work."""
    refuse_existing(force, out, html, report and report / "report.md")
    refuse_to_replace(out, "-o", [table])
    refuse_to_replace(html, "--html", [table])
    if html is not None and html.resolve() == out.resolve():
        raise click.UsageError(f"{out} is for the model: name another for --html")


def _selector(columns: Columns, given: Mapping[str, Any]) -> TableSelector:
    """Return a selector with the settings that were given, all others by default."""
    from variegate.tables.selector import TableSelector

    is_tuned = given["tune"] or given["target_precision"] or given["target_recall"]
    if given["lam"] is not None and is_tuned:
        raise click.UsageError("--tune and --target-... choose lambda: leave out --lam")
    known = {part: getattr(columns, part) for part in (*_COLUMNS, "missing")}
    known |= dict(given)
    return TableSelector(**{n: v for n, v in known.items() if v not in (None, ())})


def _write(made: Report, html: Path | None, folder: Path | None) -> None:
    from variegate._files import write_atomic
    from variegate.tables import report as reports

    if html is not None:
        write_atomic(html, reports.html_page(made))
    if folder is not None:
        reports.write_markdown(made, folder)
