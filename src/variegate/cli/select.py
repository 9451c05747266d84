"""``variegate select``: items that are good and unlike each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from variegate.baselines import METHODS
from variegate.cli import options, output
from variegate.cli.cluster import Cluster, cluster_options, note_unreadable
from variegate.cli.options import option
from variegate.cli.select_items import choose_items, is_for_items, refuse_other_data
from variegate.report.wording import count

if TYPE_CHECKING:
    from variegate.tables.choosing import Choices
    from variegate.tables.selecting import FolderSelection


@click.command(
    epilog="\b\nvariegate select new.parquet --model model.json -o chosen.parquet\n"
    "variegate select new.csv --method mmr --k 5 --group query --relevance score \\\n"
    "    --similarity embedding -o chosen.csv\n"
    "variegate select new/ --model model.json --workers 8 -o chosen/\n"
    "variegate select photos/ --model studio.json -o chosen.csv --html chosen.html"
)
@click.argument("table", type=options.PATH, metavar="DATA")
@options.model_option("Model of the studio, or of a fit command, to choose by.")
@option(
    "--method", "Untrained method to choose by, in place of --model.", list(METHODS)
)
@option(
    "-o --out FILE", "File to write: .parquet, .csv, .jsonl or .arrow. On a cluster a "
    "folder, with a file for each of DATA.", options.PATH, required=True,
)  # fmt: skip
@options.output_option(
    "--html FILE", "Page to write with the chosen pictures, sentences or frames.",
)  # fmt: skip
@option(
    "--k N", "Rows to choose from each group.  [default: the model decides]",
    options.COUNT,
)  # fmt: skip
@options.BUDGET
@options.LIMITS
@options.OMEGA
@options.DIVERSITY
@option("--all", 'Write all rows, with a column "selected".', name="keep_all")
@option(
    "--drop A,B,...", "Columns to leave out of the file; * matches anything.",
    options.NAMES, default=(), show_default=False,
)  # fmt: skip
@options.SEPARATOR
@options.column_options(
    "group", "similarity", "categorical", "relevance", "cost", "given"
)
@option(
    "--seed N", "Seed of random methods.  [default: that of the model, or 0]",
    options.SEED,
)  # fmt: skip
@options.MEMORY
@options.JOBS
@cluster_options()
@options.FORCE
@options.JSON
def select(
    table: Path,
    model: Path | None,
    method: str | None,
    out: Path,
    separator: str | None,
    roles: dict[str, Any],
    cluster: Cluster,
    html: Path | None,
    force: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Choose rows of a table, pictures, sentences or frames of videos.

    DATA is a table: the chosen rows are written in the order of the table and with all
    their columns, next to which stand "selection_rank" and, from a model,
    "inclusion_probability".

    With a model that was learned from pictures, documents or videos, DATA is new data
    of that kind. A folder of pictures or of documents is a group, and so is each single
    document or video. The chosen items are written group by group, best first.

    On a cluster, DATA and -o are folders. Run again after an interruption, the command
    writes only the files that are missing; .manifest.sqlite in the folder of -o records
    the finished ones.
    """
    output.check_writable(out, is_folder=bool(cluster), option="-o")
    cluster.refuse(
        method="workers choose by a --model",
        force="only what is missing is done; remove the folder to begin again",
    )
    if not cluster:
        output.refuse_to_replace(out, "-o", [table], force)
    if (model is None) == (method is None):
        raise click.UsageError("choose with --model or with --method, one of the two")
    loaded = None if model is None else options.load_model(model)
    if is_for_items(loaded):
        how = {name: given[name] for name in ("k", "omega", "at_most", "per")}
        choose_items(table, loaded, out, html, force, as_json, **how)
        return
    refuse_other_data(table, loaded, html)
    if model is None:
        choose = _bind_method(str(method), roles, given)
    else:
        choose = _bind_model(model, loaded, roles, given)
    with output.print_warnings_as_notes():
        source = options.open_table(table, separator, cluster.skip_unreadable)
        found = _choose_rows(partial(choose, source, out=out, **given), cluster)
    _print_choices(found, bool(cluster), out, as_json)


