"""What there is to say about a fitted selector, on pages and terminals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from variegate._html import count
from variegate.kernels import Gaussian, Mixture, MultipleKernel
from variegate.omega_path import PathPoint
from variegate.omega_path import _omega_name as omega_name
from variegate.tables.encoding import FeatureColumn

if TYPE_CHECKING:
    from variegate.tables.selector import TableSelector

__all__ = [
    "KernelPart",
    "Weight",
    "about_columns",
    "about_data",
    "about_empty_cells",
    "about_path",
    "about_training",
    "decimals",
    "has_history",
    "has_validation",
    "kernel_parts",
    "omega_name",
    "one_line",
    "path_points",
    "scores_in_words",
    "shortened",
    "strongest",
    "weights",
    "with_error",
]

#: A vector column with more numbers than this has one weight on show: their length.
_LONG_VECTOR = 8

#: Values of a category that are listed.
_LISTED = 12

_EMPTY_CELLS = {
    "error": "An empty cell is an error.",
    "mean": "An empty cell counts as the mean of its column, and in a category as none "
    "of the values.",
    "indicator": "An empty cell counts as the mean of its column, and in a category as "
    "none of the values; columns with empty cells in training have one more feature "
    "that says where they are.",
}


@dataclass(frozen=True)
class Weight:
    """The weight of a feature, or the length of those of a vector column.

    Attributes
    ----------
    name : str
    value : float
    n_features : int
        More than one for a vector column.
    """

    name: str
    value: float
    n_features: int = 1


@dataclass(frozen=True)
class KernelPart:
    """One similarity of a sum, and its weight.

    Attributes
    ----------
    block : str or None
        The columns that it looks at; None where there is only one block.
    name : str
        "Gaussian" or "linear", or what else the kernel is called.
    bandwidth : float or None
        Of a Gaussian: the distance at which items stop being alike.
    weight : float
        All of them sum to one.
    """

    block: str | None
    name: str
    bandwidth: float | None
    weight: float

    @property
    def label(self) -> str:
        """The name with the bandwidth and the block, as far as there are any."""
        width = "" if self.bandwidth is None else f", σ = {self.bandwidth:.3g}"
        block = "" if self.block is None else f"{shortened(self.block, 20)}: "
        return f"{block}{self.name}{width}"


def weights(selector: TableSelector) -> list[Weight]:
    """Return the weights of the quality, the largest first.

    Those of a vector column of more than eight numbers are taken together.
    """
    named = list(selector.weights_.items())
    found: list[Weight] = []
    first = 0
    for column in selector.encoding_.quality:
        part = named[first : first + column.size]
        first += column.size
        if column.kind == "vector" and column.size > _LONG_VECTOR:
            length = math.hypot(*(value for _, value in part))
            found.append(Weight(column.name, length, column.size))
        else:
            found += [Weight(name, value) for name, value in part]
    return sorted(found, key=lambda weight: -abs(weight.value))


def strongest(selector: TableSelector, most: int) -> tuple[list[Weight], str]:
    """Return the largest weights, and a line on those that are left out, if any are."""
    found = weights(selector)
    rest = found[most:]
    note = ""
    if rest:
        verb = "is" if len(rest) == 1 else "are"
        note = (
            f"{count(len(rest), 'more feature')} {verb} left out, with weights of at "
            f"most {abs(rest[0].value):.2g}."
        )
    return found[:most], note


def kernel_parts(selector: TableSelector) -> list[KernelPart]:
    """Return the similarities that the kernel is a sum of; none for other kernels."""
    kernel = selector.model_.kernel_
    values = selector.model_.kernel_parameters_.tolist()
    if isinstance(kernel, MultipleKernel):
        ladders = kernel.bandwidths_
        names: list[tuple[str | None, str, float | None]] = [
            (block, "Gaussian", sigma)
            for block, ladder in ladders.items()
            for sigma in ladder.tolist()
        ]
        names += [(block, "linear", None) for block in ladders if kernel.linear]
        order = list(ladders)
        parts = [KernelPart(*name, v) for name, v in zip(names, values, strict=True)]
        # Block by block, each with its linear part last.
        return sorted(parts, key=lambda part: order.index(part.block))
    if isinstance(kernel, Mixture):
        return [
            KernelPart(
                getattr(part, "block", None),
                "linear" if type(part).__name__ == "Linear" else type(part).__name__,
                float(part.bandwidth) if isinstance(part, Gaussian) else None,
                value,
            )
            for part, value in zip(kernel.kernels, values, strict=True)
        ]
    return []


def about_data(selector: TableSelector) -> dict[str, str]:
    """Return what the model was learned from, in numbers."""
    record = selector.training_
    if not record:
        return {}
    left_out = record["n_left_out"]
    facts = {
        "Rows": f"{record['n_rows']:,}",
        "Groups": f"{record['n_groups']:,}",
        "Rows a group": _spread(record["group_sizes"]),
        "Chosen a group": _spread(record["chosen_sizes"]),
        "Learned from": count(record["n_learned_from"], "group"),
        "Held out": count(record["n_held_out"], "group"),
    }
    if left_out:
        facts["Left out"] = f"{count(left_out, 'group')} with nothing chosen"
    return facts


def _spread(sizes: Mapping[str, float]) -> str:
    if sizes["smallest"] == sizes["largest"]:
        return f"{sizes['largest']:,}"
    return f"{sizes['mean']:.3g} ({sizes['smallest']:,} to {sizes['largest']:,})"


def about_columns(selector: TableSelector) -> list[tuple[str, str, str]]:
    """Return part, name and treatment of every column."""
    columns = selector.columns_
    single = (
        ("group", columns.group, "rows with the same value form a group"),
        ("label", columns.label, "1 in rows that were chosen"),
        ("item", columns.item, "identifies a row in its group"),
        ("cost", columns.cost, "for budgets"),
    )
    rows = [(part, name, how) for part, name, how in single if name is not None]
    rows += [("quality", c.name, _encoded(c)) for c in selector.encoding_.quality]
    blocks = selector.encoding_.blocks
    for block in blocks.values():
        rows += [("similarity", c.name, _encoded(c)) for c in block]
    if not blocks:
        rows.append(("similarity", "", "the features of the quality serve for both"))
    return rows


def about_empty_cells(selector: TableSelector) -> str:
    """Return what is done where a cell is empty."""
    return _EMPTY_CELLS[selector.encoding_.missing]


def _encoded(column: FeatureColumn) -> str:
    size = len(column.mean)
    if column.kind == "category":
        listed = [shortened(level, 24) for level in column.levels[:_LISTED]]
        rest = len(column.levels) - len(listed)
        more = f" and {rest:,} more" if rest else ""
        what = f"{len(column.levels):,} categories: {', '.join(listed)}{more}"
    elif column.kind == "number":
        what = (
            f"number, standardised (mean {column.mean[0]:.4g}, standard deviation "
            f"{column.scale[0]:.4g})"
        )
    elif column.kind == "vector":
        what = f"vector of {count(size, 'number')}, each standardised"
    else:
        what = f"vector of {count(size, 'number')}, scaled to unit length"
    return what + "; one more feature where it is empty" * column.has_indicator


def about_training(selector: TableSelector) -> dict[str, str]:
    """Return how it was learned and how that ended."""
    record, model = selector.training_, selector.model_
    result = model.solver_result_
    n_tuned = record.get("n_tuned", 0)
    how = f"chosen by cross-validation on {count(n_tuned, 'group')}"
    lam = f"{selector.lam_:g}, {how if n_tuned else 'as given'}"
    facts = {
        "λ (weight of the margin)": lam
        + (": maximum likelihood" if selector.lam_ == 0.0 else ""),
        "ω (a missed row against a wrong one)": omega_name(selector.omega_)
        + (f", {how}" if n_tuned else ""),
    }
    if len(selector.omegas_) > 1:
        facts["Models"] = (
            f"{len(selector.omegas_)}, for ω = "
            f"{', '.join(map(omega_name, selector.omegas_))}"
        )
    decoder = selector.decoder
    facts |= {
        "Kernel": type(model.kernel_).__name__,
        "Decoder": decoder if isinstance(decoder, str) else type(decoder).__name__,
        "Penalty on the weights": f"{selector.l2:g}",
        "Ended": result.status,
        "Iterations": f"{result.n_iterations:,}",
        "Objective": f"{result.objective:.5g}",
    }
    if result.remedy:
        facts["What may help"] = result.remedy
    return facts


def has_validation(selector: TableSelector) -> bool:
    """Tell whether groups were held out and judged by."""
    return bool(selector.training_.get("validation"))


def has_history(selector: TableSelector) -> bool:
    """Tell whether there is a learning curve to draw."""
    return len(selector.training_.get("history", {}).get("iteration", ())) > 1


def scores_in_words(selector: TableSelector) -> str:
    """Return in a sentence or two how well the model does on new groups."""
    record, path = selector.training_, selector.path_
    if has_validation(selector):
        means = {name: values[0] for name, values in record["validation"].items()}
        groups = count(record["n_held_out"], "group")
        return f"On {groups} that the model did not learn from, {_doing(means)}"
    chosen = [] if path is None else [p for p in path if p.omega == path.chosen]
    if chosen and record.get("n_tuned"):
        groups = count(record["n_tuned"], "group")
        return (
            f"In cross-validation on {groups}, {_doing(chosen[0]._asdict())} λ and ω "
            "were chosen by these scores, so that new groups may give slightly less."
        )
    return (
        "No groups were held out, so how well the model does on new ones is not known "
        "from this training alone."
    )


def _doing(means: Mapping[str, float]) -> str:
    return (
        f"it chose {means['size']:.3g} rows a group. Of what it chose, "
        f"{100.0 * means['precision']:.0f} % was wanted (precision), and of what was "
        f"wanted it chose {100.0 * means['recall']:.0f} % (recall)."
    )


def path_points(selector: TableSelector) -> tuple[PathPoint, ...]:
    """Return the points of the path, none where a single one would say nothing new."""
    path = selector.path_
    return () if path is None or len(path) < 2 else path.points


def about_path(selector: TableSelector) -> str:
    """Return what omega does, and where the scores of the path come from."""
    words = [
        "ω says what a missed row costs against a wrong one: the larger it is, the "
        "more rows are chosen."
    ]
    if len(selector.omegas_) > 1:
        words.append(
            f"Any value from {omega_name(selector.omegas_[0])} to "
            f"{omega_name(selector.omegas_[-1])} can be asked for when rows are chosen."
        )
    record = selector.training_
    words.append(
        f"Scores by cross-validation on {count(record['n_tuned'], 'group')}."
        if record.get("n_tuned")
        else f"Scores on the {count(record.get('n_held_out', 0), 'group')} held out."
    )
    return " ".join(words)


def with_error(mean: float, error: float, digits: int = 3) -> str:
    """Return a mean and, where it is known, its standard error."""
    text = f"{mean:.{digits}f}"
    return text if math.isnan(error) else f"{text} ± {error:.{digits}f}"


def one_line(text: str) -> str:
    """Return text without line breaks and characters that no page can show."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def shortened(text: str, longest: int) -> str:
    """Return text in one line, its middle left out where it is too long.

    What tells features apart is often at the end.
    """
    text = one_line(text)
    if len(text) <= longest:
        return text
    head = (longest - 1) * 2 // 3
    return f"{text[:head]}…{text[len(text) - (longest - 1 - head) :]}"


def decimals(values: Sequence[float]) -> int:
    """Return after how many decimals the largest of some numbers has three digits."""
    largest = max((abs(value) for value in values), default=0.0)
    if largest == 0.0:
        return 2
    return min(max(2 - math.floor(math.log10(largest)), 0), 9)
