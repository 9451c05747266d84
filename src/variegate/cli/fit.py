"""``variegate fit``: train a model on a table of good selections."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from variegate.application.table_defaults import EMPTY_GROUPS, KERNELS, LAM
from variegate.cli import options, output
from variegate.cli.cluster import (
    ClusterChoice,
    cluster_options,
    note_unreadable,
    refuse_on_cluster,
    working,
)

if TYPE_CHECKING:
    from variegate.tables.columns import Columns
    from variegate.tables.report import Report
    from variegate.tables.selector import TableSelector

#: Roles of columns that have an option.
_ROLES = ("group", "label", "quality", "similarity")

_SHARE = options.NumberType(min=0.0, max=1.0, min_open=True, max_open=True)


def _target(text: str) -> dict[str, float]:
    """Return the parameter of the selector for a precision or a recall."""
    score, _, share = text.partition("=")
    if score not in ("precision", "recall"):
        raise ValueError(f"{text!r} is not precision=SHARE or recall=SHARE")
    return {f"target_{score}": _SHARE.convert(share, None, None)}


@click.command(
    epilog="\b\nvariegate fit train.parquet --group query --label chosen \\\n"
    "    --quality score,freshness --similarity embedding -o model.json\n"
    "variegate fit train.parquet --columns columns.toml \\\n"
    "    --target recall=0.8 -o model.json --report report.html\n"
    "variegate fit train/ --columns columns.toml --workers 8 -o model.json"
)
@click.argument("table", type=options.PATH)
@options.OUT
@options.SEPARATOR
@options.column_options(*_ROLES)
@options.empty_groups(
    default=EMPTY_GROUPS[0],
    show_default=True,
    help="Treatment of groups without a chosen row, here and in evaluate.",
)
@click.option(
    "--lam", type=options.NumberType(min=0.0), metavar="L",
    help=f"{options.LAM_HELP}  [default: {LAM:g}]",
)  # fmt: skip
@click.option(
    "--omega", type=options.POSITIVE, multiple=True, metavar="W",
    help="Cost of a missed row relative to a wrong one. Repeat to train several; "
    "select takes any value between them.  [default: 1/16, 1/4, 1, 4, 16]",
)  # fmt: skip
@click.option(
    "--tune", is_flag=True,
    help="Choose lambda and omega for the best F-score by cross-validation.",
)  # fmt: skip
@click.option(
    "--target", type=options.Parsed("target", _target), metavar="SCORE=SHARE",
    help="Choose lambda and omega to reach this precision or recall on new groups, "
    "such as recall=0.8. Implies --tune.",
)  # fmt: skip
@click.option(
    "--kernel", type=click.Choice(KERNELS), default=KERNELS[0], show_default=True,
    help="Similarity to learn; auto takes the best on held-out groups.",
)  # fmt: skip
@click.option(
    "--decoder", type=click.Choice(["greedy", "local", "mbr", "expected-f"]),
    help="Algorithm that chooses rows; mbr and expected-f choose more rows than greedy "
    "and local.  [default: the best on held-out groups, or greedy with a --kernel]",
)  # fmt: skip
@click.option("--max-iter", type=options.COUNT, metavar="N", help=options.MAX_ITER_HELP)
@click.option(
    "--first-passes", type=click.IntRange(min=0), metavar="N",
    help="Passes of stochastic gradients before the solver.  [default: 1 for very many "
    "groups, else 0]",
)  # fmt: skip
@click.option(
    "--validation", "validation_fraction", default=0.2, show_default=True,
    type=options.NumberType(min=0.0, max=1.0, max_open=True), metavar="SHARE",
    help="Share of the groups to hold out.",
)  # fmt: skip
@click.option(
    "--seed", "random_state", type=click.IntRange(min=0), default=0, show_default=True,
    metavar="N", help="Seed for the held-out groups and for choosing.",
)  # fmt: skip
@options.memory_option(
    help="Memory to hold, of each process; a larger table is read in parts."
)
@options.JOBS
@click.option(
    "--device", metavar="NAME",
    help="Device to learn on: cuda, cuda:1, cpu (by PyTorch), or auto for a GPU if "
    "there is one. All but auto need the extra torch.",
)  # fmt: skip
@cluster_options()
@click.option(
    "--report", "reports", type=options.PATH, multiple=True, metavar="PATH",
    help="Write a report: a page where PATH ends in .html, else a folder of Markdown "
    "and pictures. Repeat for both.",
)  # fmt: skip
@click.option(
    "--show", type=options.NAMES, metavar="A,B,...",
    help="Columns to show in the report.",
)  # fmt: skip
@options.FORCE
@options.JSON
def fit(
    table: Path,
    out: Path,
    separator: str | None,
    column_roles: Sequence[Path | tuple[str, str]],
    cluster: ClusterChoice | None,
    reports: tuple[Path, ...],
    show: tuple[str, ...] | None,
    force: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Learn from a table which rows of each group to choose.

    TABLE is a Parquet, CSV, JSON-lines or Arrow file, or a folder of Parquet or Arrow
    files, and may be larger than memory. Some groups are held out, and scores on them
    are printed.

    On a cluster, run again after an interruption, the command resumes from
    FILE.checkpoint beside the file of -o.
    """
    options.need_tables()
    from variegate.tables.fitting import open_checkpoint
    from variegate.tables.report.gathering import check_report_columns

    _check_outputs(table, out, reports, force)
    columns = options.columns_of(
        column_roles, **{role: given.pop(role) for role in _ROLES}
    )
    skip = False
    if cluster is not None:
        refuse_on_cluster(device="workers learn on their CPUs")
        skip = cluster.skip_unreadable
    selector = _selector(columns, given)
    with output.notes():
        source = options.open_table(table, separator, skip)
        check_report_columns(source.schema, None, show)
        path = None if cluster is None else out.with_name(f"{out.name}.checkpoint")
        how: dict[str, Any] = {"skip_unreadable": skip}
        with (
            _resumable(path),
            working(cluster) as (how["engine"], how["progress"]),
            open_checkpoint(selector, source, path) as checkpoint,
        ):
            selector.fit(source, checkpoint=checkpoint, **how)
            selector.save(out)
            checkpoint.remove()
            note_unreadable(selector.training_["unreadable"])
            if reports:
                made = selector.report(source, show=show, model=str(out), **how)
                _write(made, reports)
    description = selector.describe()
    output.say_result(as_json, description.numbers, lambda: str(description))
    output.say_written(out, *reports)


