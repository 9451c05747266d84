"""Sequences: segments chosen beside what was chosen before."""

import json

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import variegate as vg
from variegate.estimator.sequence_search import SequenceSearch
from variegate.files.models import ModelFileError
from variegate.ground_set import join_ground_sets
from variegate.linalg.determinants import with_jitter

THETA = np.array([1.2, -0.8])


def sequence(rng, n=24, **options):
    """Return a sequence whose neighbours resemble each other, as frames do."""
    X = rng.standard_normal((n, 2))
    walk = np.cumsum(0.6 * rng.standard_normal((n, 3)), axis=0)
    return vg.GroundSet(X, walk + 0.2 * rng.standard_normal((n, 3)), **options)


def draw(ground_set, rng, segment=6, memory=1):
    """Draw items segment by segment, by conditioning the whole of each segment."""
    chosen = []
    for start in range(0, len(ground_set), segment):
        items = np.arange(start, min(start + segment, len(ground_set)))
        earlier = [i for i in chosen if i >= start - memory * segment]
        both = np.array([*earlier, *items])
        features = ground_set.similarity[both]
        S = with_jitter(features @ features.T, 1e-2)
        u = ground_set.quality[both] @ THETA - 0.3
        ensemble = vg.LEnsemble.from_quality(S, u).condition(range(len(earlier)))
        drawn = ensemble.items[ensemble.sample(random_state=rng)[0]]
        chosen += both[drawn].tolist()
    return chosen


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    sequences = [sequence(rng) for _ in range(400)]
    return sequences, [draw(one, rng) for one in sequences]


def plain(**options):
    return vg.LargeMarginDPP(kernel=vg.Linear(), jitter=1e-2, lam=0.0, **options)


@pytest.fixture(scope="module")
def model(data):
    sequences, subsets = data
    return vg.SequentialDPP(plain(random_state=0), segment=6).fit(sequences, subsets)


def test_parameters_come_back_and_without_memory_they_do_not(data, model):
    sequences, subsets = data
    truth = np.append(THETA, -0.3)
    fits = [
        vg.SequentialDPP(plain(), segment=6).fit(sequences[k::8], subsets[k::8])
        for k in range(8)
    ]
    spread = np.std([learned(fit) for fit in fits], axis=0, ddof=1)
    error = spread / np.sqrt(len(fits))
    # Four standard errors: less than one in 5,000 for three normal numbers.
    assert (np.abs(learned(model) - truth) < 4.0 * error).all()
    segments = model.make_segments(sequences, subsets)
    blind = [one.take(one.candidates) for one in segments.ground_sets]
    inside = [
        subset - len(one.given)
        for one, subset in zip(segments.ground_sets, segments.subsets, strict=True)
    ]
    forgetful = plain().fit(blind, inside)
    found = np.append(forgetful.theta_, forgetful.intercept_)
    assert (np.abs(found - truth) > 8.0 * error).any()


def learned(model):
    return np.append(model.estimator_.theta_, model.estimator_.intercept_)


def test_segments_hold_the_wanted_items_of_the_last_segments_as_given():
    ground_set = vg.GroundSet(np.arange(10.0)[:, None], costs=np.ones(10))
    model = vg.SequentialDPP(segment=4, memory=2)
    segments = model.make_segments([ground_set] * 2, [[0, 3, 4, 9], []])
    held = [one.quality[:, 0].tolist() for one in segments.ground_sets]
    assert held[:3] == [
        [0, 1, 2, 3],
        [0, 3, 4, 5, 6, 7],
        [0, 3, 4, 8, 9],
    ]
    assert [one.given.tolist() for one in segments.ground_sets[:3]] == [
        [],
        [0, 1],
        [0, 1, 2],
    ]
    assert [s.tolist() for s in segments.subsets[:3]] == [[0, 3], [2], [4]]
    assert segments.sequence.tolist() == [0, 0, 0, 1, 1, 1]
    by_scene = model.make_segments([ground_set], [[0, 3, 9]], [[0, 1, 9]])
    assert list(map(len, by_scene.ground_sets)) == [1, 9, 3]


def test_items_given_in_a_sequence_are_given_in_their_segment():
    ground_set = vg.GroundSet(np.ones((6, 1)), np.eye(6), given=[0, 1, 4])
    segments = vg.SequentialDPP(segment=2).make_segments([ground_set], [[2]])
    assert [one.given.tolist() for one in segments.ground_sets] == [[], [0, 1]]
    fitted = vg.SequentialDPP(plain(), segment=2).fit([ground_set], [[2, 3]])
    assert not np.isin(fitted.predict([ground_set])[0], [0, 1, 4]).any()
    assert fitted.predict([ground_set], k=3)[0].tolist() == [2, 3, 5]


def test_a_stream_chooses_what_predict_chooses(data, model):
    for one in data[0][:5]:
        stream, chosen = model.stream(), []
        for start in range(0, len(one), 6):
            segment = one.take(range(start, start + 6))
            chosen += (stream.choose(segment) + start).tolist()
        assert chosen == model.predict([one])[0].tolist()


@pytest.mark.parametrize("k", [0, 1, 5, 12, 24])
def test_k_items_of_the_whole_sequence(data, model, k):
    for chosen in model.predict(data[0][:10], k=k):
        assert len(chosen) == len(set(chosen)) == k


