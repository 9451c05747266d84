"""What a fitted model was learned from and what it learned, for people and programs."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from variegate.application.description.figures import model_figure
from variegate.application.description.parts import Weight, kernel_parts, named_weights
from variegate.application.description.terminal import kernel_lines, weight_lines
from variegate.estimator import LargeMarginDPP
from variegate.report.terminal import columns

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Description", "Section", "describe", "described", "model_numbers"]


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
        "training": record | {"status": result.status},
    }
    return Description(model, weights, [Section("training", [*facts.items()])], numbers)


def model_numbers(model: LargeMarginDPP) -> dict[str, Any]:
    """Return the intercept and the kernel, for programs."""
    return {
        "intercept": model.intercept_,
        "kernel": {
            "name": type(model.kernel_).__name__,
            "parts": [asdict(part) for part in kernel_parts(model)],
        },
    }