@contextmanager
def _resumable(checkpoint: Path | None) -> Iterator[None]:
    """Name the checkpoint of an interrupted run; remove that of a failed one."""
    if checkpoint is None:
        yield
        return
    is_new = not checkpoint.exists()
    try:
        yield
    except KeyboardInterrupt:
        if not checkpoint.exists():
            raise
        raise output.Interrupted(
            f"run it again, and it resumes from {checkpoint}"
        ) from None
    except ValueError:
        # With other settings, or another table, it would be that of another run.
        if is_new:
            checkpoint.unlink(missing_ok=True)
        raise


def _is_page(path: Path) -> bool:
    return path.suffix.lower() in (".html", ".htm")


def _check_outputs(
    table: Path, out: Path, reports: Sequence[Path], force: bool
) -> None:
    """Refuse before the work files that must not be written."""
    for path in reports:
        if path.resolve() == out.resolve():
            raise click.UsageError(f"{out} is for the model: name another for --report")
        if _is_page(path):
            output.check_writable(path, option="'--report'")
        elif path.is_file():
            raise click.UsageError(
                f"--report {path} is a file: name a folder, or a file that ends in "
                ".html"
            )
    files = [out, *(path if _is_page(path) else path / "report.md" for path in reports)]
    output.refuse_existing(force, *files)
    output.refuse_to_replace(out, "-o", [table])


def _selector(columns: Columns, given: Mapping[str, Any]) -> TableSelector:
    """Return a selector with the parameters that were given, others by default."""
    from variegate.tables.selector import TableSelector

    parameters = dict(given)
    target = parameters.pop("target") or {}
    if given["lam"] is not None and (given["tune"] or target):
        raise click.UsageError("--tune and --target choose lambda: leave out --lam")
    roles = {role: getattr(columns, role) for role in options.ROLES}
    known = roles | parameters | target
    return TableSelector(**{n: v for n, v in known.items() if v not in (None, ())})


def _write(made: Report, paths: Sequence[Path]) -> None:
    from variegate.files.atomic import write_atomic
    from variegate.tables.report import html_page, write_markdown

    for path in paths:
        if _is_page(path):
            write_atomic(path, html_page(made))
        else:
            write_markdown(made, path)
