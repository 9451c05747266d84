"""Held-out precision and recall by omega."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from variegate._typing import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: The score that moves against the named one: a larger omega raises recall and lowers
#: precision.
_OTHER = {"recall": "precision", "precision": "recall"}

#: The colour of the chosen point and the target (Okabe and Ito's green).
_CHOSEN = "#008060"


class PathPoint(NamedTuple):
    """Held-out scores at one omega; ``*_error`` are standard errors.

    Attributes
    ----------
    omega : float
    precision, recall, f : float
        Means over the held-out ground sets.
    size : float
        Mean number of chosen items.
    precision_error, recall_error, f_error, size_error : float
        Standard errors of these means, over ground sets (over groups, if there are).
    """

    omega: float
    precision: float
    recall: float
    f: float
    size: float
    precision_error: float
    recall_error: float
    f_error: float
    size_error: float


class Crossing(NamedTuple):
    """Where a path passes a wanted score, by linear interpolation in ``log(omega)``.

    ``low`` and ``high`` are the omegas of the points on either side, both equal to
    ``omega`` where a point is close enough itself.  ``other`` is recall where a
    precision is wanted, and the reverse, interpolated alike.
    """

    omega: float
    low: float
    high: float
    other: float


def _column_property(name: str, words: str) -> Any:
    """Return a property: field ``name`` of a path's points, described by ``words``."""
    return property(lambda path: path._column(name), doc=words)


@dataclass(frozen=True, eq=False)
class OmegaPath:
    """Held-out scores from small to large omega, for one lambda.

    ``str(path)`` is a table, ``path.plot()`` a picture, ``path.recall`` and the like
    are arrays, and ``path[0]``, ``len(path)`` and ``for point in path`` work too.

    Attributes
    ----------
    lam : float
    points : tuple of PathPoint
        Sorted by omega.
    chosen : float or None
        The omega that was chosen.
    target : pair of a name and a number, or None
        The score to reach, such as ``("recall", 0.85)``.
    nouns : pair of str
        Names of an item and of a ground set, in tables and pictures.
    """

    lam: float
    points: tuple[PathPoint, ...]
    chosen: float | None = None
    target: tuple[str, float] | None = None
    nouns: tuple[str, str] = ("item", "ground set")

    def __len__(self) -> int:
        return len(self.points)

    def __iter__(self) -> Iterator[PathPoint]:
        return iter(self.points)

    def __getitem__(self, position: int) -> PathPoint:
        return self.points[position]

    omega = _column_property("omega", "The omegas, from small to large.")
    precision = _column_property("precision", "Mean precision at each omega.")
    recall = _column_property("recall", "Mean recall at each omega.")
    f = _column_property("f", "Mean F-score at each omega.")
    size = _column_property("size", "Mean number of chosen items at each omega.")

    def _column(self, name: str) -> FloatArray:
        """Return the field ``name`` of every point as an array (points,)."""
        return np.array([getattr(point, name) for point in self.points])

    def crossings(self, name: str, value: float, tolerance: float) -> list[Crossing]:
        """Return where the score ``name`` ("precision" or "recall") passes ``value``.

        Noise may make it pass more than once.  Points within ``tolerance`` of ``value``
        come first, then interpolated crossings; each are sorted by omega.  The list is
        empty if all points are on one side.
        """
        excess = self._column(name) - value
        omega, other = self.omega.tolist(), self._column(_OTHER[name]).tolist()
        found = [
            Crossing(omega[k], omega[k], omega[k], other[k])
            for k in np.flatnonzero(np.abs(excess) <= tolerance)
        ]
        for k in np.flatnonzero(excess[:-1] * excess[1:] < 0.0):
            share = float(excess[k] / (excess[k] - excess[k + 1]))
            between = omega[k] ** (1.0 - share) * omega[k + 1] ** share
            mixed = (1.0 - share) * other[k] + share * other[k + 1]
            found.append(Crossing(between, omega[k], omega[k + 1], mixed))
        return found

    def __str__(self) -> str:
        """Return a table, one line for each omega; an arrow marks the chosen one."""
        lines = [
            f"held-out scores at lambda = {self.lam:g} (± standard error)",
            f"{'omega':>10}  {'precision':<13}  {'recall':<13}  {'F':<13}  "
            f"{self.nouns[0]}s",
        ]
        for point in self.points:
            # Precision, recall and F, each four places before its error.
            pairs = zip(point[1:4], point[5:8], strict=True)
            scores = "  ".join(f"{mean:.3f} ± {error:.3f}" for mean, error in pairs)
            mark = "  <- chosen" if point.omega == self.chosen else ""
            omega = format_omega(point.omega)
            lines.append(f"{omega:>10}  {scores}  {point.size:5.2f}{mark}")
        return "\n".join(lines)

    def plot(self, others: Mapping[float, OmegaPath] | None = None) -> Figure:
        """Draw precision against recall, and both against omega.

        Parameters
        ----------
        others : mapping from lambda to OmegaPath, optional
            Paths to draw in grey behind this one, such as ``model.paths_``.

        Returns
        -------
        matplotlib.figure.Figure
            ``figure.savefig("path.png")`` keeps it.
        """
        # matplotlib is loaded only when something is drawn.
        from variegate.report.figures import new_figure

        figure, (left, right) = new_figure(width=9.4, height=4.0, panels=2)
        draw_curve(left, self, list((others or {}).values()))
        draw_against_omega(right, self)
        return figure


