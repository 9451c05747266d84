from collections import Counter
from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import variegate as vg
from text_instances import BAKERY_CLUSTER, STORM_CLUSTER
from variegate.decoding import Constraint
from variegate.decoding.agreement import grow_subset
from variegate.text import Budget, Cluster, ClusterView, Document, Rouge, oracle_summary
from variegate.text.consensus import (
    GrowingSummary,
    WordAgreement,
    draw_near_budget,
    scaled_to_cost,
)
from variegate.text.words import count_words, words


def growing(counts, n):
    """Return a summary of the first n rows; the others are targets."""
    targets = counts[n:].toarray()
    weights = np.full(len(targets), 1 / len(targets))
    return GrowingSummary([counts[:n]], [targets], weights)


letters = st.lists(st.sampled_from("abcd"), max_size=5)


def slow_f(summary, target):
    hits = sum((Counter(summary) & Counter(target)).values())
    total = len(summary) + len(target)
    return 2 * hits / total if total else 0.0


@given(
    sentences=st.lists(letters, min_size=1, max_size=5),
    targets=st.lists(letters.filter(bool), min_size=1, max_size=4),
    order=st.randoms(use_true_random=False),
)
def test_agreement_equals_the_definition(sentences, targets, order):
    counts = count_words([*sentences, *targets]).matrix
    n = len(sentences)
    agreement = growing(counts, n)
    chosen, added = list(range(n)), []
    order.shuffle(chosen)
    for item in chosen:
        each = agreement.value + agreement.gain()
        for i in range(n):
            together = list(chain.from_iterable(sentences[j] for j in [*added, i]))
            expected = np.mean([slow_f(together, target) for target in targets])
            assert each[i] == pytest.approx(expected, abs=1e-6)
        agreement.add(item)
        added.append(item)
        together = list(chain.from_iterable(sentences[j] for j in added))
        expected = np.mean([slow_f(together, target) for target in targets])
        assert agreement.value == pytest.approx(expected, abs=1e-6)


def test_agreement_is_rouge_1_f():
    texts = ["the storm closed the harbour", "ferries stayed in port"]
    target = "a storm closed the port"
    counts = count_words([words(t) for t in [*texts, target]]).matrix
    agreement = growing(counts, 2)
    agreement.add(0)
    agreement.add(1)
    score = Rouge(n=1, digits=None).score("\n".join(texts), [target])["rouge-1"]
    assert agreement.value == pytest.approx(score.f, abs=1e-7)


def test_the_budget_is_filled_or_the_search_stops():
    # Target "a b"; agreement only falls after the first sentence.
    counts = count_words([["a", "b"], ["c"], ["d"], ["a", "b"]]).matrix
    costs = np.array([2.0, 1.0, 1.0])

    def choose(limit, fill=True):
        return grow_subset(growing(counts, 3), Constraint(None, limit, costs), fill)

    assert choose(9.0, fill=False) == ([0], "no further item gains anything")
    assert sorted(choose(9.0)[0]) == [0, 1, 2]
    # Ties go to the smallest number.
    assert choose(3.0) == ([0, 1], "no further item fits the budget")
    assert choose(0.5)[0] == []


def test_gains_for_their_cost():
    # With target "a b c d": one dear sentence gains more, three cheap ones more a cost.
    counts = count_words([list("abcd"), list("ab"), list("abcd")]).matrix
    costs = np.array([10.0, 1.0])

    def first(per_cost):
        constraint = Constraint(None, 10.0, costs)
        return grow_subset(growing(counts, 2), constraint, True, per_cost)[0][0]

    assert first(per_cost=False) == 0  # F 1 against 2·2 / (2 + 4) = 0.67
    assert first(per_cost=True) == 1  # 0.1 against 0.67 a cost


