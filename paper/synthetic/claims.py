"""What the paper says, what was measured, and whether it holds.

A difference "holds" when it is above zero by more than two of its standard errors over
draws; two methods "match" when they differ by at most 0.01 or two standard errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from scipy.stats import t as student_t

from paper.experiment import Claim, Results
from paper.figures import NAMES
from paper.synthetic.settings import Settings
from paper.synthetic.summary import paired, row_of

_CLOSE = 0.02
_MATCH = 0.01
_NO_WORSE = 0.005
_PERFECT = 0.95


def number(value: dict[str, float]) -> str:
    """Format a mean with its standard error."""
    return f"{value['mean']:.3f} ± {value['se']:.3f}"


def signed(value: dict[str, float]) -> str:
    """Format a difference with its standard error."""
    return f"{value['mean']:+.3f} ± {value['se']:.3f}"


def _above_zero(value: dict[str, float]) -> bool:
    return value["mean"] > 2.0 * value["se"]


def _matches(gap: dict[str, float]) -> bool:
    return gap["mean"] >= -max(_MATCH, 2.0 * gap["se"])


def interval(value: dict[str, float], n_draws: int) -> tuple[float, float]:
    """Return the 95% interval of a mean over draws, by Student's t."""
    half = float(student_t.ppf(0.975, n_draws - 1)) * value["se"]
    return value["mean"] - half, value["mean"] + half


def _yes(condition: bool) -> str:
    return "yes" if condition else "no"


def claims(settings: Settings, results: Results) -> list[Claim]:
    """Return every claim of section 4.1, in the paper's order."""
    figures = _Figures(settings, results)
    return [
        _margin_beats_likelihood(figures),
        _close_to_the_oracle(figures),
        _robust_to_a_wrong_similarity(figures),
        _kernels_overcome_it(figures),
        _matches_the_true_similarity(figures, "mle"),
        _matches_the_true_similarity(figures, "lme"),
        _still_beats_likelihood(figures),
        _perfect_without_noise(figures),
    ]


@dataclass(frozen=True)
class _Figures:
    """The results, by figure, value of its axis, and method."""

    settings: Settings
    results: Results

    @property
    def n(self) -> int:
        return self.settings.bandwidth_train_size

    def row(self, figure: str, value: Any, method: str) -> Any:
        return row_of(self.results, figure, value, method)

    def margin(self, figure: str, value: Any) -> dict[str, float]:
        """Return large margin less maximum likelihood, paired."""
        return paired(self.row(figure, value, "lme"), self.row(figure, value, "mle"))

    def against(self, figure: str, value: Any) -> str:
        """Return the scores of both learners, and their difference."""
        scores = (number(self.row(figure, value, m)["f"]) for m in ("lme", "mle"))
        difference = signed(self.margin(figure, value))
        return f"{' against '.join(scores)}, difference {difference}"

    def best_bandwidth(self, figure: str) -> Any:
        rows = [self.row(figure, s, "lme") for s in self.settings.bandwidths]
        return max(rows, key=lambda row: float(row["f"]["mean"]))


def _margin_beats_likelihood(figures: _Figures) -> Claim:
    return Claim(
        "1a: learning θ with the true S, large margin significantly outperforms "
        "maximum likelihood",
        f"n={figures.n}: {figures.against('fig1a', figures.n)}",
        _yes(_above_zero(figures.margin("fig1a", figures.n))),
    )


def _close_to_the_oracle(figures: _Figures) -> Claim:
    short = {
        n: paired(figures.row("fig1a", n, "oracle"), figures.row("fig1a", n, "lme"))
        for n in sorted({figures.n, max(figures.settings.train_sizes)})
    }
    measured = ", ".join(f"{signed(by)} at n={n}" for n, by in short.items())
    return Claim(
        "1a: with more training data it gets very close to the oracle",
        f"oracle - large margin: {measured}",
        _yes(short[max(short)]["mean"] <= _CLOSE),
    )


