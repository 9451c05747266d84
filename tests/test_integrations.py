"""Choosing a context, whatever framework has found the documents."""

import socket
import subprocess
import sys
import warnings

import numpy as np
import pyarrow as pa
import pytest
from context_corpus import embed, make_corpus
from hypothesis import given
from hypothesis import strategies as st

import variegate as vg
from frameworks import FRAMEWORKS
from variegate._install import install_command
from variegate.integrations import (
    ContextSelector,
    ContextWarning,
    Found,
    count_words,
    training_table,
)
from variegate.tables import TableSelector

FETCH = 30


def random_found(rng, n, scored=True):
    texts = [" ".join(["word"] * int(rng.integers(1, 9))) for _ in range(n)]
    scores = rng.permutation(n) / n + rng.random() if scored else [None] * n
    return Found(texts, list(scores), list(rng.standard_normal((n, 5))))


def naive_mmr(scores, embeddings, k, t):
    """Maximal marginal relevance of its authors, on scores over their range."""
    unit = embeddings / np.linalg.norm(embeddings, axis=1)[:, None]
    competing = []
    for i in np.argsort(-scores):
        if all(unit[i] @ unit[j] < 0.9 for j in competing):
            competing.append(i)
    z = scores / (scores.max() - scores[competing[-1]])
    chosen = [int(np.argmax(z))]
    while len(chosen) < k:
        best, item = -np.inf, -1
        for j in range(len(z)):
            if j not in chosen:
                alike = max(float(unit[j] @ unit[i]) for i in chosen)
                if (1 - t) * z[j] - t * alike > best:
                    best, item = (1 - t) * z[j] - t * alike, j
        chosen.append(item)
    return chosen


# Methods ------------------------------------------------------------------------------


@given(st.integers(0, 10_000), st.floats(0.05, 0.95))
def test_mmr_is_that_of_its_authors(seed, diversity):
    rng = np.random.default_rng(seed)
    found = random_found(rng, 12)
    selector = ContextSelector(fetch_k=12, k=4, method="mmr", diversity=diversity)
    expected = naive_mmr(
        np.array(found.scores), np.array(found.embeddings), 4, diversity
    )
    assert selector.choose(found) == expected


@given(st.integers(0, 10_000), st.sampled_from(["dpp", "mmr", "top", "max-min"]))
def test_the_order_in_which_scored_documents_come_does_not_matter(seed, method):
    rng = np.random.default_rng(seed)
    found = random_found(rng, 15)
    shuffled = rng.permutation(15)
    other = Found(
        [found.texts[p] for p in shuffled],
        [found.scores[p] for p in shuffled],
        [found.embeddings[p] for p in shuffled],
    )
    selector = ContextSelector(fetch_k=9, k=4, method=method)
    chosen = [int(shuffled[place]) for place in selector.choose(other)]
    assert chosen == selector.choose(found)


@given(st.integers(0, 10_000), st.integers(1, 40), st.sampled_from(list(range(1, 9))))
def test_a_budget_is_kept_and_nothing_that_fits_is_left(seed, budget, k):
    found = random_found(np.random.default_rng(seed), 12)
    counter = {"count_tokens": count_words} if budget % 2 else {}
    selector = ContextSelector(fetch_k=10, k=k, budget=budget, **counter)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ContextWarning)
        chosen = selector.choose(found)
    tokens = list(map(count_words, found.texts)) if counter else tokens_of(found.texts)
    spent = sum(tokens[place] for place in chosen)
    best = np.argsort(-np.array(found.scores))[:10]
    left = [tokens[place] for place in best if place not in chosen]
    assert spent <= budget
    assert len(set(chosen)) == len(chosen) <= k
    assert set(chosen) <= set(best.tolist())
    assert len(chosen) == k or min(left) + spent > budget


