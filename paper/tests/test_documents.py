import json
from dataclasses import replace

import numpy as np
import pytest

from paper.documents import Settings, reproduce
from paper.documents.data import find_data, held_out_parts, rouge_for
from paper.documents.decoders import PaperSummarizer
from paper.documents.rows import SCORES, paired_rows, table_rows
from paper.documents.similarities import N_BUCKETS, bucketed
from paper.learned import ROWS
from text_instances import BAKERY, BAKERY_AGAIN, CLUSTERS, STORM, STORM_AGAIN
from variegate.text import Cluster, ClusterView

pytestmark = pytest.mark.paper

TINY = Settings(
    n_runs=2,
    n_samples=50,
    lambdas=(1.0,),
    ridges=(1e-2,),
    omegas=(0.5, 2.0),
    n_bootstrap=50,
    long_budget="30w",
    short_budget="120b",
    review_budget="90c",
    sizes=(2,),
    penalties=(1e-2,),
    n_inner_steps=5,
    max_iter=10,
)


def write_lines(path, entries):
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))


def write_data(folder):
    """Write a folder with the files that the experiment reads."""
    folder.mkdir()
    texts = {
        "T0": (STORM, STORM_AGAIN),
        "T1": (BAKERY, BAKERY_AGAIN),
        "T2": (STORM, BAKERY),
    }
    references = {topic: CLUSTERS[topic == "T1"].references for topic in texts}
    news = [
        {
            "id": f"{topic}.{language}",
            "topic": topic,
            "language": language,
            "documents": [{"id": "a", "text": one}, {"id": "b", "text": two}],
            "references": [references[topic][0], one.split("\n")[0] + "."],
        }
        for topic, (one, two) in texts.items()
        for language in ("english", "czech")
    ]
    write_lines(folder / "multiling2011.jsonl", news)
    systems = [{"id": t, "peer": "ID1", "summary": texts[t][0][-60:]} for t in texts]
    write_lines(folder / "multiling2011_systems.jsonl", systems)
    reviews = [
        {
            "id": f"r{k}",
            "split": split,
            "documents": [STORM, BAKERY],
            "references": ["A storm closed the harbour.", "Bread won a prize."],
        }
        for k, split in enumerate(["train", "train", "val"])
    ]
    write_lines(folder / "fewsum.jsonl", reviews)
    return folder


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_whole_experiment_on_a_tiny_folder(tmp_path):
    data = write_data(tmp_path / "data")
    outcome = reproduce(tmp_path / "out", TINY, data, jobs=1)
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    rows = {(row["set"], row["method"]): row for row in results["rows"]}
    for name, n_clusters in (
        ("multiling english 250w", 3),
        ("multiling english 665b", 3),
        ("multiling all languages 250w", 6),
        ("fewsum 300c", 1),
    ):
        for method in ("MLE+COS", "LME+COS", "MLE+MKR", "LME+MKR", "lead", "oracle"):
            row = rows[name, method]
            assert row["n_clusters"] == n_clusters
            for score in SCORES:
                assert 0.0 <= row[score] <= 1.0
        assert rows[name, "LME+MKR"]["se"]["rouge_1_f"] is not None
        assert rows[name, "lead"]["se"]["rouge_1_f"] is None
    assert ("multiling english 250w", "official ID1") in rows
    assert ("multiling czech 250w", "official ID1") not in rows
    assert [row["omega"] for row in results["omega"]] == [0.5, 2.0]
    assert len(outcome.claims) == 6
    report = (tmp_path / "out" / "report.md").read_text()
    for picture in ("omega.png", "multiling-english-250w.png", "fewsum-300c.png"):
        assert picture in report
        assert (tmp_path / "out" / picture).stat().st_size > 10_000
    assert str(tmp_path) not in report + json.dumps(results)
    assert not list((tmp_path / "out").glob(".unfinished*"))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_test_data_are_judged_and_not_learned_from(tmp_path):
    data, test = write_data(tmp_path / "data"), write_data(tmp_path / "test")
    lines = (test / "multiling2011.jsonl").read_text().splitlines()
    (test / "multiling2011.jsonl").write_text(lines[0] + "\n")
    outcome = reproduce(tmp_path / "out", TINY, data, test)
    rows = {(row["set"], row["method"]): row for row in outcome.results["rows"]}
    assert rows["multiling english 250w", "LME+MKR"]["n_clusters"] == 1
    assert rows["fewsum 300c", "LME+MKR"]["n_clusters"] == 3
    assert {entry["held_out"] for entry in outcome.results["chosen"]} >= {"T0"}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_only_the_rows_that_are_asked_for(tmp_path):
    data = write_data(tmp_path / "data")
    rows = (*ROWS, "lead")
    outcome = reproduce(tmp_path / "out", replace(TINY, rows=rows), data)
    found = {(row["set"], row["method"]): row for row in outcome.results["rows"]}
    assert {method for _, method in found} == {"LME+MKR", *rows}
    for row in found.values():
        for score in SCORES:
            assert 0.0 <= row[score] <= 1.0
        random = row["method"] in ("LME+MKR", "LME+KINDS", "LME+METRIC")
        assert (row["se"]["rouge_1_f"] is not None) == random
    assert outcome.results["omega"] == []
    own = {(c["kind"], c["method"]): c for c in outcome.results["own_choices"]}
    assert {method for _, method in own} == set(ROWS) - {"LME+MKR"}
    assert own["long", "LME+KINDS"]["block"] in ("roles", "words")
    assert own["reviews", "LME+MKR, expected-f"]["beta"] in (1.0, 2.0)
    assert "beta" not in own["short", "LME+METRIC"]
    assert "Beyond the paper" in (tmp_path / "out" / "report.md").read_text()