def test_a_larger_k_takes_items_of_smaller_rise(data, model):
    one = data[0][0]
    search = SequenceSearch(model.estimator_, one, [0, 6, 12, 18, 24], 1)
    items, rises = search._choose_at_price(0.0, np.ones(24))
    assert (rises > 0.0).all()
    assert len(search._choose_at_price(-3.0, np.ones(24))[0]) > len(items)
    assert len(search._choose_at_price(3.0, np.ones(24))[0]) < len(items)


def test_a_budget_of_the_whole_sequence():
    rng = np.random.default_rng(4)
    sequences = [sequence(rng, costs=rng.uniform(1, 5, 24)) for _ in range(20)]
    model = vg.SequentialDPP(plain(), segment=6)
    model.fit(sequences, [draw(one, rng) for one in sequences])
    for budget in (0.5, 4.0, 20.0, 1e6):
        for one, chosen in zip(
            sequences, model.predict(sequences, budget=budget), strict=True
        ):
            assert one.costs[chosen].sum() <= budget * (1 + 1e-9)
    few, many = (model.predict(sequences, budget=budget) for budget in (6.0, 20.0))
    assert sum(map(len, few)) < sum(map(len, many))


def joint_log_prob(model, one, chosen):
    """Return the joint log-probability of items, by conditional ensembles."""
    total = 0.0
    for start in range(0, len(one), 6):
        earlier = chosen[(chosen >= start - 6) & (chosen < start)]
        items = np.append(earlier, np.arange(start, start + 6))
        here = one.take(items, given=range(len(earlier)))
        ensemble = model.ensemble(here)
        inside = np.isin(items[ensemble.items], chosen)
        total += ensemble.log_prob(inside)
    return total


def test_a_beam_finds_choices_at_least_as_probable_as_a_greedy_search(data, model):
    better = 0
    for one in data[0][:40]:
        search = SequenceSearch(model.estimator_, one, [0, 6, 12, 18, 24], 1)
        greedy, _ = search._choose_at_price(0.0, np.ones(24))
        forward = joint_log_prob(model.estimator_, one, np.sort(greedy))
        wider = clone(model).set_params(beam=8)
        wider.estimator_ = model.estimator_
        found = joint_log_prob(model.estimator_, one, wider.predict([one])[0])
        assert found >= forward - 1e-9
        better += found > forward + 1e-9
    assert better > 0


def test_sparse_features_and_a_search_over_settings(data):
    sequences = [
        vg.GroundSet(one.quality, sparse.csr_array(one.similarity)) for one in data[0]
    ]
    search = vg.LargeMarginDPPCV(plain(), lams=[0.0], omegas=[1.0], cv=2)
    model = vg.SequentialDPP(search, segment=12).fit(sequences[:20], data[1][:20])
    assert len(model.predict(sequences[:2])) == 2
    assert 0.0 <= model.score(sequences[:5], data[1][:5]) <= 1.0
    stream = model.stream()
    for one in sequences[:3]:
        assert stream.choose(one.take(range(12))).max(initial=0) < 12


def test_saved_and_loaded(tmp_path, data, model):
    path = tmp_path / "model.json"
    model.save(path)
    loaded = vg.load(path)
    assert isinstance(loaded, vg.SequentialDPP)
    assert loaded.segment == 6
    for one, other in zip(
        *(each.predict(data[0][:5]) for each in (model, loaded)), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    assert "weight" in model._repr_html_()
    document = json.loads(path.read_text())
    document["settings"]["segment"] = 0
    path.write_text(json.dumps(document))
    with pytest.raises(ModelFileError, match=r"settings\.segment"):
        vg.load(path)


def test_joined_ground_sets_keep_their_given_items():
    one = vg.GroundSet(np.ones((2, 1)), {"a": np.eye(2)}, given=[1])
    other = vg.GroundSet(np.zeros((2, 1)), {"a": sparse.csr_array(np.eye(2))})
    joined = join_ground_sets([one, other], given=[3])
    assert joined.given.tolist() == [1, 3]
    np.testing.assert_array_equal(
        joined.features("a").toarray(), np.vstack([np.eye(2), np.eye(2)])
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"segment": 0}, "segment"),
        ({"memory": 0}, "memory"),
        ({"beam": 0}, "beam"),
    ],
)
def test_bad_parameters(data, options, message):
    with pytest.raises(ValueError, match=message):
        vg.SequentialDPP(**options).fit(data[0][:2], data[1][:2])


def test_bad_calls(data, model):
    sequences = data[0][:2]
    with pytest.raises(ValueError, match="boundaries of 1 sequences, but there are 2"):
        model.predict(sequences, boundaries=[[0]])
    for starts in ([1, 5], [0, 5, 5], [0, 24], [0.0, 2.5]):
        with pytest.raises(ValueError, match="boundaries of sequence 0 must be item"):
            model.predict(sequences[:1], boundaries=[starts])
    with pytest.raises(ValueError, match="give k or budget, not both"):
        model.predict(sequences, k=1, budget=2.0)
    with pytest.raises(ValueError, match="ground set 0: k is 25, but there are fewer"):
        model.predict(sequences, k=25)
    with pytest.raises(ValueError, match="ground set 0: budget needs costs"):
        model.predict(sequences, budget=2.0)