def test_only_the_best_are_looked_at_and_embedded():
    asked = []

    def embedder(places):
        asked.extend(places)
        return [[0.0, 1.0]] * len(places)

    scores, vectors = [0.1, 0.9, 0.8, 0.7], [None, [1.0, 0.0], None, None]
    found = Found(["a", "b", "c", "d"], scores, vectors, embed=embedder)
    selector = ContextSelector(fetch_k=3, k=2, method="max-min")
    assert selector.choose(found) == [1, 2]
    assert asked == [2, 3]


def test_without_scores_the_place_counts():
    rng = np.random.default_rng(0)
    found = random_found(rng, 12, scored=False)
    by_place = Found(found.texts, list(range(12, 0, -1)), found.embeddings)
    selector = ContextSelector(fetch_k=10, k=4)
    assert selector.choose(found) == selector.choose(by_place)


def test_scores_count_up_to_centre_and_scale_and_ranks_up_to_any_scale():
    by_rank = ContextSelector(fetch_k=10, k=4, relevance="rank")
    by_score = ContextSelector(fetch_k=10, k=4)
    n_moved = 0
    for seed in range(10):
        found = random_found(np.random.default_rng(seed), 12)
        texts, vectors = found.texts, found.embeddings
        shifted = Found(texts, [7 + 3 * s for s in found.scores], vectors)
        assert by_score.choose(shifted) == by_score.choose(found)
        steep = Found(texts, [np.exp(9 * s) for s in found.scores], vectors)
        assert by_rank.choose(steep) == by_rank.choose(found)
        n_moved += by_score.choose(steep) != by_score.choose(found)
    assert n_moved > 0


def test_diversity_goes_from_relevance_to_diversity():
    found = random_found(np.random.default_rng(2), 20)
    ranking = np.argsort(-np.array(found.scores))
    top = ContextSelector(fetch_k=20, k=5, diversity=0.0).choose(found)
    assert top == ranking[:5].tolist()

    def volume(places):
        unit = np.array([found.embeddings[p] for p in places])
        unit /= np.linalg.norm(unit, axis=1)[:, None]
        return np.linalg.det(unit @ unit.T)

    diverse = ContextSelector(fetch_k=20, k=5, diversity=1.0).choose(found)
    assert volume(diverse) > volume(top)


def test_all_are_chosen_where_there_are_no_more():
    found = random_found(np.random.default_rng(3), 3)
    assert sorted(ContextSelector(fetch_k=20, k=5).choose(found)) == [0, 1, 2]


def test_tokens_are_counted_by_the_function_given():
    found = Found(["aaaa", "bb", "c"], [3.0, 2.0, 1.0], np.eye(3))
    selector = ContextSelector(fetch_k=3, budget=3, method="top", count_tokens=len)
    assert selector.choose(found) == [1, 2]


def test_k_of_a_call_counts_in_place_of_the_selectors():
    found = random_found(np.random.default_rng(4), 12)
    selector = ContextSelector(fetch_k=10, k=4, method="top")
    assert selector.choose(found, k=2) == selector.choose(found)[:2]
    with pytest.raises(ValueError, match="fetch_k must be larger"):
        selector.choose(found, k=10)


# Learned models -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def lists():
    """What was found for 24 questions, and the chunks that tell what was asked."""
    chunks, questions = make_corpus(24)
    vectors = np.array(embed([chunk.text for chunk in chunks]))
    asked = np.array(embed([question.text for question in questions]))
    found, chosen = [], []
    for question, scores in zip(questions, asked @ vectors.T, strict=True):
        best = np.argsort(-scores, kind="stable")[:FETCH]
        first = {}
        for place, number in enumerate(best):
            told = question.told(chunks[number])
            if told:
                first.setdefault(told, place)
        found.append(
            Found(
                [chunks[n].text for n in best],
                scores[best].tolist(),
                list(vectors[best]),
                [{"age": int(n % 7)} for n in best],
            )
        )
        chosen.append(sorted(first.values()))
    return found, chosen