def test_a_row_that_there_is_not(tmp_path):
    data = write_data(tmp_path / "data")
    with pytest.raises(ValueError, match=r"no row 'LME'; there are \['MLE\+COS', "):
        reproduce(tmp_path / "out", replace(TINY, rows=("LME",)), data)


def test_buckets_keep_products_on_average():
    view = ClusterView.from_cluster(CLUSTERS[0])
    vectors, buckets = view.vectors, bucketed(view)
    assert buckets.shape == (len(view), N_BUCKETS)
    # Entries are sums of signed weights: where words share a bucket they shrink.
    weight = np.abs(vectors.toarray()).sum(axis=1)
    assert (np.abs(buckets).sum(axis=1) <= weight + 1e-12).all()
    exact, found = (vectors @ vectors.T).toarray(), buckets @ buckets.T
    assert np.abs(found - exact).mean() < 0.05


def record(cluster, method, runs, language="english"):
    return {
        "kind": "long",
        "judged": cluster,
        "language": language,
        "method": method,
        "runs": [[value] * 6 for value in runs],
    }


def test_rows_by_hand():
    records = [
        record("a", "LME+MKR", [0.2, 0.4]),
        record("b", "LME+MKR", [0.4, 0.8]),
        record("a", "lead", [0.1]),
        record("b", "lead", [0.3]),
    ]
    rows = {r["method"]: r for r in table_rows(records) if "english" in r["set"]}
    assert rows["LME+MKR"]["rouge_1_f"] == pytest.approx(0.45)
    # Means of the runs are 0.3 and 0.6: their standard error is 0.15.
    assert rows["LME+MKR"]["se"]["rouge_2_r"] == pytest.approx(0.15)
    assert rows["lead"]["n_clusters"] == 2
    pair = paired_rows(TINY, records, [("LME+MKR", "lead")])[0]
    # Differences of 0.2 and 0.3: their mean and, over bootstrap samples, their range.
    assert pair["difference"]["rouge_1_f"] == pytest.approx(0.25)
    assert 0.2 - 1e-12 <= pair["low"]["rouge_1_f"] < pair["high"]["rouge_1_f"]
    assert pair["high"]["rouge_1_f"] <= 0.3 + 1e-12


