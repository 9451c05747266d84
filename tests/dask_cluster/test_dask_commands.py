"""``variegate fit``, ``select``, ``evaluate`` and ``gather`` on a cluster."""

import json
import os
import sys

import dask
import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from distributed import LocalCluster

import variegate as vg
from folder_instances import cut, folder_of, rows_of, some_table, write_folder
from table_instances import COLUMNS, caller, fails, names_in, succeeds
from variegate._install import install_command
from variegate.cli import progress
from variegate.dask import DaskEngine
from variegate.partitions.problem import Sums
from variegate.tables import fitting

pytestmark = pytest.mark.cluster

#: Soon there, and alike everywhere.
FIT = (*COLUMNS, "--omega", "1", "--kernel", "linear", "--max-iter", "20")


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    """A labelled folder, and a model that was fitted to it at home."""
    place = tmp_path_factory.mktemp("samples")
    folder = folder_of(place / "train")
    vg.tables.TableSelector(
        group="query",
        label="chosen",
        item="item",
        quality=["score", "freshness"],
        similarity="embedding",
        omega=1.0,
        kernel="linear",
    ).fit(folder).save(place / "model.json")
    return place


@pytest.fixture
def variegate(monkeypatch, capsys, tmp_path, samples):
    """Run a command in a folder with the samples."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train").mkdir()
    for path in (samples / "train").iterdir():
        os.link(path, tmp_path / "train" / path.name)
    os.link(samples / "model.json", tmp_path / "model.json")
    return caller(monkeypatch, capsys)


@pytest.fixture
def cluster(client):
    """Options that lead to the cluster of the tests; Dask is told its certificate."""
    security = client.security
    config = {
        "distributed.comm.tls.ca-file": security.tls_ca_file,
        "distributed.comm.tls.client.cert": security.tls_client_cert,
        "distributed.comm.tls.client.key": security.tls_client_key,
    }
    with dask.config.set(config):
        yield ("--cluster", client.scheduler.address)


def damage(path):
    """Cut a file, and not those that are linked to it."""
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content[:-100])


# What the commands do -----------------------------------------------------------------


def test_fit_learns_what_it_does_at_home(variegate, cluster, tmp_path):
    succeeds(variegate("fit", "train", *FIT, "--jobs", 1, "-o", "home.json"))
    status, output, messages = variegate("fit", "train", *FIT, *cluster, "-o", "a.json")
    assert status == 0, messages
    assert "score" in output
    assert messages.splitlines()[-1] == "written: a.json"
    home, there = vg.load("home.json"), vg.load("a.json")
    assert type(there) is type(home)
    np.testing.assert_allclose(
        there.models_[0].theta_, home.models_[0].theta_, rtol=1e-9
    )
    assert there.training_["n_groups"] == home.training_["n_groups"] == 24
    # The checkpoint is gone.
    assert names_in(tmp_path) == ["a.json", "home.json", "model.json", "train"]


def test_select_writes_a_file_for_each_and_only_what_is_missing(
    variegate, cluster, tmp_path
):
    select = ("select", "train", "--model", "model.json")
    said = succeeds(variegate(*select, "-o", "one.parquet"))
    home = parquet.read_table("one.parquet")
    select = (*select, *cluster, "-o", "chosen")
    assert succeeds(variegate(*select)) == said
    assert said.startswith(f"{home.num_rows:,} of 144 rows chosen from 24 groups")
    assert rows_of(tmp_path / "chosen").equals(home)
    files = names_in("train")
    assert names_in("chosen") == [".manifest.sqlite", *files]
    again = json.loads(succeeds(variegate(*select, "--json")))
    assert (again["files"], again["written"], again["rows"]) == (4, 0, 144)
    (tmp_path / "chosen" / files[2]).unlink()
    again = json.loads(succeeds(variegate(*select, "--json")))
    assert (again["written"], again["chosen"]) == (1, home.num_rows)
    assert rows_of(tmp_path / "chosen").equals(home)
    assert fails(variegate(*select, "--k", 2), "(k was None and is 2)")


def test_evaluate_says_what_it_does_at_home(variegate, cluster, samples):
    evaluate = ("evaluate", "train", "--model", "model.json", "--json")
    home = json.loads(succeeds(variegate(*evaluate)))
    there = json.loads(succeeds(variegate(*evaluate, *cluster)))
    assert there["groups"] == home["groups"] == 24
    assert there["scores"].keys() == home["scores"].keys()
    for name, scores in home["scores"].items():
        for score, interval in scores.items():
            assert there["scores"][name][score] == pytest.approx(interval, rel=1e-9)


def test_gather_writes_what_it_does_at_home(variegate, cluster, tmp_path):
    table = some_table()
    order = np.random.default_rng(0).permutation(table.num_rows)
    write_folder(tmp_path / "mixed", cut(table.take(pa.array(order)), 50))
    fit = ("fit", "mixed", *FIT, *cluster, "-o", "mixed.json")
    succeeds(variegate(*fit))
    table = ("fit", "mixed", *FIT, "-o", "home.json")
    succeeds(variegate(*table))
    theta = [vg.load(f"{name}.json").models_[0].theta_ for name in ("mixed", "home")]
    np.testing.assert_array_equal(*theta)
    gather = ("gather", "mixed", "--group", "query")
    succeeds(variegate(*gather, "-o", "home"))
    succeeds(variegate(*gather, *cluster, "-o", "there"))
    assert names_in("there") == names_in("home")
    for name in names_in("home"):
        here = parquet.read_table(tmp_path / "home" / name)
        assert parquet.read_table(tmp_path / "there" / name).equals(here)


def test_workers_of_ones_own(variegate, tmp_path):
    command = ("select", "train", "--model", "model.json", "--workers", 1)
    succeeds(variegate(*command, "-o", "chosen"))
    assert names_in("chosen") == [".manifest.sqlite", *names_in("train")]


def test_a_report_of_a_fit_on_a_cluster(variegate, cluster, tmp_path):
    fit = ("fit", "train", *FIT, *cluster, "-o", "a.json", "--report", "report.html")
    succeeds(variegate(*fit))
    assert "freshness" in (tmp_path / "report.html").read_text()


# Going on -----------------------------------------------------------------------------


def stop(*args, **kwargs):
    raise KeyboardInterrupt


def test_an_interrupted_fit_goes_on(variegate, cluster, tmp_path, monkeypatch):
    fit = ("fit", "train", *FIT, *cluster)
    succeeds(variegate(*fit, "-o", "whole.json"))
    with monkeypatch.context() as patched:
        patched.setattr(fitting, "judge_groups", stop)
        status, _, messages = variegate(*fit, "-o", "a.json")
    assert status == 130
    assert "run it again, and it resumes from a.json.checkpoint" in messages
    assert not (tmp_path / "a.json").exists()
    asked = []

    class Counting(DaskEngine):
        def tree_sum(self, *args):
            asked.append(super().tree_sum(*args))
            return asked[-1]

    monkeypatch.setattr("variegate.dask.DaskEngine", Counting)
    succeeds(variegate(*fit, "-o", "a.json"))
    assert not any(isinstance(answer, Sums) for answer in asked)
    theta = [vg.load(f"{name}.json").models_[0].theta_ for name in ("a", "whole")]
    np.testing.assert_array_equal(*theta)
    assert not (tmp_path / "a.json.checkpoint").exists()


def test_the_checkpoint_of_another_run(variegate, cluster, tmp_path, monkeypatch):
    fit = ("fit", "train", *FIT, *cluster, "-o", "a.json")
    checkpoint = tmp_path / "a.json.checkpoint"
    with monkeypatch.context() as patched:
        patched.setattr(fitting, "judge_groups", stop)
        assert "resumes from a.json.checkpoint" in variegate(*fit)[2]
    other = (*fit, "--lam", 1)
    assert fails(
        variegate(*other), "a.json.checkpoint is the checkpoint of another", "lam"
    )
    succeeds(variegate(*fit))
    assert not checkpoint.exists()
    checkpoint.write_text("my notes")
    assert fails(variegate(*fit, "--force"), "a.json.checkpoint is not a checkpoint")
    assert checkpoint.read_text() == "my notes"


def test_an_interrupted_select_says_what_remains(variegate, cluster, monkeypatch):
    monkeypatch.setattr("variegate.tables.fitted.survey_table", stop)
    select = ("select", "train", "--model", "model.json", *cluster, "-o", "chosen")
    status, _, messages = variegate(*select)
    assert status == 130
    assert "run it again, and it does only what is missing" in messages


def test_what_cannot_be_learned_leaves_no_checkpoint(variegate, cluster, tmp_path):
    fit = ("fit", "train", *FIT, "--quality", "scroe", *cluster, "-o", "a.json")
    assert fails(variegate(*fit), "scroe")
    assert names_in(tmp_path) == ["model.json", "train"]


def test_the_checkpoint_stays_until_the_model_is_there(
    variegate, cluster, tmp_path, monkeypatch
):
    fit = ("fit", "train", *FIT, *cluster, "-o", "a.json")
    with monkeypatch.context() as patched:
        patched.setattr(vg.tables.TableSelector, "save", stop)
        assert variegate(*fit)[0] == 130
    assert (tmp_path / "a.json.checkpoint").exists()
    succeeds(variegate(*fit))
    assert not (tmp_path / "a.json.checkpoint").exists()


# Progress -----------------------------------------------------------------------------


def test_progress_shows_iterations_files_and_workers(
    variegate, cluster, monkeypatch, watch
):
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    lines = watch(width=120)
    _, _, messages = variegate("fit", "train", *FIT, *cluster, "-o", "a.json")
    assert any("of 4 files, 2 workers" in line for line in lines(messages))
    learning = [line for line in lines(messages) if "iteration" in line]
    assert any("of at most 20, 2 workers" in line for line in learning)
    assert all(", 2 workers" in line for line in learning)


# What is wrong ------------------------------------------------------------------------


def test_a_file_that_cannot_be_read(variegate, cluster, tmp_path):
    damage(tmp_path / "train" / "part-001.parquet")
    fit = ("fit", "train", *FIT, *cluster, "-o", "a.json")
    assert fails(variegate(*fit), "part-001.parquet is not a Parquet", "--skip-unread")
    select = ("select", "train", "--model", "model.json", *cluster, "-o", "chosen")
    assert fails(variegate(*select), "part-001.parquet", "--skip-unreadable")
    evaluate = ("evaluate", "train", "--model", "model.json", *cluster)
    assert fails(variegate(*evaluate), "part-001.parquet", "--skip-unreadable")
    for command in (fit, select, evaluate):
        status, _, messages = variegate(*command, "--skip-unreadable")
        assert status == 0, messages
        assert "left out as they cannot be read: " in messages
        assert "part-001.parquet" in messages
    assert names_in("chosen") == [
        ".manifest.sqlite", "part-000.parquet", "part-002.parquet", "part-003.parquet",
    ]  # fmt: skip


def test_nobody_answers(variegate):
    fit = ("fit", "train", *FIT, "--cluster", "tcp://127.0.0.1:9", "--timeout", 1)
    assert fails(variegate(*fit, "-o", "a.json"), "no scheduler answers at tcp://127")
    assert not os.path.exists("a.json.checkpoint")


def test_a_cluster_without_workers(variegate, tmp_path):
    with LocalCluster(
        n_workers=0, processes=False, protocol="tcp", host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
    ) as empty:  # fmt: skip
        there = ("--cluster", empty.scheduler_address, "--timeout", 1)
        fit = ("fit", "train", *FIT, *there, "-o", "a.json")
        assert fails(variegate(*fit), "no worker that takes work for 1 s", "is kept")
        assert (tmp_path / "a.json.checkpoint").exists()


AT = ("--cluster", "tcp://127.0.0.1:9")


@pytest.mark.parametrize(
    ("command", "options", "parts"),
    [
        ("fit", (*AT, "--workers", 2), ["--cluster or --workers, one of the two"]),
        ("fit", ("--cluster", "somewhere"), ["such as tcp://HOST:8786, not 'somewh"]),
        ("fit", ("--cluster", "tls://a:1"), ["needs ca-file, client.cert and"]),
        ("fit", ("--timeout", 5), ["--timeout is for --cluster or --workers"]),
        ("fit", ("--skip-unreadable",), ["--skip-unreadable is for --cluster or"]),
        ("fit", ("--workers", 0), ["--workers"]),
        ("fit", (*AT, "--timeout", 0), ["--timeout"]),
        ("fit", (*AT, "--jobs", 2), ["--jobs cannot be used with", "one thread"]),
        ("fit", (*AT, "--device", "cuda"), ["--device cannot", "on their CPUs"]),
        ("fit", (*AT, "--separator", ";"), ["--separator cannot", "need none"]),
        ("select", (*AT, "--method", "mmr"), ["--method cannot", "by a --model"]),
        ("select", (*AT, "--force"), ["--force cannot", "remove the folder"]),
        ("evaluate", (*AT, "--jobs", 2), ["--jobs cannot be used with"]),
        ("evaluate", (*AT, "--model", "other.json"), ["one --model at a time"]),
        ("gather", (*AT, "--workers", 2), ["one of the two"]),
    ],
)
def test_options_that_do_not_go_together(variegate, tmp_path, command, options, parts):
    (tmp_path / "other.json").write_bytes((tmp_path / "model.json").read_bytes())
    needed = {
        "fit": (*FIT, "-o", "a.json"),
        "select": ("--model", "model.json", "-o", "chosen"),
        "evaluate": ("--model", "model.json"),
        "gather": ("--group", "query", "-o", "gathered"),
    }[command]
    assert fails(variegate(command, "train", *needed, *options), *parts)


def test_a_cluster_works_on_folders(variegate, tmp_path):
    select = ("select", "train", "--model", "model.json", *AT, "-o")
    assert fails(variegate(*select, "model.json"), "-o: cannot write", "not a folder")
    assert fails(variegate(*select, "no/chosen"), "there is no folder no")
    fit = ("fit", "nowhere", *FIT, *AT, "-o", "a.json")
    assert fails(variegate(*fit), "there is no file or folder nowhere")


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("fit", ("-o", "a.json")),
        ("select", ("--model", "model.json", "-o", "chosen")),
        ("evaluate", ("--model", "model.json")),
        ("gather", ("--group", "query", "-o", "gathered")),
    ],
)
def test_without_the_extra_it_is_named(variegate, monkeypatch, command, options):
    monkeypatch.delitem(sys.modules, "variegate.dask")
    monkeypatch.setitem(sys.modules, "distributed", None)
    called = variegate(command, "train", *options, "--workers", 2)
    assert fails(called, "needs Dask", install_command("dask"))