@pytest.fixture(scope="module")
def selector(lists):
    found, chosen = lists
    looking = ContextSelector(fetch_k=FETCH, k=1)
    table = training_table([looking.candidates(one) for one in found], chosen, ["age"])
    return TableSelector(
        group="query",
        label="chosen",
        quality=["score", "standard_score", "place", "tokens", "age"],
        similarity="embedding",
        kernel="linear",
        omega=1.0,
    ).fit(table)


def tokens_of(texts):
    """One for four bytes, of ASCII texts."""
    return [-(-len(text) // 4) for text in texts]


def by_hand(found):
    """The columns that the model has seen, made in another way."""
    scores = np.array(found.scores)
    return pa.table(
        {
            "query": ["q"] * len(scores),
            "score": scores,
            "standard_score": (scores - np.mean(scores)) / np.std(scores),
            "place": range(1, len(scores) + 1),
            "tokens": tokens_of(found.texts),
            "age": [known["age"] for known in found.metadata],
            "embedding": [list(vector) for vector in found.embeddings],
        }
    )


@pytest.mark.parametrize("settings", [{}, {"k": 3}, {"omega": 0.5}, {"budget": 60}])
def test_a_model_file_chooses_as_its_selector(tmp_path, lists, selector, settings):
    path = tmp_path / "context.json"
    selector.save(path)
    choosing = ContextSelector(fetch_k=FETCH, model=path, **settings)
    for found in lists[0][:6]:
        priced = selector.with_columns(cost="price")
        table = by_hand(found)
        table = table.append_column("price", table["tokens"])
        expected = priced.choose(table, **settings)
        rank = {r: p for p, r in enumerate(expected.rank.tolist()) if r}
        assert choosing.choose(found) == [rank[r] for r in sorted(rank)]
        assert len(rank) > 0


def test_omega_asks_for_few_or_many(lists, selector):
    def mean_size(omega):
        choosing = ContextSelector(fetch_k=FETCH, model=selector, omega=omega)
        return np.mean([len(choosing.choose(found)) for found in lists[0]])

    assert mean_size(0.25) < mean_size(4.0)


def test_a_plain_model_goes_by_score_and_embedding(lists):
    found, chosen = lists
    sets = [
        vg.GroundSet(
            np.array(f.scores)[:, None],
            np.array(f.embeddings),
            costs=tokens_of(f.texts),
        )
        for f in found
    ]
    kernel = vg.Linear(normalize=True)
    model = vg.LargeMarginDPP(kernel=kernel, l2=0.01, decoder="greedy", max_iter=50)
    model.fit(sets, chosen)
    for settings in ({}, {"k": 4}, {"budget": 50}):
        choosing = ContextSelector(fetch_k=FETCH, model=model, **settings)
        for one, ground_set in zip(found[:5], sets, strict=False):
            expected = model.predict([ground_set], **settings)[0]
            assert sorted(choosing.choose(one)) == expected.tolist()
    with pytest.raises(ValueError, match="omega is for models of tables"):
        ContextSelector(fetch_k=FETCH, model=model, omega=2.0).choose(found[0])
    tiny = ContextSelector(fetch_k=FETCH, model=model, k=2, budget=1)
    with pytest.warns(ContextWarning, match="no document fits 1 tokens"):
        assert tiny.choose(found[0]) == []


def test_the_training_table_has_a_row_for_each_candidate(lists):
    found, chosen = lists
    looking = ContextSelector(fetch_k=FETCH, k=1)
    table = training_table([looking.candidates(f) for f in found], chosen, ["age"])
    expected = by_hand(found[0])
    first = table.slice(0, FETCH)
    for name in ("score", "standard_score", "place", "tokens", "age"):
        np.testing.assert_allclose(first[name], expected[name])
    assert first["embedding"].to_pylist() == expected["embedding"].to_pylist()
    assert np.flatnonzero(first["chosen"]).tolist() == chosen[0]
    assert table.num_rows == FETCH * len(found)


def test_the_training_table_leaves_out_scores_that_are_not_there():
    found = Found(["a", "b"], [None, None], np.eye(2))
    candidates = ContextSelector(fetch_k=2, k=1).candidates(found)
    table = training_table([candidates], [[0]])
    names = ["query", "chosen", "place", "tokens", "embedding"]
    assert table.column_names == names
    scored = ContextSelector(fetch_k=2, k=1).candidates(
        Found(["a", "b"], [1.0, 0.0], np.eye(2))
    )
    with pytest.raises(ValueError, match="query 0 has no scores, and others have"):
        training_table([candidates, scored], [[0], [0]])


def test_the_training_table_refuses_what_does_not_fit():
    found = Found(["a", "b"], [1.0, 0.0], np.eye(2))
    candidates = ContextSelector(fetch_k=2, k=1).candidates(found)
    with pytest.raises(ValueError, match="query 0: document 7 was chosen and is not"):
        training_table([candidates], [[7]])
    with pytest.raises(ValueError, match="1 lists of candidates, but 0 of chosen"):
        training_table([candidates], [])
    with pytest.raises(ValueError, match="nothing to learn from"):
        training_table([], [])


def test_models_say_what_they_miss(lists, selector):
    found = lists[0][0]
    choosing = ContextSelector(fetch_k=FETCH, model=selector)
    without = Found(found.texts, found.scores, found.embeddings)
    with pytest.raises(ValueError, match="a column 'age', which is not in"):
        choosing.choose(without)
    unscored = Found(found.texts, [None] * FETCH, found.embeddings, found.metadata)
    with pytest.raises(ValueError, match="goes by 'score', and the documents have no"):
        choosing.choose(unscored)


def test_what_is_no_model_is_refused(tmp_path, selector):
    with pytest.raises(ValueError, match="or a LargeMarginDPP, got a dict"):
        ContextSelector(fetch_k=9, model={})
    absent = ContextSelector(fetch_k=9, model=tmp_path / "none.json")
    with pytest.raises(ValueError, match=r"there is no model file .*none\.json"):
        absent.choose(Found(["a"], [1.0], [[1.0]]))
    sets = [vg.GroundSet(np.eye(3)[:, :2], np.eye(3))] * 2
    model = vg.LargeMarginDPP(kernel=vg.Linear(), max_iter=2, tol=1e3)
    model.fit(sets, [[0], [1]])
    with pytest.raises(ValueError, match="with 2 quality features, and documents have"):
        ContextSelector(fetch_k=9, model=model)


# What is refused ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"k": 5, "fetch_k": 5}, "got 5 and 5: of as many as are chosen there is no"),
        ({"k": 9, "fetch_k": 5}, "fetch_k must be larger than the number"),
        ({"k": 0}, "documents to choose must be a whole number of at least 1, got 0"),
        ({"fetch_k": 2.5, "k": 1}, "fetch_k must be a whole number"),
        ({}, "only a learned model can decide that"),
        ({"budget": -1}, "budget must be a finite number > 0, got -1"),
        ({"k": 2, "method": "best"}, "unknown method 'best'; there are dpp, mmr"),
        ({"k": 2, "omega": 1.0}, "omega is of learned models, and no model is given"),
        ({"k": 2, "diversity": 1.5}, r"from 0 \(relevance only\) to 1 \(diversity"),
        ({"k": 2, "diversity": -0.1}, "diversity must be a number from 0"),
        ({"k": 2, "method": "top", "diversity": 0.5}, "'top' has no diversity"),
        ({"k": 2, "relevance": "place"}, "unknown relevance 'place'; there are score"),
        ({"k": 2, "count_tokens": "words"}, "count_tokens must be a function"),
        (
            {"model": "m.json", "method": "dpp"},
            "method is of methods that learn nothing",
        ),
        (
            {"model": "m.json", "diversity": 0.5},
            "diversity is of methods .* has learned its own",
        ),
        (
            {"model": "m.json", "relevance": "rank"},
            "relevance is of .* A model goes by the columns",
        ),
        ({"model": "m.json", "omega": 0.0}, "omega must be a finite number > 0"),
    ],
)
def test_settings_that_make_no_sense(settings, message):
    with pytest.raises(ValueError, match=message):
        ContextSelector(**{"fetch_k": 20} | settings)


