"""DATA from which nothing can be learned, or that no export can hold whole."""

import io
import json
import queue

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.ipc as ipc
import pyarrow.parquet as parquet
import pytest
from studio_fakes import open_client

import variegate as vg
from variegate.material.base import MaterialError
from variegate.material.opening import open_material
from variegate.studio.export import EXPORTS, export_file
from variegate.studio.group_learner import GroupLearner, NothingToLearnError
from variegate.studio.proposals import Proposer
from variegate.studio.session import Session
from variegate.studio.store import Store
from variegate.studio.teacher import Answer, Task, Teacher, _MessageLoop

NUMBERS = [1.0, 2.0, 3.0]


def opened(tmp_path, columns, **roles):
    """Return a table of these columns, written as an Arrow file, as material."""
    table = pa.table(columns)
    path = tmp_path / "t.arrow"
    with ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table)
    return open_material(path, columns=roles)


def learner_of(material):
    groups = range(len(material.names))
    sets = [material.ground_set(group) for group in groups]
    return GroupLearner(sets, material.kernels, material.feature_names)


#: Tables whose rows have the same features, or none.
ALIKE = {
    "one row": {"a": [1.0]},
    "zeros": {"a": [0.0] * 6},
    "constant": {"a": [1.0] * 6, "b": ["x", "y", "z"] * 2},
    "two constant columns": {"a": [1.0] * 6, "b": [True] * 6},
    "empty cells": {"a": pa.nulls(6, pa.float64())},
    "one vector": {"a": [1.0] * 6, "v": [[1.0, 2.0]] * 6},
    "vectors of zeros": {"v": [[0.0, 0.0]] * 6},
    "one row with a vector": {"a": [1.0], "v": [[1.0, 2.0]]},
}


@pytest.mark.parametrize("columns", ALIKE.values(), ids=ALIKE)
def test_nothing_is_learned_where_nothing_differs(tmp_path, columns):
    with pytest.raises(NothingToLearnError, match="all items have the same features"):
        learner_of(opened(tmp_path, columns))


#: Tables with some difference, and the numbers of groups.
DIFFERENT = {
    "two rows": {"a": [1.0, 2.0]},
    "one row a group": {"g": ["p", "q", "r"], "a": NUMBERS},
    "constant in groups": {"g": list("ppqq"), "a": [1.0, 1.0, 2.0, 2.0]},
    "vectors only": {"a": [1.0] * 3, "v": [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]},
    "one vector": {"a": NUMBERS, "v": [[1.0, 2.0]] * 3},
}


@pytest.mark.parametrize("columns", DIFFERENT.values(), ids=DIFFERENT)
def test_something_is_learned_where_anything_differs(tmp_path, columns):
    roles = {"group": "g"} if "g" in columns else {}
    material = opened(tmp_path, columns, **roles)
    learner = learner_of(material)
    learner.warm_up()
    picks = {group: np.array([0]) for group in range(len(material.names))}
    learned = learner.learn(picks)
    assert learned.n_groups == len(picks)
    for name in EXPORTS:
        assert export_file(name, material, picks, learned)


def test_kernels_for_which_the_groups_do_not_suffice_are_passed_over():
    ground_sets = [vg.GroundSet(np.array([[1.0], [2.0]]), np.ones((2, 2)))]
    bandwidths = vg.MultipleKernel(linear=True)
    learner = GroupLearner(
        ground_sets, {"Gaussians": bandwidths, "linear": vg.Linear()}, ["a"]
    )
    assert isinstance(learner.candidate.kernel, vg.Linear)
    with pytest.raises(ValueError, match="no two items of any ground set differ"):
        GroupLearner(ground_sets, {"Gaussians": bandwidths}, ["a"])


def test_the_loop_answers_every_task_with_the_problem():
    class EndError(Exception):
        """The test is over."""

    messages, sent = queue.Queue(), []
    ground_sets = [vg.GroundSet(np.ones((2, 1)))]
    for one in [(ground_sets, {"linear": vg.Linear()}, ["a"], {}), Task(1, {0: [0]})]:
        messages.put(one)
    messages.put("something else")
    messages.put(Task(2, {0: [1]}))

    def send(answer):
        sent.append(answer)
        if answer.serial == 2:
            raise EndError

    with pytest.raises(EndError):
        _MessageLoop(messages, send).run()
    assert [answer.serial for answer in sent] == [0, 1, 2]
    assert all(answer.is_last for answer in sent)
    assert len({answer.problem for answer in sent}) == 1
    assert sent[0].problem.startswith("nothing can be learned: all items")


def test_the_loop_says_why_there_is_no_learner():
    messages, sent = queue.Queue(), []
    messages.put(([], {}, [], {}))

    def send(answer):
        sent.append(answer)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _MessageLoop(messages, send).run()
    assert sent == [sent[0]]
    assert isinstance(sent[0], Answer)
    assert sent[0].problem.startswith("IndexError: ")