def format_omega(omega: float) -> str:
    """Return omega as text: a power of two below one as 1/4, others to 3 digits."""
    inverse = 1.0 / omega
    if omega < 1.0 and inverse <= 4096 and inverse == round(inverse):
        return f"1/{inverse:.0f}"
    return f"{omega:.3g}"


def draw_curve(axes: Axes, path: OmegaPath, others: Sequence[OmegaPath] = ()) -> None:
    """Draw precision over recall with errors; ``others`` lie in grey behind it."""
    from variegate.report.figures import COLOURS

    colour = COLOURS["lme"]
    grey: dict[str, Any] = {"color": "#b8b8b8", "lw": 1.2, "ms": 5, "zorder": 1}
    for other in others:
        if other.lam != path.lam:
            axes.plot(other.recall, other.precision, ".-", **grey)
            start = int(np.argmin(other.recall))
            axes.annotate(
                f"λ = {other.lam:g}",
                (other.recall[start], other.precision[start]),
                xytext=(-5, -3),
                textcoords="offset points",
                ha="right",
                fontsize=8,
                color="#888888",
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
                zorder=2.5,
            )
    axes.errorbar(
        path.recall,
        path.precision,
        xerr=path._column("recall_error"),
        yerr=path._column("precision_error"),
        fmt="o-",
        color=colour,
        ecolor="#9ccbe6",
        elinewidth=1.0,
        ms=5,
        zorder=3,
    )
    _label_points(axes, path)
    _mark_target(axes, path, along="recall")
    chosen = [(p.recall, p.precision) for p in path if p.omega == path.chosen]
    for place in chosen:
        axes.plot(*place, "o", ms=11, mfc="none", mec=_CHOSEN, mew=2.0, zorder=4)
    axes.grid(axis="both", color="#dddddd", linewidth=0.8)
    axes.set(xlabel="recall", ylabel="precision")
    axes.set_title(f"λ = {path.lam:g}, held-out data", fontsize=10)
    # Room for the names on the right.
    low, high = axes.get_xlim()
    axes.set_xlim(low, high + 0.16 * (high - low))


def _label_points(axes: Axes, path: OmegaPath) -> None:
    """Write omega beside the points, except where labels would overlap."""
    spans = [max(float(np.ptp(v)), 1e-9) for v in (path.recall, path.precision)]
    named: list[FloatArray] = []
    # The chosen point first: the others make room for it.
    order = sorted(path, key=lambda point: point.omega != path.chosen)
    for point in order:
        place = np.array([point.recall / spans[0], point.precision / spans[1]])
        # A name is about a third of the picture wide and a twentieth high.
        if any((np.abs(place - near) < [0.34, 0.06]).all() for near in named):
            continue
        named.append(place)
        is_chosen = point.omega == path.chosen
        axes.annotate(
            ("chosen: " if is_chosen else "") + f"ω = {format_omega(point.omega)}",
            (point.recall, point.precision),
            xytext=(8, 5),
            textcoords="offset points",
            fontsize=8,
            color=_CHOSEN if is_chosen else "#333333",
            zorder=5,
        )


def _mark_target(axes: Axes, path: OmegaPath, along: str | None) -> None:
    """Draw the target, if any; vertical if its score is ``along`` the x axis."""
    if path.target is None:
        return
    name, value = path.target
    line = axes.axvline if name == along else axes.axhline
    line(value, color=_CHOSEN, lw=1.0, ls="--", zorder=2)


def draw_against_omega(axes: Axes, path: OmegaPath) -> None:
    """Draw precision, recall and F with error bars over omega, on a log axis."""
    from variegate.report.figures import COLOURS

    looks = {
        "precision": ("s", COLOURS["mle"]),
        "recall": ("o", COLOURS["lme"]),
        "f": ("^", COLOURS["oracle"]),
    }
    for name, (marker, colour) in looks.items():
        axes.errorbar(
            path.omega,
            path._column(name),
            yerr=path._column(f"{name}_error"),
            fmt=f"{marker}-",
            color=colour,
            ms=5,
            capsize=2.5,
            label="F" if name == "f" else name,
        )
    _mark_target(axes, path, along=None)
    if path.chosen is not None:
        axes.axvline(path.chosen, color=_CHOSEN, lw=1.0, ls="--", zorder=2)
    axes.set_xscale("log", base=2)
    powers = np.round(np.log2(path.omega[[0, -1]])).astype(int)
    step = 2 if powers[1] - powers[0] > 6 else 1
    ticks = 2.0 ** np.arange(powers[0], powers[1] + 1, step)
    axes.set_xticks(ticks, [format_omega(tick) for tick in ticks])
    axes.minorticks_off()
    axes.set_ylabel(f"mean over held-out {path.nouns[1]}s")
    axes.set_xlabel(f"ω: what a missed {path.nouns[0]} costs against a wrong one")
    axes.legend(frameon=False, fontsize=9, ncols=3, loc="lower center",
                bbox_to_anchor=(0.5, 1.0))  # fmt: skip
