"""``variegate describe``: what a model file holds."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from variegate.cli.paths import MODEL, OUTPUT, output, refuse_to_replace
from variegate.cli.table_options import FORCE, refuse_existing

if TYPE_CHECKING:
    from variegate.application.description.parts import Weight
    from variegate.estimator import LargeMarginDPP


@click.command(epilog="\b\nvariegate describe model.json --png weights.png")
@click.argument("model", type=MODEL)
@click.option(
    "--png", callback=output, type=OUTPUT, metavar="FILE",
    help="Draw the weights and the coefficients of the kernel.",
)  # fmt: skip
@FORCE
@click.option("--json", "as_json", is_flag=True, help="JSON instead of text.")
def describe(model: Path, png: Path | None, force: bool, as_json: bool) -> None:
    """Say what a model was learned from, and what it learned.

    MODEL is a file that a fit command or model.save wrote, for tables, documents,
    videos or any ground sets.
    """
    from variegate.persistence import load

    refuse_existing(force, png)
    if png is not None:
        refuse_to_replace(png, "--png", [model])
    loaded = load(model)
    if _is_about_tables(loaded):
        from variegate.tables.report import as_json as plain
        from variegate.tables.report import text
        from variegate.tables.report.facts import weights

        shown, inner = weights(loaded), loaded.model_
        words, numbers = text(loaded), plain(loaded)
    else:
        shown, inner = _weights(loaded)
        words, numbers = _text(loaded, inner, shown), _plain(loaded, inner, shown)
    click.echo(json.dumps(numbers, indent=1, ensure_ascii=False) if as_json else words)
    if png is not None:
        from variegate._files import write_atomic
        from variegate.application.description.figures import model_figure
        from variegate.application.description.parts import kernel_parts
        from variegate.report.figures import to_png

        figure = model_figure(shown, inner.intercept_, kernel_parts(inner))
        write_atomic(png, to_png(figure))
        click.echo(f"written: {png}", err=True)


def _is_about_tables(model: Any) -> bool:
    # Without loading what only tables need.
    return type(model).__module__.startswith("variegate.tables.")


def _weights(model: Any) -> tuple[list[Weight], LargeMarginDPP]:
    """Return the weights of a model by name, and the model that they are of."""
    from variegate.application.description.parts import named_weights
    from variegate.estimator import LargeMarginDPP
    from variegate.tuning.omega import model_at, resolve_omega

    if isinstance(model, LargeMarginDPP):
        names = [f"feature {number}" for number in range(len(model.theta_))]
        return named_weights(names, model), model
    inner = model_at(model.omegas_, model.models_, resolve_omega(model.omegas_, None))
    return named_weights(model.feature_names_, inner), inner


def _text(model: Any, inner: LargeMarginDPP, shown: list[Weight]) -> str:
    from variegate.application.description.parts import kernel_parts
    from variegate.application.description.terminal import (
        aligned,
        kernel_lines,
        weight_lines,
    )

    facts = {
        "model": type(model).__name__,
        "λ (weight of the margin)": f"{inner.lam:g}",
        "ω (a missed item against a wrong one)": f"{inner.omega:g}",
        "kernel": type(inner.kernel_).__name__,
        "ended": inner.solver_result_.status,
        "iterations": f"{inner.solver_result_.n_iterations:,}",
        "objective": f"{inner.solver_result_.objective:.5g}",
    }
    for name, value in _record(model).items():
        facts[name.replace("_", " ")] = f"{value:,}"
    parts = [
        ["training", *aligned(facts.items())],
        weight_lines(shown, inner.intercept_),
        kernel_lines(kernel_parts(inner)),
    ]
    return "\n\n".join("\n".join(part) for part in parts if part)


def _record(model: Any) -> dict[str, int | float]:
    """Return the numbers of a training record."""
    record = getattr(model, "training_", {})
    return {
        name: value
        for name, value in record.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }


def _plain(model: Any, inner: LargeMarginDPP, shown: list[Weight]) -> dict[str, Any]:
    from variegate.application.description.parts import kernel_parts

    return {
        "model": type(model).__name__,
        "lam": inner.lam,
        "omega": inner.omega,
        "omegas": list(getattr(model, "omegas_", [inner.omega])),
        "weights": {weight.name: weight.value for weight in shown},
        "intercept": inner.intercept_,
        "kernel": {
            "name": type(inner.kernel_).__name__,
            "parts": [asdict(part) for part in kernel_parts(inner)],
        },
        "training": _record(model) | {"status": inner.solver_result_.status},
    }
