import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from text_instances import BAKERY_CLUSTER, CLUSTERS, STORM_CLUSTER
from variegate.text import Cluster, ClusterView, Document
from variegate.text.cluster_view import FEATURE_SETS, lexrank, quality_features
from variegate.text.words import (
    count_words,
    tfidf,
    unit_rows,
    word_weights,
    words,
)

# Words -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Don't stop, Anna-Lena!", ["don", "t", "stop", "anna", "lena"]),
        ("हिंदी में दो", ["हिंदी", "में", "दो"]),  # vowel signs stay in their words
        ("Ο σεισμός, 26ης", ["ο", "σεισμός", "26ης"]),
        ("…", []),
    ],
)
def test_words(text, expected):
    assert words(text) == expected


def test_word_counts():
    counts = count_words([["a", "b", "a"], [], ["b"]])
    assert counts.vocabulary == {"a": 0, "b": 1}
    assert counts.matrix.toarray().tolist() == [[2, 1], [0, 0], [0, 1]]
    assert word_weights(counts).tolist() == [np.log(3.0), np.log(1.5)]


def test_no_words_at_all():
    assert count_words([[], []]).matrix.shape == (2, 1)


def test_unit_rows_leave_zeros():
    rows = unit_rows(sparse.csr_array(np.array([[3.0, 4.0], [0.0, 0.0]])))
    assert rows.toarray() == pytest.approx(np.array([[0.6, 0.8], [0.0, 0.0]]))


# Weights ---------------------------------------------------------------------------


def test_weights_of_the_sentences_themselves():
    counts = count_words([["a", "b"], ["a"], ["a", "c"], ["a", "c"]])
    weights = word_weights(counts)
    assert weights == pytest.approx([0.0, np.log(4), np.log(2)])
    vectors = tfidf(counts, weights).toarray()
    assert vectors[0] == pytest.approx([0, 1, 0])  # "a" is everywhere
    assert vectors[1] == pytest.approx([0, 0, 0])


def test_ignored_words_weigh_nothing():
    counts = count_words([["the", "storm"], ["ferry"]])
    assert word_weights(counts, {"the", "absent"})[0] == 0.0


# LexRank ---------------------------------------------------------------------------


def slow_lexrank(vectors):
    """The stationary distribution from the eigenvectors of the whole matrix."""
    similar = (vectors @ vectors.T > 0.1).astype(float)
    n = len(similar)
    degree = similar.sum(axis=1)
    walk = np.where(
        degree[:, None] > 0, similar / np.maximum(degree, 1)[:, None], 1 / n
    )
    google = 0.15 / n + 0.85 * walk
    values, left = np.linalg.eig(google.T)
    first = np.real(left[:, np.argmax(np.real(values))])
    return first / first.sum()


@given(seed=st.integers(0, 10**6), n=st.integers(1, 20))
def test_lexrank_is_the_stationary_distribution(seed, n):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 6)) * (rng.random((n, 6)) < 0.4)
    vectors = unit_rows(sparse.csr_array(X))
    rank = lexrank(vectors)
    assert rank == pytest.approx(slow_lexrank(vectors.toarray()), abs=1e-8)
    assert rank.sum() == pytest.approx(1.0)


def test_lexrank_of_many_never_forms_the_graph(monkeypatch):
    # Above the limit links are weighted by similarity.
    monkeypatch.setattr("variegate.text.cluster_view._LARGEST_GRAPH", 2)
    X = unit_rows(sparse.csr_array(np.random.default_rng(0).random((5, 3))))
    similar = (X @ X.T).toarray()
    walk = similar / similar.sum(axis=1, keepdims=True)
    values, left = np.linalg.eig((0.15 / 5 + 0.85 * walk).T)
    first = np.real(left[:, np.argmax(np.real(values))])
    assert lexrank(X) == pytest.approx(first / first.sum(), abs=1e-8)


# A cluster as the learner sees it --------------------------------------------------


def test_candidates_are_distinct_sentences_of_the_body():
    view = ClusterView.from_cluster(STORM_CLUSTER)
    assert "A storm closed the harbour of Aarhus on Monday morning." in view.texts
    # The second document repeats it word for word: one candidate, no headline, no date.
    assert len(set(view.texts)) == len(view.texts) == 9
    kinds = {view.sentences[i].kind for i in view.candidates}
    assert kinds == {"body"}
    assert any(s.kind == "headline" for s in view.sentences)
    for sentence in view.sentences:
        source = STORM_CLUSTER.documents[sentence.document].text
        assert source[sentence.start : sentence.end] == sentence.text


def test_fragments_are_no_candidates_unless_all_are():
    view = ClusterView.from_cluster(
        Cluster([Document("Yes. The ferry left the harbour at noon.")])
    )
    assert view.texts == ["The ferry left the harbour at noon."]
    assert ClusterView.from_cluster(Cluster([Document("Yes. No.")])).texts == [
        "Yes.",
        "No.",
    ]


def test_no_sentence_at_all():
    with pytest.raises(ValueError, match="storm-9: no sentence was found"):
        ClusterView.from_cluster(Cluster([Document("... --- ...")], id="storm-9"))


@pytest.mark.parametrize("features", FEATURE_SETS)
@pytest.mark.parametrize("cluster", CLUSTERS, ids=lambda c: c.id)
def test_features_are_z_scored(cluster, features):
    Z, names = quality_features(ClusterView.from_cluster(cluster), features)
    assert Z.shape[1] == len(names) == len(set(names))
    assert Z.mean(axis=0) == pytest.approx(np.zeros(len(names)), abs=1e-12)
    deviation = Z.std(axis=0)
    assert np.all((np.abs(deviation - 1.0) < 1e-9) | (deviation == 0.0))


def test_features_by_hand():
    view = ClusterView.from_cluster(BAKERY_CLUSTER)
    Z, names = quality_features(view)

    def top(feature):
        return view.texts[int(np.argmax(Z[:, names.index(feature)]))]

    assert top("begins with a pronoun") == "He bakes and she sells the bread."
    assert top("length").startswith("A young couple won a prize for the rye bread")
    first = Z[:, names.index("position 1")] > 0
    assert [t for t, f in zip(view.texts, first, strict=True) if f] == [
        "The oldest bakery of Ribe opened again after two years.",
        "A young couple won a prize for the rye bread of their bakery in Ribe.",
    ]
    assert top("like the headlines") == (
        "A young couple won a prize for the rye bread of their bakery in Ribe."
    )


def test_one_sentence_has_features_of_zero():
    view = ClusterView.from_cluster(
        Cluster([Document("The ferry left the harbour at noon.")])
    )
    assert not view.quality("full").any()


def test_vectors_of_ones_own():
    view = ClusterView.from_cluster(STORM_CLUSTER)
    vectors = view.similarity(lambda texts: [[len(t), 0.0] for t in texts])
    assert vectors == pytest.approx(np.tile([1.0, 0.0], (len(view), 1)))
    with pytest.raises(ValueError, match="one vector for each of 9 sentences"):
        view.similarity(lambda texts: [[1.0, 2.0]])
    with pytest.raises(ValueError, match="NaN or infinite"):
        view.similarity(lambda texts: [[np.nan]] * len(texts))
