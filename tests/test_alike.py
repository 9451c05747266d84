"""The warning that to a learned similarity nearly all items are alike."""

import warnings

import numpy as np
import pytest

import variegate as vg
from variegate.estimator import AllAlikeWarning
from variegate.learning.examples import check_examples
from variegate.solvers import MiniBatch
from variegate.tuning import OmegaFamily
from variegate.tuning.kernel_search import KernelSearch

DATA = vg.datasets.make_synthetic(n_sets=40, random_state=0)

#: As wide as in figure 1c of the paper, without a linear part.
WIDE = vg.MultipleKernel([40.0, 80.0], linear=False)


def model(kernel, **options):
    return vg.LargeMarginDPP(kernel=kernel, l2=0.1, tol=1e-3, **options)


def is_warned_of(kernel, ground_sets=DATA.ground_sets, subsets=DATA.subsets):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", AllAlikeWarning)
        model(kernel).fit(ground_sets, subsets)
    return any(issubclass(w.category, AllAlikeWarning) for w in caught)


def test_a_similarity_that_is_nearly_constant_is_warned_of():
    with pytest.warns(AllAlikeWarning) as caught:
        fitted = model(WIDE).fit(DATA.ground_sets, DATA.subsets)
    (warning,) = caught
    assert warning.filename == __file__
    text = str(warning.message)
    assert text.startswith("the learned similarity calls nearly all items alike")
    assert "whichever is chosen first stands for all" in text
    assert "how many are wanted more than their diversity" in text
    for remedy in ("Kinds()", "narrower bandwidths", "anchored=True", "centred"):
        assert remedy in text
    # It is as the text says: with a unit diagonal, the mean of the smallest entries.
    least = [
        fitted.kernel_.value(fitted.kernel_.prepare(gs), fitted.kernel_parameters_)
        for gs in DATA.ground_sets
    ]
    assert np.mean([S.min() for S in least]) > 0.98


@pytest.mark.parametrize(
    "kernel",
    [
        vg.MultipleKernel(),
        vg.MultipleKernel([40.0, 80.0], linear=False, anchored=True),
        vg.MultipleKernel([1.0, 2.0], linear=False),
        vg.Mixture([vg.Gaussian(40.0), vg.Linear()]),
    ],
    ids=["default", "anchored", "narrow", "mixture"],
)
def test_similarities_that_differ_are_not(kernel):
    assert not is_warned_of(kernel)


def all_alike(n_items):
    """Nearly the matrix of ones."""
    return np.full((n_items, n_items), 0.995) + 0.005 * np.eye(n_items)


def test_what_the_user_fixed_is_not():
    brought = [vg.GroundSet(gs.quality, all_alike(len(gs))) for gs in DATA.ground_sets]
    assert not is_warned_of(vg.Precomputed(), brought)
    assert not is_warned_of(vg.Mixture([vg.Precomputed()]), brought)
    assert is_warned_of(vg.Mixture([vg.Precomputed(), vg.Precomputed()]), brought)
    assert not is_warned_of(vg.Gaussian(40.0))


@pytest.mark.parametrize(
    ("n_items", "size", "expected"),
    [
        (1, 1, False),
        (2, 1, False),
        (2, 2, False),
        (3, 3, False),
        (9, 0, False),
        (9, 1, False),
        (3, 2, True),
        (9, 2, True),
    ],
)
def test_only_where_diversity_could_be_learned(n_items, size, expected):
    rng = np.random.default_rng(0)
    sets = [vg.GroundSet(rng.standard_normal((n_items, 2))) for _ in range(6)]
    subsets = [rng.choice(n_items, size, replace=False) for _ in sets]
    assert is_warned_of(WIDE, sets, subsets) == expected


def test_large_ground_sets_are_not_looked_at():
    rng = np.random.default_rng(0)
    kernel = WIDE.fit([])
    large, small = (vg.GroundSet(rng.standard_normal((n, 2))) for n in (1500, 5))
    examples = check_examples([large, small], [[0, 1], [0, 1]], 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        vg.estimator.alike.warn_if_all_alike(kernel, np.array([0.5, 0.5]), examples)
    with pytest.warns(AllAlikeWarning):
        vg.estimator.alike.warn_if_all_alike(
            kernel, np.array([0.5, 0.5]), examples[::-1]
        )


def test_streams_are_looked_at():
    pairs = list(zip(DATA.ground_sets, DATA.subsets, strict=True))
    with pytest.warns(AllAlikeWarning, match="nearly all items alike"):
        model(WIDE, solver=MiniBatch(batch_size=8), random_state=0).fit(pairs)


def test_of_many_fits_only_what_is_kept_is_spoken_of():
    search = vg.LargeMarginDPPCV(model(WIDE), lams=(0.0, 4.0), omegas=(1.0,), cv=2)
    with pytest.warns(AllAlikeWarning) as caught:
        search.fit(DATA.ground_sets, DATA.subsets)
    assert len([w for w in caught if w.category is AllAlikeWarning]) == 1
    with pytest.warns(AllAlikeWarning) as caught:
        OmegaFamily.fit(model(WIDE), (0.5, 2.0), DATA.ground_sets, DATA.subsets)
    assert len([w for w in caught if w.category is AllAlikeWarning]) == 1
    assert str(caught[0].message).startswith("the learned similarity")


def test_the_omegas_of_a_family_that_are_all_alike_are_named(monkeypatch):
    def only_of_two(kernel, parameters, examples):
        if next(fits) == 1:
            warnings.warn("all alike", AllAlikeWarning, stacklevel=2)

    fits = iter(range(3))
    monkeypatch.setattr(
        "variegate.estimator.large_margin.warn_if_all_alike", only_of_two
    )
    with pytest.warns(AllAlikeWarning, match=r"^for omega 0\.25, all alike$"):
        OmegaFamily.fit(model(WIDE), (0.25, 1.0, 4.0), DATA.ground_sets, DATA.subsets)


def contenders(**kernels):
    """Return a comparison on the synthetic data, whose linear kernel is the truth."""
    estimator = model(None, lam=1.0, max_iter=30)
    return KernelSearch(estimator, kernels, vg.Linear(), varies=(), tries_sizes=False)


def test_a_comparison_does_not_speak_of_those_that_lose():
    with warnings.catch_warnings():
        warnings.simplefilter("error", AllAlikeWarning)
        winner = contenders(wide=WIDE, linear=vg.MultipleKernel([1.0, 2.0])).run(
            DATA.ground_sets, DATA.subsets
        )
        assert winner.contender.name == "linear"
        winner.contender.learn(1.0, DATA.ground_sets, DATA.subsets)
    assert any(standing.name == "wide" for standing in winner.standings)


def test_a_comparison_leaves_the_warning_to_the_fit_of_the_winner():
    with warnings.catch_warnings():
        warnings.simplefilter("error", AllAlikeWarning)
        winner = contenders(wide=WIDE).run(DATA.ground_sets, DATA.subsets)
    with pytest.warns(AllAlikeWarning) as caught:
        winner.contender.learn(1.0, DATA.ground_sets, DATA.subsets)
    assert len([w for w in caught if w.category is AllAlikeWarning]) == 1
