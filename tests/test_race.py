"""Ways to choose in a race, and the search for a kernel that is made of races."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

import variegate as vg
from variegate.baselines.learned import ORDERINGS, Ordering, embeddings_of
from variegate.decoding.residuals import rank_members
from variegate.learning.problem import SharedExamples
from variegate.tuning.boosting import boosted_fold
from variegate.tuning.kernel_search import Familiarity, KernelSearch
from variegate.tuning.race import LearnedDPP, Race, Rule, TwoStage


def examples(n_sets, seed=0, n_items=12, d=3):
    rng = np.random.default_rng(seed)
    sets = [
        vg.GroundSet(
            rng.standard_normal((n_items, 2)), rng.standard_normal((n_items, d))
        )
        for _ in range(n_sets)
    ]
    return sets, [np.argsort(-one.quality[:, 0])[:4] for one in sets]


def editor(n_sets, seed=0, kinds=range(5), d=10, n_all=10):
    """Return ground sets of a few kinds; the best of each kind is wanted."""
    centres = 2.0 * np.random.default_rng(1).standard_normal((n_all, d))
    rng = np.random.default_rng(seed)
    sets, subsets = [], []
    for _ in range(n_sets):
        kind = rng.choice(list(kinds), 14)
        quality = rng.standard_normal((14, 1))
        vectors = centres[kind] + 0.7 * rng.standard_normal((14, d))
        sets.append(vg.GroundSet(quality, vectors))
        of = [np.flatnonzero(kind == one) for one in np.unique(kind)]
        subsets.append(np.sort([one[np.argmax(quality[one, 0])] for one in of]))
    return sets, subsets


# The race ---------------------------------------------------------------------------


@dataclass
class Runner:
    """A contender whose scores are known, drawn anew for every ground set."""

    name: str
    means: dict
    seen: list = field(default_factory=list)
    seed: int = 0
    rules: list = ()

    def fit(self, examples, part):
        self.seen.append((part, len(examples)))
        return self

    def scores(self, fitted, ground_sets, wanted):
        rng = np.random.default_rng([self.seed, len(self.seen)])
        noise = 0.05 * rng.standard_normal(len(ground_sets))
        return {rule: mean + noise for rule, mean in self.means.items()}


GREEDY, EXPECTED = Rule("greedy"), Rule("expected-f")


def test_the_best_wins_and_who_is_clearly_behind_drops_out():
    good = Runner("good", {GREEDY: 0.8})
    bad = Runner("bad", {GREEDY: 0.5})
    standings = Race(*examples(31)).run([bad, good])
    assert [one.name for one in standings] == ["good", "bad"]
    assert [len(one.fitted) for one in standings] == [3, 1]
    assert [part for part, _ in good.seen] == [0, 1, 2]
    # Every ground set is held out once.
    assert sum(31 - learned for _, learned in good.seen) == 31
    assert len(standings[0].scores) == 31
    assert standings[0].behind == 0.0
    # The same noise in both, so that the difference is that of the means.
    assert standings[1].behind == pytest.approx(0.3)
    assert len(standings[1].scores) == len(Race(*examples(31)).parts[0].held_out)


def test_parts_depend_on_the_seed_and_hold_out_each_set_once():
    one, other = (Race(*examples(10), seed=seed) for seed in (0, 1))
    for race in (one, other):
        held_out = np.concatenate([part.held_out for part in race.parts])
        assert sorted(held_out.tolist()) == list(range(10))
        for part in race.parts:
            assert not set(part.learned.tolist()) & set(part.held_out.tolist())
    assert [p.held_out.tolist() for p in one.parts] != [
        p.held_out.tolist() for p in other.parts
    ]
    assert len(Race(*examples(2)).parts) == 2
    with pytest.raises(ValueError, match="needs two ground sets at least, got 1"):
        Race(*examples(1))


def test_no_more_go_on_than_may_and_who_is_kept():
    runners = [Runner(str(i), {GREEDY: 0.8 + 0.01 * i}, seed=i) for i in range(5)]
    standings = Race(*examples(30)).run(runners, most=2, keep=["0"])
    assert sorted(len(one.fitted) for one in standings) == [1, 1, 3, 3, 3]
    assert next(len(one.fitted) for one in standings if one.name == "0") == 3


def test_of_rules_as_good_the_first_is_taken():
    class Two(Runner):
        def scores(self, fitted, ground_sets, wanted):
            rng = np.random.default_rng(7)
            base = rng.uniform(size=len(ground_sets))
            apart = rng.standard_normal(len(ground_sets))
            return {GREEDY: base, EXPECTED: base + self.means["gain"] + 0.2 * apart}

    level = Race(*examples(60)).run([Two("level", {"gain": 0.0})])[0]
    better = Race(*examples(60)).run([Two("better", {"gain": 0.3})])[0]
    assert level.rule == GREEDY
    assert better.rule == EXPECTED


def test_progress_counts_fits_and_ends_at_all_of_them():
    told = []
    race = Race(*examples(30), progress=lambda *step: told.append(step))
    race.run([Runner("a", {GREEDY: 0.9}), Runner("b", {GREEDY: 0.1})])
    assert [done for _, done, _ in told] == [1, 2, 3, 4]
    assert told[0] == ("comparing", 1, 6)
    assert told[-1] == ("comparing", 4, 4)


# Who runs ---------------------------------------------------------------------------


def two_stage_rules(largest):
    return [Rule(one, k) for one in ORDERINGS for k in range(1, largest + 1)]


def test_scores_of_a_learned_model_are_those_of_its_choices():
    sets, subsets = examples(20)
    model = vg.LargeMarginDPP(kernel=vg.Linear(), max_iter=20, random_state=0)
    sizes = [Rule("greedy", k) for k in range(1, 15)]
    way = LearnedDPP("linear", model, [GREEDY, EXPECTED, *sizes])
    fitted = way.fit(SharedExamples(sets[:15], subsets[:15]), 0)
    found = way.scores(fitted, sets[15:], subsets[15:])
    assert list(found)[:3] == [GREEDY, EXPECTED, Rule("greedy", 1)]
    for place, (ground_set, wanted) in enumerate(
        zip(sets[15:], subsets[15:], strict=True)
    ):
        ensemble = fitted.ensemble(ground_set)
        for rule, scores in found.items():
            k = None if rule.k is None else min(rule.k, 12)  # of 12 items
            if rule.k is None:
                chosen = ensemble.decode(rule.how, k).indices
            else:
                chosen = rank_members(ensemble, np.arange(12), k)
            assert scores[place] == pytest.approx(vg.metrics.f_score(chosen, wanted))


def test_two_stages_are_those_of_scikit_learn_and_select():
    sets, subsets = examples(20)
    way = TwoStage(
        vg.LargeMarginDPP(kernel=vg.Linear(normalize=True)), two_stage_rules(5)
    )
    fitted = way.fit(SharedExamples(sets[:15], subsets[:15]), 0)
    found = way.scores(fitted, sets[15:], subsets[15:])
    X = np.concatenate([one.quality for one in sets[:15]])
    y = np.concatenate([np.isin(np.arange(12), w) for w in subsets[:15]])
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    plain = LogisticRegression(max_iter=1000).fit(scaled, y)
    for place, (one, wanted) in enumerate(zip(sets[15:], subsets[15:], strict=True)):
        relevance = plain.decision_function(
            (one.quality - X.mean(axis=0)) / X.std(axis=0)
        )
        for method, diversity, k in (
            ("mmr", 0.25, 3),
            ("dpp", 0.75, 4),
            ("top", 0.5, 5),
        ):
            chosen = vg.select(
                embeddings_of(one), relevance, k, method, diversity=diversity
            )
            rule = Rule(Ordering(method, diversity), k)
            expected = vg.metrics.f_score(chosen, wanted)
            assert found[rule][place] == pytest.approx(expected)


def test_a_model_from_a_regression_has_its_direction():
    sets, subsets = examples(30, seed=3)
    model = vg.LargeMarginDPP(kernel=vg.Linear(normalize=True), random_state=0)
    way = TwoStage(model, two_stage_rules(5))
    direction = way.fit(SharedExamples(sets, subsets), 0)
    models = [way.learn(omega, sets, subsets) for omega in (0.5, 2.0)]
    for model in models:
        cosine = model.theta_ @ direction / np.linalg.norm(model.theta_)
        assert cosine == pytest.approx(np.linalg.norm(direction))
        assert model.n_features_in_ == 2
        model.predict(sets[:2])
    assert models[0].theta_[0] != models[1].theta_[0]


def test_a_regression_on_one_answer_says_nothing():
    sets, _ = examples(4)
    way = TwoStage(vg.LargeMarginDPP(), two_stage_rules(3))
    for wanted in (np.arange(12), np.zeros(0, dtype=np.intp)):
        fitted = way.fit(SharedExamples(sets, [wanted] * 4), 0)
        assert not fitted.any()
        way.scores(fitted, sets, [wanted] * 4)


@given(st.integers(0, 2**32 - 1), st.integers(1, 7), st.integers(1, 9))
def test_the_first_of_an_order_are_an_order_of_the_first(seed, n_items, most):
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((n_items, 5))
    ensemble = vg.LEnsemble(B @ B.T)
    whole = rank_members(ensemble, np.arange(n_items))
    np.testing.assert_array_equal(
        rank_members(ensemble, np.arange(n_items), most), whole[:most]
    )


# The search -------------------------------------------------------------------------


def search(**given):
    estimator = vg.LargeMarginDPP(
        lam=4.0, l2=1e-4, decoder="greedy", max_iter=200, tol=1e-2, random_state=0
    )
    kernels = {"Gaussians": vg.MultipleKernel(), "kinds": vg.Kinds(6)}
    settings = {"fixed": ("Gaussians",), "varies": ()} | given
    return KernelSearch(estimator, kernels, vg.Linear(normalize=True), **settings)


def test_kinds_win_where_the_truth_has_kinds():
    winner = search().run(*editor(60))
    assert winner.contender.name == "kinds"
    assert winner.contender.model.max_iter == 200
    by_name = {one.name: one for one in winner.standings}
    assert by_name["logistic regression"].behind > 0.05
    # For kinds that were never seen there is a second, without.
    assert winner.fallback.contender.name in ("Gaussians", "logistic regression")


def test_a_regression_wins_where_it_is_the_truth():
    rng = np.random.default_rng(0)
    sets = [
        vg.GroundSet(rng.standard_normal((16, 4)), rng.standard_normal((16, 8)))
        for _ in range(60)
    ]
    subsets = [
        vg.select(one.features(), one.quality @ [2.0, -1.0, 1.0, 0.5], 5, "mmr")
        for one in sets
    ]
    winner = search().run(sets, subsets)
    assert winner.contender.name == "logistic regression"
    assert winner.rule == Rule(Ordering("mmr", 0.5), 5)
    assert winner.fallback is None


def test_settings_are_varied_only_where_they_may_be():
    sets, subsets = editor(24)
    winner = search(varies=("penalty", "lam")).run(sets, subsets)
    names = {one.name for one in winner.varied}
    penalties = {"penalty x 0.1", "penalty x 10"}
    assert names == {"as it is", "lam = 0", "lam = 1"} | penalties
    model = winner.contender.model
    changed = (model.kernel.penalty != 1e-3) + (model.lam != 4.0)
    assert changed <= 1
    assert search().run(sets, subsets).varied == ()


def interaction(n_sets, seed=0):
    """Return ground sets where items with two features of one sign are wanted."""
    rng = np.random.default_rng(seed)
    sets = [
        vg.GroundSet(rng.standard_normal((12, 2)), rng.standard_normal((12, 3)))
        for _ in range(n_sets)
    ]
    return sets, [np.flatnonzero(one.quality.prod(axis=1) > 0.5) for one in sets]


def test_boosted_log_odds_are_taken_where_they_clearly_gain():
    winner = search(quality_model="auto").run(*interaction(36))
    assert winner.is_boosted
    names = [one.name for one in winner.standings]
    assert names[0].endswith(", boosted")
    assert len(names) == 5  # two kernels, the regression, and two of them boosted
    first, *others = winner.standings
    linear = max(one.mean for one in others if not one.name.endswith(", boosted"))
    assert first.mean > linear + 0.1
    # Trees that predict no better than a regression are not tried any further.
    winner = search(quality_model="auto").run(*editor(30))
    assert not winner.is_boosted
    assert len(winner.standings) == 3


def test_boosted_parts_are_scored_by_trees_that_did_not_see_them():
    sets, subsets = interaction(30)
    race = Race(sets, subsets)
    boosted = race.with_boosting()
    turned = [np.setdiff1d(np.arange(12), wanted) for wanted in subsets]
    for part, other in zip(race.parts, boosted.parts, strict=True):
        labels = [
            turned[i] if i in part.held_out else wanted
            for i, wanted in enumerate(subsets)
        ]
        blind = boosted_fold(replace(part, subsets=labels), race.seed)
        for i, ground_set in enumerate(other.ground_sets):
            np.testing.assert_array_equal(
                ground_set.quality, blind.ground_sets[i].quality
            )
            np.testing.assert_array_equal(ground_set.quality[:, :2], sets[i].quality)
            np.testing.assert_array_equal(ground_set.features(), sets[i].features())


def test_labels_of_one_class_are_not_boosted():
    sets, _ = interaction(12)
    winner = search(quality_model="auto").run(sets, [np.arange(12)] * 12)
    assert not winner.is_boosted


def test_expected_f_is_tried_without_a_margin(monkeypatch):
    tried, run = {}, Race.run

    def recorded(self, contenders, *others, **named):
        tried.update({one.name: list(one.rules) for one in contenders})
        return run(self, contenders, *others, **named)

    monkeypatch.setattr(Race, "run", recorded)
    decoders = ("greedy", "expected-f")
    search(varies=("lam",), decoders=decoders, tries_sizes=False).run(*editor(24))
    assert EXPECTED in tried["lam = 0"]
    assert len(tried["lam = 1"]) == 1
    search(varies=("lam",), decoders=("greedy",), tries_sizes=False).run(*editor(24))
    assert tried["lam = 0"] == [GREEDY]


def test_without_sizes_only_the_model_decides_how_many():
    winner = search(tries_sizes=False, decoders=("greedy",)).run(*editor(24))
    assert winner.rule == GREEDY
    assert {one.name for one in winner.standings} == {"Gaussians", "kinds"}


def test_the_search_does_not_see_what_it_is_judged_by():
    """Other labels of one part change what is learned from it, never its own fits."""
    sets, subsets = editor(30)
    race = Race(sets, subsets)
    turned = [
        np.setdiff1d(np.arange(len(one)), wanted)
        if i in race.parts[0].held_out
        else wanted
        for i, (one, wanted) in enumerate(zip(sets, subsets, strict=True))
    ]
    model = vg.LargeMarginDPP(kernel=vg.Kinds(4), max_iter=5, random_state=0)
    for labels in (subsets, turned):
        standing = Race(sets, labels).run([LearnedDPP("k", model, [GREEDY])])[0]
        first = standing.fitted[0]
        if labels is subsets:
            theta = first.theta_
    np.testing.assert_array_equal(first.theta_, theta)


# Familiar and not -------------------------------------------------------------------


def test_new_kinds_are_unfamiliar_and_new_sets_of_the_same_kinds_are_not():
    sets, _ = editor(60)
    kernel = vg.Kinds(6).fit(sets)
    is_familiar = Familiarity.fit(kernel, sets)
    same, _ = editor(40, seed=5)
    new, _ = editor(40, seed=6, kinds=range(5, 10))
    assert np.mean([is_familiar(one) for one in same]) > 0.95
    assert np.mean([is_familiar(one) for one in new]) < 0.05


def test_familiarity_is_the_cosine_with_the_nearest_centre():
    sets, _ = editor(20)
    kernel = vg.Kinds(4).fit(sets)
    X = sets[0].features() - kernel.center_
    X = X / np.linalg.norm(X, axis=1)[:, None]
    centres = kernel.centers_ / np.linalg.norm(kernel.centers_, axis=1)[:, None]
    np.testing.assert_allclose(kernel.familiarity(sets[0]), (X @ centres.T).max(axis=1))


def test_kernels_without_kinds_have_no_familiarity():
    sets, _ = editor(5)
    assert Familiarity.fit(vg.MultipleKernel().fit(sets), sets) is None


def test_familiarity_in_blocks():
    plain, _ = editor(30)
    sets = [
        vg.GroundSet(one.quality, {"a": one.features(), "b": one.quality})
        for one in plain
    ]
    mixture = vg.Mixture([vg.Kinds(4, block="a"), vg.Linear(block="b")]).fit(sets)
    found = Familiarity.fit(mixture, sets)
    assert np.mean([found(one) for one in sets]) > 0.95


# Ground sets of one group -----------------------------------------------------------


def test_groups_stay_in_one_part_and_have_one_score():
    labels = np.random.default_rng(0).permutation(np.arange(30) % 10)
    runner = Runner("one", {GREEDY: 0.8})
    race = Race(*examples(30), groups=[f"g{label}" for label in labels])
    standing = race.run([runner])[0]
    for part in race.parts:
        assert len(part.held_out) == 3 * len(set(labels[part.held_out]))
        assert not set(labels[part.held_out]) & set(labels[part.learned])
    assert len(standing.scores) == 10
    part = race.parts[0]
    scores = np.arange(len(part.held_out), dtype=float)
    own = labels[part.held_out]
    expected = sorted(scores[own == label].mean() for label in set(own))
    assert sorted(part.mean_by_unit(scores)) == pytest.approx(expected)
    with pytest.raises(ValueError, match="needs two ground sets at least, got 1"):
        Race(*examples(2), groups=["a", "a"])


def test_boosted_scores_are_of_trees_that_saw_no_part_of_the_group():
    sets, subsets = examples(12)
    # Copies of a set, whose labels a tree could learn by heart.
    twins, both = [*sets, *sets], [*subsets, *subsets]
    labels = np.tile(np.arange(12), 2)
    race = Race(twins, both, groups=labels)
    seen = []
    fit = vg.estimator.BoostedQuality.fit_out_of_fold

    def keep(X, wanted, groups, *arguments, **options):
        seen.append(groups)
        return fit(X, wanted, groups, *arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vg.estimator.BoostedQuality, "fit_out_of_fold", keep)
        boosted_fold(race.parts[0], 0)
    learned = race.parts[0].learned
    assert seen[0].tolist() == np.repeat(labels[learned], 12).tolist()