TEXTS = ["a", "b", "c"]
EYE = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (Found([], [], []), "there are no documents to choose from"),
        (
            Found(TEXTS, [1.0, None, 0.5], EYE),
            "1 of 3 documents have no score",
        ),
        (Found(TEXTS, [1.0, np.nan, 0.5], EYE), "the score of document 1 is nan"),
        (Found(TEXTS, [1.0, "x", 0.5], EYE), "scores must be numbers"),
        (
            Found(TEXTS, [3, 2, 1], [EYE[0], None, EYE[2]]),
            "1 of 3 documents have no embedding, document 1 for one: give an embedder",
        ),
        (
            Found(TEXTS, [3, 2, 1], [EYE[0], [1.0], EYE[2]]),
            "different lengths: 3 numbers in document 0, 1 in document 1",
        ),
        (Found(TEXTS, [3, 2, 1], [EYE[0], EYE, EYE[2]]), r"has shape \(3, 3\)"),
        (
            Found(TEXTS, [3, 2, 1], [EYE[0], [np.inf] * 3, EYE[2]]),
            "the embedding of document 1 holds NaN or infinity",
        ),
    ],
)
def test_documents_that_make_no_sense(found, message):
    with pytest.raises(ValueError, match=message):
        ContextSelector(fetch_k=20, k=2).choose(found)


