"""Descriptions of fitted models, as text, JSON, HTML of a notebook, and figures."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from variegate.application.model_facts import (
    KernelPart,
    LearnedKernel,
    Weight,
    alike_in_words,
    kernel_parts,
    largest_weights,
    learned_parts,
    metric_shares,
)
from variegate.estimator import DPPEstimator, LargeMarginDPP
from variegate.kernels import Kinds, Metric
from variegate.report.figures import COLOURS, new_figure
from variegate.report.notebook import preformatted
from variegate.report.terminal import align_columns, format_bars
from variegate.report.wording import count, percent, shorten_middle

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Weights that are printed, or drawn as bars, at most.
_MOST = 30

#: Features of a metric that are listed.
_MOST_FEATURES = 8

#: Characters of a line of text.
_LINE = 86

#: Inches: narrow enough to be read on a phone, where names are short.
WIDTH = 5.2

_ABOUT_BARS = "Bars: weight times the standard deviation of the feature."

#: The colour of vector columns, whose bars are lengths.
_VECTOR = "#008060"


@dataclass(frozen=True)
class DescriptionSection:
    """Facts by name, a table (``rows``) and sentences (``words``) under a title.

    ``longest`` are the numbers of characters to which a terminal shortens the cells of
    each column of the table.  ``str`` is the text, "" if there is only a title.
    """

    title: str
    facts: Mapping[str, str] = field(default_factory=dict)
    rows: Sequence[Sequence[str]] = ()
    words: Sequence[str] = ()
    longest: Sequence[int] = ()

    def __str__(self) -> str:
        """Return the section as plain text; "" if there is only a title."""
        rows: list[Sequence[str]] = [
            (lower_first_letter(name), value) for name, value in self.facts.items()
        ]
        rows += [
            tuple(map(shorten_middle, row, self.longest)) if self.longest else row
            for row in self.rows
        ]
        lines = [line for text in self.words for line in textwrap.wrap(text, _LINE)]
        parts = [align_columns(rows, indent=2), textwrap.indent("\n".join(lines), "  ")]
        return "\n".join([self.title, *filter(None, parts)]) if any(parts) else ""


def lower_first_letter(name: str) -> str:
    """Return a name with its first letter in lower case, unless as in "X-ray"."""
    return name if name[1:2] == "-" else name[:1].lower() + name[1:]


@dataclass(frozen=True, eq=False)
class Description:
    """Facts about a fitted model: ``print`` shows them, a notebook does, too.

    The weights are those of ``model``; the sections ``before`` and ``after`` are shown
    above and below them.  ``numbers`` are the same facts as plain values, for JSON.
    """

    model: LargeMarginDPP
    weights: Sequence[Weight]
    before: Sequence[DescriptionSection]
    numbers: Mapping[str, Any]
    after: Sequence[DescriptionSection] = ()

    def __str__(self) -> str:
        """Return the sections, the largest weights and the kernel as plain text."""
        shown, note = largest_weights(self.weights, _MOST)
        parts = kernel_parts(self.model)
        weights = [
            f"weights of the quality (intercept {self.model.intercept_:.3g})",
            format_bars(
                [w.label(40) for w in shown],
                [w.value for w in shown],
                [w.effect for w in shown],
            ),
            *(f"  {line}" for line in (note, self._explain_bars()) if line),
        ]
        kernel = [
            "weights of the similarity",
            format_bars(
                [part.label for part in parts], [part.weight for part in parts]
            ),
        ]
        texts = [
            *map(str, self.before),
            "\n".join(weights),
            "\n".join(kernel) if parts else "",
            *map(str, self.after),
        ]
        return "\n\n".join(text for text in texts if text)

    def _explain_bars(self) -> str:
        """Return a sentence on the length of bars, "" if it is the weight itself."""
        is_weight = all(weight.spread == 1.0 for weight in self.weights)
        return "" if is_weight else _ABOUT_BARS

    def _repr_html_(self) -> str:
        """Return the text as HTML for a notebook."""
        return preformatted(str(self))

    def section(self, title: str) -> DescriptionSection:
        """Return the section with a title; StopIteration if there is none."""
        every = (*self.before, *self.after)
        return next(section for section in every if section.title == title)

    def figure(self) -> Figure:
        """Return a figure of the weights, with the kernel's parts below them if any."""
        intercept = self.model.intercept_
        return model_figure(self.weights, intercept, kernel_parts(self.model))