def test_words_and_pairs_are_summed():
    view = ClusterView.from_cluster(STORM_CLUSTER)
    subsets = np.random.default_rng(0).random((6, len(view))) < 0.4
    votes = np.array([1, 2, 1, 1])
    state = WordAgreement(view.units()).growing(subsets[2:], votes)
    for item in np.flatnonzero(subsets[0]):
        state.add(item)
    expected = 0.0
    for units in (view.words, view.pairs):
        bags = [
            list(chain.from_iterable(units[i] for i in np.flatnonzero(subset)))
            for subset in subsets
        ]
        scores = [slow_f(bags[0], bag) for bag in bags[2:]]
        expected += np.average(scores, weights=votes)
    assert state.value == pytest.approx(expected, abs=1e-6)


def test_scaling_to_a_cost():
    rng = np.random.default_rng(0)
    B = rng.standard_normal((12, 12))
    ensemble = vg.LEnsemble(B @ B.T)
    costs = rng.uniform(1.0, 5.0, 12)
    for total in (2.0, 10.0, 25.0):
        scaled = scaled_to_cost(ensemble, costs, total)
        assert scaled.marginals() @ costs == pytest.approx(total, rel=1e-6)
        ratio = scaled.log_scale - ensemble.log_scale
        assert ratio == pytest.approx(np.full(12, ratio[0]))


@pytest.mark.parametrize("share", [0.02, 0.2, 0.6])
def test_voters_of_many_candidates_cost_what_they_may(share):
    rng = np.random.default_rng(0)
    B = rng.standard_normal((500, 300))
    ensemble = vg.LEnsemble.from_quality(
        B @ B.T / 300 + 1e-3 * np.eye(500), rng.normal(size=500)
    )
    costs = rng.uniform(1.0, 5.0, 500)
    budget = share * costs.sum()
    constraint = Constraint(None, budget, costs)
    voters = draw_near_budget(ensemble, constraint, 100, np.random.default_rng(1))
    assert 40 <= len(voters) <= 100
    # They are those nearest to the budget of samples that cost as much on average.
    assert voters @ costs == pytest.approx(np.full(len(voters), budget), rel=0.25)
    # Items are in them as often as in the ensemble scaled to that cost.
    K = scaled_to_cost(ensemble, costs, budget).marginals()
    error = voters.mean(axis=0) - K
    assert np.abs(error.mean()) < 0.02
    assert (error**2).mean() < 1.5 * (K * (1.0 - K)).mean() / len(voters)


def test_voters_where_everything_fits():
    ensemble = vg.LEnsemble(np.eye(3))
    constraint = Constraint(None, 9.0, np.ones(3))
    voters = draw_near_budget(ensemble, constraint, 50, np.random.default_rng(0))
    assert voters.all()


# The oracle ------------------------------------------------------------------------


def test_the_oracle_takes_what_people_wrote():
    view = ClusterView.from_cluster(STORM_CLUSTER)
    chosen = [view.texts[i] for i in oracle_summary(view, Budget.parse("40w"))]
    # It says nearly all that the reference says, and any other sentence adds mostly
    # words that the reference does not have.
    assert chosen == [
        "Nine ferries were cancelled when a storm closed the harbour of Aarhus."
    ]
    view = ClusterView.from_cluster(BAKERY_CLUSTER)
    chosen = [view.texts[i] for i in oracle_summary(view, Budget.parse("12w"))]
    assert chosen == ["The oldest bakery of Ribe opened again after two years."]


def test_the_oracle_is_the_best_single_sentence():
    view = ClusterView.from_cluster(STORM_CLUSTER)
    (best,) = oracle_summary(view, Budget.parse("1s"))
    rouge = Rouge(n=(1, 2), digits=None)
    scores = [rouge.score(t, list(STORM_CLUSTER.references)) for t in view.texts]
    total = [s["rouge-1"].f + s["rouge-2"].f for s in scores]
    assert best == int(np.argmax(total))


def test_an_oracle_needs_references():
    view = ClusterView.from_cluster(
        Cluster([Document("The ferry left the harbour.")], ["..."])
    )
    with pytest.raises(ValueError, match="at least one reference summary with words"):
        oracle_summary(view, Budget.parse("5w"))