def test_scorers(tmp_path):
    english, czech = Cluster([], language="english"), Cluster([], language="czech")
    assert not rouge_for("long", english, tmp_path).unicode
    assert not rouge_for("long", english, tmp_path).stem
    assert rouge_for("long", czech, tmp_path).unicode
    short = rouge_for("short", english, tmp_path)
    assert short.stem
    assert short.max_bytes == 665


def test_parts_hold_every_topic_once():
    parts = held_out_parts(["a", "b", "c", "d", "e"], 2)
    assert sorted(np.concatenate(parts)) == ["a", "b", "c", "d", "e"]
    assert len(held_out_parts(["a"], 3)) == 1


def test_data_that_are_not_there(tmp_path, monkeypatch):
    monkeypatch.delenv("VARIEGATE_DATA", raising=False)
    with pytest.raises(ValueError, match=r"no multiling2011.jsonl in .*--data DIR or"):
        find_data(tmp_path)
    monkeypatch.setenv("VARIEGATE_DATA", str(write_data(tmp_path / "d")))
    assert find_data(None) == tmp_path / "d"


def write_duc(folder):
    """Write a folder of the shape in which NIST distributes DUC 2003 and 2004."""
    for year, number in (("duc2003", 30001), ("duc2004", 31001)):
        models = folder / year / "models"
        models.mkdir(parents=True)
        for k, (one, two) in enumerate([(STORM, STORM_AGAIN), (BAKERY, BAKERY_AGAIN)]):
            name = f"d{number + k}"
            cluster = folder / year / "docs" / f"{name}t"
            cluster.mkdir(parents=True)
            for file, text in (("APW1.0001", one), ("NYT1.0002", two)):
                (cluster / file).write_text(
                    f"<DOC><DOCNO>{file}</DOCNO><TEXT>\n<P>{text}</P>\n</TEXT></DOC>"
                )
            for person in "AB":
                path = models / f"{name.upper()}.M.100.T.{person}"
                path.write_text(CLUSTERS[k].references[0])
    return folder


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_papers_own_protocol(tmp_path):
    data, duc = write_data(tmp_path / "data"), write_duc(tmp_path / "duc")
    outcome = reproduce(tmp_path / "out", TINY, data, duc=duc)
    rows = {(row["set"], row["method"]): row for row in outcome.results["rows"]}
    assert rows["duc 2004 665b", "LME+MKR"]["n_clusters"] == 2
    assert "duc 2004 665b" in outcome.claims[0].measured


def test_a_folder_that_is_not_ducs(tmp_path):
    data = write_data(tmp_path / "data")
    with pytest.raises(ValueError, match=r"no folder duc2003/docs in .*--duc DIR"):
        reproduce(tmp_path / "out", TINY, data, duc=tmp_path)


# Decoders --------------------------------------------------------------------------


@pytest.mark.parametrize("decoder", ["mbr", "mbr-samples", "greedy"])
@pytest.mark.parametrize("consensus", ["rouge-1", "rouge-1+2"])
def test_decoders(decoder, consensus):
    model = PaperSummarizer(
        similarity="cos",
        features="paper",
        decoder=decoder,
        consensus=consensus,
        budget="30w",
        n_samples=100,
        max_iter=1000,
    ).fit(CLUSTERS)
    summary = model.summarize([STORM], "30w")
    assert len(summary.text.split()) <= 30
    among = "best agreement among 100 samples" in summary.as_dict()["stop_reason"]
    assert among == (decoder == "mbr-samples")


@pytest.mark.parametrize("name", ["decoder", "consensus"])
def test_unknown_decoders(name):
    with pytest.raises(ValueError, match=f"unknown {name} 'map'"):
        PaperSummarizer(**{name: "map"}).fit(CLUSTERS)