@pytest.mark.faults
@pytest.mark.parametrize("columns", [ALIKE["one row"], ALIKE["constant"]])
def test_the_studio_takes_picks_where_nothing_can_be_learned(tmp_path, columns, capfd):
    material = opened(tmp_path, {name: list(v) for name, v in columns.items()})
    store = Store(tmp_path / "picks.sqlite", "t.csv")
    session = Session(material, store, Teacher(material), Proposer(material))
    session.start()
    try:
        client = open_client(session)
        for picked in (True, False, True):
            body = {"group": 0, "item": 0, "picked": picked}
            assert client.post("/api/pick", body).status == 200
        assert client.post("/api/done", {"group": 0}).status == 200
        assert session.teacher.wait(60)
        state = client.get("/api/state").json
        assert state["message"].startswith("nothing can be learned: all items have")
        assert (state["n_done"], state["learning"]) == (1, False)
        for path in ("learned", "groups/0", "groups/0/proposal", "groups/0/map"):
            assert client.get(f"/api/{path}").status == 200
        for name in EXPORTS:
            answer = client.get(f"/export/{name}")
            assert answer.status == (404 if name == "model.json" else 200)
        assert "nothing can be learned" in client.get("/export/model.json").error
    finally:
        session.close()
    assert "Fatal" not in capfd.readouterr().err


# Columns that formats cannot hold -----------------------------------------------------


def array(values, kind):
    return pa.array(values, kind)


#: Columns, and the exports that leave them out.
COLUMNS = {
    "binary": (array([b"x", b"\xff", b"z"], pa.binary()), ("csv", "jsonl")),
    "fixed binary": (array([b"x", b"y", b"z"], pa.binary(1)), ("csv", "jsonl")),
    "categories": (pa.array([b"x", b"y", b"x"]).dictionary_encode(), ("csv", "jsonl")),
    "map": (
        array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int64())),
        ("csv", "jsonl"),
    ),
    "struct": (pa.array([{"k": 1}] * 3), ("csv",)),
    "lists of binary": (pa.array([[b"\xff"]] * 3), ("csv", "jsonl")),
    "lists of maps": (
        array([[[("k", 1)]]] * 3, pa.list_(pa.map_(pa.string(), pa.int64()))),
        ("csv", "jsonl"),
    ),
    "lists of records": (pa.array([[{"k": 1}]] * 3), ()),
    "lists of dates": (array([[1], [2], [3]], pa.list_(pa.date32())), ()),
    "durations": (array([1, 2, 3], pa.duration("s")), ("csv", "jsonl")),
    "intervals": (
        array([(1, 2, 3)] * 3, pa.month_day_nano_interval()),
        ("csv", "jsonl", "parquet"),
    ),
    "views": (array(["x", "y", "z"], pa.string_view()), ()),
    "nulls": (pa.nulls(3), ()),
}


@pytest.mark.parametrize(("column", "without"), COLUMNS.values(), ids=COLUMNS)
def test_columns_that_a_format_cannot_hold_are_left_out(tmp_path, column, without):
    material = opened(tmp_path, {"a": NUMBERS, "m": column, "z": ["p", "q", "r"]})
    assert [material.items(0)[n].title for n in range(3)] != []
    noted = [note.split()[0].removeprefix("picks.") for note in material.notes]
    assert noted == list(without)
    assert all("leaves out what it cannot hold: 'm' (" in n for n in material.notes)
    found = {
        kind: export_file(f"picks.{kind}", material, {0: np.array([1])}, None)
        for kind in ("csv", "jsonl", "parquet")
    }
    names = {
        "csv": arrow_csv.read_csv(io.BytesIO(found["csv"])).column_names,
        "jsonl": list(json.loads(found["jsonl"].splitlines()[0])),
        "parquet": parquet.read_table(io.BytesIO(found["parquet"])).column_names,
    }
    for kind, columns in names.items():
        kept = ["a", "z"] if kind in without else ["a", "m", "z"]
        assert [name for name in columns if name in "amz"] == kept


def test_columns_that_cannot_be_reordered_are_not_opened(tmp_path):
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([3]), pa.array(["x"]))
    material = opened(tmp_path, {"a": NUMBERS, "m": runs})
    (note,) = material.notes
    assert note.startswith("columns that Arrow cannot reorder are left out: 'm' (run_")
    assert export_file("picks.csv", material, {0: np.array([1])}, None)


def test_a_model_that_cannot_be_learned_is_not_promised(tmp_path):
    material = opened(tmp_path, {"a": NUMBERS})
    with pytest.raises(MaterialError, match=r"^it failed$"):
        export_file("model.json", material, {0: np.array([1])}, None, 1.0, "it failed")