def _robust_to_a_wrong_similarity(figures: _Figures) -> Claim:
    sigma = max(figures.settings.bandwidths)
    gain = figures.margin("fig1b", sigma)
    repaired = figures.margin("fig1b_intercept", sigma)
    return Claim(
        "1b: under a wrong S maximum likelihood quickly deteriorates, large margin is "
        "fairly robust",
        f"σ={sigma:g}: {figures.against('fig1b', sigma)}; with an intercept "
        f"{figures.against('fig1b_intercept', sigma)}",
        "no"
        if not _above_zero(gain)
        else "yes, but an intercept removes nearly all of it"
        if repaired["mean"] < 0.2 * gain["mean"]
        else "yes",
    )


def _kernels_overcome_it(figures: _Figures) -> Claim:
    n = figures.n
    single = figures.best_bandwidth("fig1b")
    single_intercept = figures.best_bandwidth("fig1b_intercept")
    extended = paired(figures.row("fig1c", n, "lme"), single)
    plain = paired(figures.row("fig1c_no_intercept", n, "lme"), single)
    alike = paired(figures.row("fig1c", n, "lme"), single_intercept)
    return Claim(
        "1c: multiple kernels overcome the wrong S",
        f"n={n}: against the best single bandwidth of 1b (σ={single['sigma']:g}, "
        f"{number(single['f'])}) {signed(extended)} with an intercept, "
        f"{signed(plain)} without; against the best with an intercept itself "
        f"(σ={single_intercept['sigma']:g}, {number(single_intercept['f'])}) "
        f"{signed(alike)}",
        "no"
        if extended["mean"] < -_NO_WORSE
        else "yes"
        if plain["mean"] >= -_NO_WORSE
        else "yes, but only with an intercept",
    )


def _matches_the_true_similarity(figures: _Figures, method: str) -> Claim:
    n = figures.n
    truth = figures.row("fig1a", n, method)
    extended, plain, anchored = (
        paired(figures.row(figure, n, method), truth)
        for figure in ("fig1c", "fig1c_no_intercept", "fig1c_anchored")
    )
    low, high = interval(anchored, figures.settings.n_draws)
    return Claim(
        f"1c: {NAMES[method]} matches its result with the true S",
        f"n={n}: {signed(extended)} with an intercept, {signed(plain)} without; "
        f"{signed(anchored)} (95% interval {low:+.3f} to {high:+.3f}) with Gaussians "
        "anchored at the origin",
        "yes"
        if _matches(extended) or _matches(plain)
        else "yes, but only with anchored Gaussians"
        if _matches(anchored)
        else "no",
    )


def _still_beats_likelihood(figures: _Figures) -> Claim:
    n = figures.n
    gain = figures.margin("fig1c", n)
    plain = figures.margin("fig1c_no_intercept", n)
    return Claim(
        "1c: large margin still outperforms maximum likelihood significantly",
        f"n={n}: {signed(gain)} with an intercept, {signed(plain)} without",
        _yes(_above_zero(gain) or _above_zero(plain)),
    )


def _perfect_without_noise(figures: _Figures) -> Claim:
    n = max(figures.settings.train_sizes)
    margin, likelihood = (figures.row("clean", n, method) for method in ("lme", "mle"))
    cosine = likelihood["theta_cosine"]["mean"]
    if min(margin["f"]["mean"], likelihood["f"]["mean"]) >= _PERFECT:
        holds = "yes"
    else:
        holds = "in direction, not in F" if cosine >= 0.99 else "no"
    return Claim(
        "without noise both methods are nearly perfect",
        f"n={n}: large margin {number(margin['f'])}, maximum likelihood "
        f"{number(likelihood['f'])}; maximum likelihood finds the direction of θ "
        f"(cosine {cosine:.4f}) but makes it "
        f"{likelihood['theta_length']['mean']:.2f} times as long",
        holds,
    )