def test_an_embedder_makes_one_embedding_a_document():
    given = (TEXTS, [3, 2, 1], [None] * 3)
    selector = ContextSelector(fetch_k=20, k=2)
    with pytest.raises(ValueError, match="made 1 embeddings of 3 documents"):
        selector.choose(Found(*given, embed=lambda places: [[1.0]]))
    with pytest.raises(ValueError, match="made no embedding of document 0"):
        selector.choose(Found(*given, embed=lambda places: [None] * 3))


@pytest.mark.parametrize("count", ["three", -1, np.nan, None])
def test_a_counter_counts(count):
    selector = ContextSelector(fetch_k=20, budget=9, count_tokens=lambda text: count)
    with pytest.raises(ValueError, match="must return a number of tokens, and"):
        selector.choose(Found(TEXTS, [3, 2, 1], EYE))


def test_as_many_as_are_to_be_chosen_are_a_sign_of_a_mistake():
    with pytest.warns(ContextWarning, match="let the retriever find fetch_k=20"):
        ContextSelector(fetch_k=20, k=3).choose(Found(TEXTS, [3, 2, 1], EYE))


# Frameworks ---------------------------------------------------------------------------


def test_without_its_framework_a_module_says_how_to_get_it():
    code = (
        "import importlib, sys\n"
        f"for module, (framework, _) in {FRAMEWORKS!r}.items():\n"
        "    sys.modules[framework] = None\n"
        "    try:\n        importlib.import_module(module)\n"
        "    except ImportError as error:\n        print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    for said, (_, extra) in zip(
        done.stdout.splitlines(), FRAMEWORKS.values(), strict=True
    ):
        assert said.endswith(install_command(extra))


def test_the_core_loads_no_framework_and_no_tables():
    names = [framework for framework, _ in FRAMEWORKS.values()]
    code = (
        f"import sys; import variegate.integrations\n"
        f"print([m for m in {[*names, 'pydantic', 'pyarrow']!r} if sys.modules.get(m)])"
    )
    # scikit-learn loads pandas and pyarrow where they are installed.  Without them, our
    # own import of one would fail.
    code = f"import sys; sys.modules['pandas'] = sys.modules['pyarrow'] = None; {code}"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.usefixtures("no_network")
def test_the_guard_of_these_tests_lets_nothing_through():
    with pytest.raises(AssertionError, match="the network was asked for"):
        socket.create_connection(("localhost", 9))
    with (
        pytest.raises(AssertionError, match="the network was asked for"),
        socket.socket() as other,
    ):
        other.connect(("127.0.0.1", 9))
