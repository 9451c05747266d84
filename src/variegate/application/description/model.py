"""What a fitted model was learned from and what it learned, for people and programs."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from variegate.application.description.figures import model_figure
from variegate.application.description.learned import (
    kinds_in_words,
    learned_kinds,
    learned_metrics,
)
from variegate.application.description.parts import Weight, kernel_parts, named_weights
from variegate.application.description.terminal import kernel_lines, weight_lines
from variegate.estimator import DPPEstimator, LargeMarginDPP
from variegate.report.terminal import columns
from variegate.report.words import percent, shortened

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Description", "Section", "describe", "described", "model_numbers"]

#: Features of a metric that are listed.
_MOST_FEATURES = 8


@dataclass(frozen=True)
class Section:
    """Rows of a table and then lines, under a title; nothing where it has neither."""

    title: str
    rows: Sequence[Sequence[str]] = ()
    lines: Sequence[str] = ()

    def __str__(self) -> str:
        parts = [
            columns(self.rows, indent=2),
            textwrap.indent("\n".join(self.lines), "  "),
        ]
        return "\n".join([self.title, *filter(None, parts)]) if any(parts) else ""


@dataclass(frozen=True, eq=False)
class Description:
    """What there is to say about a model: ``print`` shows it.

    The weights are those of ``model``; what is ``before`` and ``after`` is said above
    and below them.  ``numbers`` are the same for programs, as plain values.
    """

    model: LargeMarginDPP
    weights: Sequence[Weight]
    before: Sequence[Section]
    numbers: Mapping[str, Any]
    after: Sequence[Section] = ()

    def __str__(self) -> str:
        parts = [
            *map(str, self.before),
            weight_lines(self.weights, self.model.intercept_),
            kernel_lines(kernel_parts(self.model)),
            *map(str, self.after),
        ]
        return "\n\n".join(part for part in parts if part)

    def figure(self) -> Figure:
        """Draw the weights and, below them, the coefficients of the kernel if any."""
        intercept = self.model.intercept_
        return model_figure(self.weights, intercept, kernel_parts(self.model))


def describe(model: Any) -> Description:
    """Return what there is to say about any fitted model, an application's or not."""
    if isinstance(model, DPPEstimator) and not isinstance(model, LargeMarginDPP):
        raise ValueError(
            f"a {type(model).__name__} has no weights of features to describe: its "
            "networks are network_, and how learning went is history_"
        )
    if not isinstance(model, LargeMarginDPP):
        description: Description = model.describe()
        return description
    names = [f"feature {number}" for number in range(len(model.theta_))]
    return described(model, model, names, [model.omega], {})


def described(
    fitted: Any,
    model: LargeMarginDPP,
    names: Sequence[str],
    omegas: Sequence[float],
    training: Mapping[str, Any],
) -> Description:
    """Return what there is to say of ``fitted``, whose parameters ``model`` has."""
    result = model.solver_result_
    weights = named_weights(names, model)
    record = {
        name: value
        for name, value in training.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
    facts = {
        "model": type(fitted).__name__,
        "λ (weight of the margin)": f"{model.lam:g}",
        "ω (a missed item against a wrong one)": f"{model.omega:g}",
        "kernel": type(model.kernel_).__name__,
        "ended": result.status,
        "iterations": f"{result.n_iterations:,}",
        "objective": f"{result.objective:.5g}",
        **{name.replace("_", " "): f"{value:,}" for name, value in record.items()},
    }
    numbers = {
        "model": facts["model"],
        "lam": model.lam,
        "omega": model.omega,
        "omegas": list(omegas),
        "weights": {weight.name: weight.value for weight in weights},
        **model_numbers(model),
        **_similarity_numbers(model),
        "training": record | {"status": result.status},
    }
    before = [Section("training", [*facts.items()])]
    return Description(model, weights, before, numbers, [_similarity(model)])


def _similarity(model: LargeMarginDPP) -> Section:
    """Return what there is to say about learned kernels without data to look at."""
    lines = []
    for kinds in learned_kinds(model):
        lines += textwrap.wrap(kinds_in_words(kinds, "item"), 86)
    for metric in learned_metrics(model):
        shares = metric.feature_shares
        largest = np.argsort(-shares, kind="stable")[:_MOST_FEATURES]
        listed = ", ".join(f"{k} ({percent(shares[k])})" for k in largest)
        block = metric.kernel.block
        of = "" if block is None else f" of {shortened(block, 30)}"
        words = f"The metric goes most by the similarity features{of} {listed}."
        lines += textwrap.wrap(words, 86)
    return Section("what the model takes for the same", lines=lines)


def _similarity_numbers(model: LargeMarginDPP) -> dict[str, Any]:
    kinds = [
        {
            "block": one.kernel.block,
            "weight": one.weight,
            "n_kinds": one.kernel.embedding_size,
            "apart": one.apart,
        }
        for one in learned_kinds(model)
    ]
    metrics = [
        {
            "block": one.kernel.block,
            "weight": one.weight,
            "features": one.feature_shares.tolist(),
        }
        for one in learned_metrics(model)
    ]
    found = {"kinds": kinds, "metrics": metrics}
    return {name: several for name, several in found.items() if several}


def model_numbers(model: LargeMarginDPP) -> dict[str, Any]:
    """Return the intercept and the kernel, for programs."""
    return {
        "intercept": model.intercept_,
        "kernel": {
            "name": type(model.kernel_).__name__,
            "parts": [asdict(part) for part in kernel_parts(model)],
        },
    }