def _choose_rows(choose: Callable[..., Any], cluster: Cluster) -> Any:
    """Return the Choices of ``choose``, or its FolderSelection on a cluster.

    It gets ``progress``, and on a cluster ``engine`` and ``skip_unreadable``, too.
    """
    resume = "run it again, and it does only what is missing" if cluster else None
    with cluster.engine_and_progress(resume) as (engine, progress):
        if not cluster:
            return choose(progress=progress)
        skip = cluster.skip_unreadable
        return choose(progress=progress, engine=engine, skip_unreadable=skip)


def _print_choices(found: Any, is_folder: bool, out: Path, as_json: bool) -> None:
    """Print counts of a FolderSelection or Choices, and notes on files and values."""
    numbers = _folder_numbers(found) if is_folder else _choice_numbers(found, out)
    note_unreadable(numbers.get("unreadable", ()))
    for name, number in found.unknown_levels.items():
        output.print_note(
            f"{number:,} rows have a value of {name!r} that was not there in training: "
            "they count as none of its kinds"
        )
    text = partial(_summary_text, **numbers)
    output.print_result(as_json, numbers, text, indent=None, default=str)
    output.print_written(out)


def _bind_method(
    method: str, roles: Mapping[str, Any], given: dict[str, Any]
) -> Callable[..., Any]:
    """Return the function ``select_untrained`` with method and columns set.

    Of the options ``given``, omega is removed, and seed is 0 where it is None, in
    place.
    """
    from variegate.tables.columns import Columns
    from variegate.tables.selecting import select_untrained

    if given.pop("omega") is not None:
        raise click.UsageError("--omega is for a --model")
    given["seed"] = given["seed"] or 0
    return partial(select_untrained, columns=Columns.of(**roles), method=method)


def _bind_model(
    path: Path, model: Any, roles: Mapping[str, Any], given: dict[str, Any]
) -> Callable[..., Any]:
    """Return the method ``select`` of a model with some columns from ``roles``.

    Remove diversity, memory, n_jobs and seed from the options ``given``: the last three
    are set in the selector.  ``path`` of the model is for messages.
    """
    written = options.given_options()
    known = ("similarity", "categorical", "relevance")
    unused = [written[role] for role in known if role in written]
    if unused:
        raise click.UsageError(
            f"{' and '.join(unused)} cannot be used with --model, which knows its "
            "columns"
        )
    del given["diversity"]
    memory, n_jobs = given.pop("memory"), given.pop("n_jobs")
    selector = options.as_selector(model, path, memory, n_jobs)
    names = ("group", "cost", "given", "segment")
    selector = selector.with_columns(**{name: roles.get(name) for name in names})
    seed = given.pop("seed")
    selector.seed_ = selector.seed_ if seed is None else seed
    return selector.select


def _choice_numbers(choices: Choices, out: Path) -> dict[str, Any]:
    """Return counts of chosen rows and groups, and endings of searches, for JSON."""
    endings = zip(choices.groups, choices.endings, strict=False)
    return {
        "rows": len(choices.rank),
        "groups": len(choices.groups),
        # One row of every group that has any is the first.
        "empty_groups": len(choices.groups) - int((choices.rank == 1).sum()),
        "chosen": int(choices.selected.sum()),
        "file": str(out),
        "endings": [{"group": name, **ending} for name, ending in endings],
    }


def _folder_numbers(found: FolderSelection) -> dict[str, Any]:
    """Return counts of rows, groups and files of a folder, for JSON."""
    return {
        "rows": found.n_rows,
        "groups": found.n_groups,
        "empty_groups": found.n_empty,
        "chosen": found.n_chosen,
        "folder": str(found.folder),
        "files": found.n_files,
        "written": found.n_written,
        "unreadable": list(found.unreadable),
        "stop_reasons": dict(found.stop_reasons),
    }


def _summary_text(
    rows: int, groups: int, empty_groups: int, chosen: int, **others: Any
) -> str:
    """Return a line of four counts for JSON; ``others`` are not shown."""
    none = f", none from {empty_groups:,} of them" if empty_groups else ""
    return f"{chosen:,} of {rows:,} rows chosen from {count(groups, 'group')}{none}"