def describe(model: Any) -> Description:
    """Return the description of a fitted application or ``LargeMarginDPP``.

    An application is one of text, video or tables, with a method ``describe``.  Other
    estimators, which are networks, raise ValueError.
    """
    if isinstance(model, DPPEstimator) and not isinstance(model, LargeMarginDPP):
        raise ValueError(
            f"a {type(model).__name__} has no weights of features to describe: its "
            "networks are network_, and how learning went is history_"
        )
    if not isinstance(model, LargeMarginDPP):
        description: Description = model.describe()
        return description
    names = [f"feature {number}" for number in range(len(model.theta_))]
    return make_description(model, model, names, [model.omega], {})


def make_description(
    fitted: Any,
    model: LargeMarginDPP,
    names: Sequence[str],
    omegas: Sequence[float],
    training: Mapping[str, Any],
) -> Description:
    """Return the description of ``model``, which the estimator ``fitted`` learned.

    ``names`` are those of the features, ``omegas`` the values learned; numbers in
    ``training`` become facts.
    """
    result = model.solver_result_
    weights = list(map(Weight, names, model.theta_.tolist()))
    record = {
        name: value
        for name, value in training.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
    facts = {
        "model": type(fitted).__name__,
        "λ (weight of the margin)": f"{model.lam:g}",
        "ω (cost of a missed item relative to a wrong one)": f"{model.omega:g}",
        "kernel": type(model.kernel_).__name__,
        "ended": result.status,
        "iterations": f"{result.n_iterations:,}",
        "objective": f"{result.objective:.5g}",
        **{name.replace("_", " "): f"{value:,}" for name, value in record.items()},
    }
    similarity, words = _similarity_facts(model)
    numbers = {
        "model": facts["model"],
        "lam": model.lam,
        "omega": model.omega,
        "omegas": list(omegas),
        "weights": {weight.name: weight.value for weight in weights},
        **model_numbers(model),
        **similarity,
        "training": record | {"status": result.status},
    }
    after = DescriptionSection("learned similarity", words=words)
    return Description(
        model, weights, [DescriptionSection("training", facts)], numbers, [after]
    )


def _similarity_facts(model: LargeMarginDPP) -> tuple[dict[str, Any], list[str]]:
    """Return facts on learned kinds and metrics, if any: for JSON, and as sentences."""
    numbers: dict[str, Any] = {}
    words = []
    for kinds in learned_parts(model, Kinds):
        block, size = kinds.kernel.block, kinds.kernel.embedding_size
        epsilon = kinds.kernel.learned_epsilon(kinds.parameters)
        facts = {"block": block, "weight": kinds.weight, "n_kinds": size}
        numbers.setdefault("kinds", []).append(facts | {"epsilon": epsilon})
        words.append(kinds_in_words(kinds, "item"))
    for metric in learned_parts(model, Metric):
        block, shares = metric.kernel.block, metric_shares(metric)
        facts = {"block": block, "weight": metric.weight, "features": shares.tolist()}
        numbers.setdefault("metrics", []).append(facts)
        largest = np.argsort(-shares, kind="stable")[:_MOST_FEATURES]
        listed = ", ".join(f"{k} ({percent(shares[k])})" for k in largest)
        of = _block_suffix(block)
        words.append(f"The metric weighs most the similarity features{of} {listed}.")
    return numbers, words


def kinds_in_words(kinds: LearnedKernel[Kinds], noun: str) -> str:
    """Return text on the number of learned kinds, and how alike two of a kind are.

    ``noun`` is that of an item, in the singular.
    """
    n_kinds = count(kinds.kernel.embedding_size, "kind")
    of = _block_suffix(kinds.kernel.block)
    epsilon = kinds.kernel.learned_epsilon(kinds.parameters)
    return f"{n_kinds}{of}. {alike_in_words(epsilon, noun)}"


def _block_suffix(block: str | None) -> str:
    """Return " of BLOCK", or "" without a block."""
    return "" if block is None else f" of {shorten_middle(block, 30)}"


def model_numbers(model: LargeMarginDPP) -> dict[str, Any]:
    """Return the intercept and the kernel as values for JSON."""
    return {
        "intercept": model.intercept_,
        "kernel": {
            "name": type(model.kernel_).__name__,
            "parts": [asdict(part) for part in kernel_parts(model)],
        },
    }


# Figures ------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Bars:
    """Horizontal bars (name, length, text beside the bar, colour) and an axis label."""

    bars: Sequence[tuple[str, float, str, str]]
    label: str

    def draw(self, axes: Axes) -> None:
        """Draw the bars on axes, the first on top."""
        names, values, numbers, colours = zip(*self.bars, strict=True)
        places = np.arange(len(names))
        bars = axes.barh(places, values, height=0.66, color=colours)
        axes.bar_label(bars, numbers, padding=4, fontsize=8)
        axes.margins(x=0.2)  # room for the numbers
        axes.axvline(0.0, color="black", linewidth=0.8)
        axes.set_yticks(places, names, parse_math=False)
        axes.tick_params(axis="y", length=0)
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.grid(visible=False, axis="y")
        axes.grid(axis="x", color="#dddddd", linewidth=0.8)
        axes.spines["left"].set_visible(False)
        axes.set_xlabel(self.label)


def model_figure(
    weights: Sequence[Weight] = (),
    intercept: float = 0.0,
    parts: Sequence[KernelPart] = (),
) -> Figure:
    """Return a figure of weights, the largest first, and below it of a kernel's parts.

    Without either, its chart is left out; at least one is needed.  At most 30 bars are
    drawn of each, and a line says how many are left out.
    """
    charts = [_weight_bars(weights, intercept)] if weights else []
    charts += [_kernel_bars(parts)] if parts else []
    longest = max(len(name) for chart in charts for name, *_ in chart.bars)
    width = WIDTH + 0.06 * max(longest - 18, 0)  # long names take no room from bars
    heights = [0.9 + 0.25 * max(len(chart.bars), 2) for chart in charts]
    figure, panels = new_figure(width, heights, panels=len(charts))
    for axes, chart in zip(panels, charts, strict=True):
        chart.draw(axes)
    return figure


def _weight_bars(weights: Sequence[Weight], intercept: float) -> _Bars:
    """Return bars for the largest weights; the axis label counts others."""
    shown, note = largest_weights(weights, _MOST)
    label = f"weight (intercept {intercept:.3g})"
    if any(weight.spread != 1.0 for weight in shown):
        label = f"weight × standard deviation (intercept {intercept:.3g})"
    if any(weight.n_features > 1 for weight in shown):
        label += "\ngreen: norm of the weights of a vector"
    bars = []
    for weight in shown:
        value, n = weight.value, weight.n_features
        name = shorten_middle(weight.name, 34) + (f" ({n} numbers)" if n > 1 else "")
        name += "" if weight.n_rows is None else f" ({count(weight.n_rows, 'row')})"
        text = f"{value:.2f}" if 0.005 <= abs(value) < 100.0 else f"{value:.2g}"
        colour = _VECTOR if n > 1 else COLOURS["lme" if value >= 0.0 else "mle"]
        bars.append((name, weight.effect, text.replace("-", "−"), colour))
    return _Bars(bars, label + (f"\n{note}" if note else ""))


def _kernel_bars(parts: Sequence[KernelPart]) -> _Bars:
    """Return bars for the largest parts of a kernel, in their given order."""
    order = sorted(range(len(parts)), key=lambda place: -parts[place].weight)
    left = len(parts) - _MOST
    note = f"\n{left} smaller ones are not shown" if left > 0 else ""
    bars = []
    for part in (parts[place] for place in sorted(order[:_MOST])):
        text = f"{part.weight:.2f}" if part.weight >= 0.005 else "0"
        colour = COLOURS["mle" if part.bandwidth is None else "lme"]
        bars.append((part.label, part.weight, text, colour))
    return _Bars(bars, f"share of the similarity{note}")
