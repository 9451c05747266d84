"""``variegate fit``: train a model on a table of good selections."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from variegate.application.table_defaults import (
    EMPTY_GROUPS,
    KERNELS,
    LAM,
    QUALITY_MODELS,
)
from variegate.cli import options, output
from variegate.cli.cluster import Cluster, cluster_options, note_unreadable
from variegate.cli.options import option

_SHARE = options.NumberType(min=0.0, max=1.0, min_open=True, max_open=True)


def _parse_target(text: str) -> dict[str, float]:
    """Return the parameter and value of "recall=0.8": ``{"target_recall": 0.8}``."""
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
@options.column_options("group", "label", "quality", "similarity", "given", "segment")
@option(
    "--segment-memory N", "Segments whose chosen rows the next one is chosen beside.",
    options.COUNT, default=1,
)  # fmt: skip
@options.empty_groups(
    "Treatment of groups without a chosen row, here and in evaluate.",
    default=EMPTY_GROUPS[0],
)
@option(
    "--lam L", f"{options.LAM_HELP}  [default: {LAM:g}]", options.NumberType(min=0.0)
)
@option(
    "--omega W", "Cost of a missed row relative to a wrong one while learning; select "
    "takes any other, too.  [default: 1, or a better one on held-out groups]",
    options.POSITIVE,
)  # fmt: skip
@option("--tune", "Choose lambda and omega for the best F-score by cross-validation.")
@option(
    "--target SCORE=SHARE", "Choose lambda and omega to reach this precision or recall "
    "on new groups, such as recall=0.8. Implies --tune.",
    options.Parsed("target", _parse_target),
)  # fmt: skip
@option(
    "--kernel", "Similarity to learn; auto takes the best on held-out groups.",
    KERNELS, default=KERNELS[0],
)  # fmt: skip
@option(
    "--quality-model", "Quality of a row: linear in its features, with the log-odds of "
    "boosted trees among them, or auto: the better one on held-out groups, where "
    "kernels are compared.", QUALITY_MODELS, default=QUALITY_MODELS[0],
)  # fmt: skip
@option(
    "--decoder", "Algorithm that chooses rows; mbr and expected-f choose more rows "
    "than greedy and local.  [default: the best on held-out groups, or greedy with a "
    "--kernel]", ("greedy", "local", "mbr", "expected-f"),
)  # fmt: skip
@option("--max-iter N", options.MAX_ITER_HELP, options.COUNT)
@option(
    "--first-passes N", "Passes of stochastic gradients before the solver.  [default: "
    "1 for very many groups, else 0]", click.IntRange(min=0),
)  # fmt: skip
@option(
    "--validation SHARE", "Share of the groups to hold out.",
    options.NumberType(min=0.0, max=1.0, max_open=True),
    default=0.2, name="validation_fraction",
)  # fmt: skip
@option(
    "--seed N", "Seed for the held-out groups and for choosing.", options.SEED,
    default=0, name="random_state",
)  # fmt: skip
@options.memory_option(
    "Memory to hold, of each process; a larger table is read in parts."
)
@options.JOBS
@option(
    "--device NAME", "Device to learn on: cuda, cuda:1, cpu (by PyTorch), or auto for "
    "a GPU if there is one. All but auto need the extra torch.",
)  # fmt: skip
@cluster_options()
@option(
    "--report PATH", "Write a report: a page where PATH ends in .html, else a folder "
    "of Markdown and pictures. Repeat for both.", options.PATH,
    multiple=True, name="reports",
)  # fmt: skip
@option("--show A,B,...", "Columns to show in the report.", options.NAMES)
@options.FORCE
@options.JSON
def fit(
    table: Path,
    out: Path,
    separator: str | None,
    roles: dict[str, Any],
    cluster: Cluster,
    reports: tuple[Path, ...],
    show: tuple[str, ...] | None,
    force: bool,
    as_json: bool,
    target: dict[str, float] | None,
    **settings: Any,
) -> None:
    """Learn from a table which rows of each group to choose.

    TABLE is a Parquet, CSV, JSON-lines or Arrow file, or a folder of Parquet or Arrow
    files, and may be larger than memory. Some groups are held out, and scores on them
    are printed.

    On a cluster, run again after an interruption, the command resumes from
    FILE.checkpoint beside the file of -o.
    """
    from variegate.files.atomic import write_atomic
    from variegate.tables.fitting import open_checkpoint
    from variegate.tables.report import html_page, write_markdown
    from variegate.tables.report.gathering import check_report_columns
    from variegate.tables.selector import TableSelector

    _check_outputs(table, out, reports, force)
    cluster.refuse(device="workers learn on their CPUs")
    if settings["lam"] is not None and (settings["tune"] or target):
        raise click.UsageError("--tune and --target choose lambda: leave out --lam")
    given = roles | settings | (target or {})
    selector = TableSelector(**{n: v for n, v in given.items() if v not in (None, ())})
    with output.print_warnings_as_notes():
        source = options.open_table(table, separator, cluster.skip_unreadable)
        check_report_columns(source.schema, None, show)
        kept = out.with_name(f"{out.name}.checkpoint") if cluster else None
        how: dict[str, Any] = {"skip_unreadable": cluster.skip_unreadable}
        with (
            _manage_checkpoint(kept),
            cluster.engine_and_progress() as (how["engine"], how["progress"]),
            open_checkpoint(selector, source, kept) as checkpoint,
        ):
            selector.fit(source, checkpoint=checkpoint, **how)
            selector.save(out)
            checkpoint.remove()
            note_unreadable(selector.training_["unreadable"])
            if reports:
                made = selector.report(source, show=show, model=str(out), **how)
                for path in reports:
                    if _is_page(path):
                        write_atomic(path, html_page(made))
                    else:
                        write_markdown(made, path)
    description = selector.describe()
    output.print_result(as_json, description.numbers, lambda: str(description))
    output.print_written(out, *reports)


@contextmanager
def _manage_checkpoint(checkpoint: Path | None) -> Iterator[None]:
    """Raise Interrupted, with how to resume from a checkpoint, at an interrupt.

    At a ValueError, remove the checkpoint unless it was there before.
    """
    is_new = checkpoint is not None and not checkpoint.exists()
    try:
        yield
    except KeyboardInterrupt:
        if checkpoint is None or not checkpoint.exists():
            raise
        text = f"run it again, and it resumes from {checkpoint}"
        raise output.Interrupted(text) from None
    except ValueError:
        # With other settings, or another table, it would be that of another run.
        if checkpoint is not None and is_new:
            checkpoint.unlink(missing_ok=True)
        raise


def _is_page(path: Path) -> bool:
    """Return whether a report's path names an HTML file, by its suffix."""
    return path.suffix.lower() in (".html", ".htm")


def _check_outputs(
    table: Path, out: Path, reports: Sequence[Path], force: bool
) -> None:
    """Raise UsageError, before any work, for outputs that exist or are not writable."""
    output.refuse_to_replace(out, "-o", [table], force)
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
        file = path if _is_page(path) else path / "report.md"
        output.refuse_to_replace(file, "--report", [table], force)
