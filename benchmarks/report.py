"""The table and the plot of a benchmark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.timing import Row
from paper.text_tables import markdown_table
from variegate.report.figures import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def table(rows: list[Row]) -> str:
    """Return a Markdown table of comparisons, and one of decoders if there are any."""
    compared = [_comparison(row) for row in rows if "log_prob" not in row]
    header = ("case", "items", "variegate", "competitor", "ratio")
    parts = [markdown_table(header, compared)]
    decoders = [_decoder(row) for row in rows if "log_prob" in row]
    if decoders:
        header = ("decoder", "items", "log-probability", "gap", "time")
        parts.append(markdown_table(header, decoders))
    return "\n\n".join(parts)


def _comparison(row: Row) -> tuple[str, ...]:
    return (
        row["case"],
        str(row["n_items"]),
        _seconds(row["variegate_s"], row["variegate_spread_s"]),
        f"{row['competitor']} "
        + _seconds(row["competitor_s"], row["competitor_spread_s"]),
        "" if row["ratio"] is None else f"{row['ratio']:.1f}",
    )


def _decoder(row: Row) -> tuple[str, ...]:
    return (
        row["case"].removeprefix("decoder "),
        str(row["n_items"]),
        f"{row['log_prob']:.4f}",
        "no bound" if row["gap"] is None else f"{row['gap']:.2g}",
        _seconds(row["variegate_s"], row["variegate_spread_s"]),
    )


def _seconds(median: float | None, spread: float | None) -> str:
    if median is None or spread is None:
        return "not installed"
    large = (pair for pair in (("s", 1.0), ("ms", 1e3)) if median * pair[1] >= 1.0)
    unit, factor = next(large, ("µs", 1e6))
    return f"{median * factor:.3g} ± {spread * factor:.2g} {unit}"


def plot(rows: list[Row]) -> Figure:
    """Draw times against the number of items, a pair of lines a case."""
    figure, (axes,) = new_figure(width=9.5)
    sizes_of: dict[str, set[int]] = {}
    for row in rows:
        if row["competitor"]:
            sizes_of.setdefault(row["case"], set()).add(row["n_items"])
    # A line needs two sizes; without any line, points are better than nothing.
    cases = [case for case in sizes_of if len(sizes_of[case]) > 1] or [*sizes_of]
    for position, case in enumerate(cases):
        members = [row for row in rows if row["case"] == case]
        sizes = [row["n_items"] for row in members]
        ours = [row["variegate_s"] for row in members]
        axes.plot(sizes, ours, "o-", color=f"C{position}", label=case)
        if members[0]["competitor_s"] is not None:
            theirs = [row["competitor_s"] for row in members]
            name = f"{case}: {members[0]['competitor']}"
            axes.plot(sizes, theirs, "s:", color=f"C{position}", label=name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("items")
    axes.set_ylabel("seconds")
    axes.legend(frameon=False, fontsize=7.5, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure
