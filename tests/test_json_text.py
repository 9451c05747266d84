"""JSON of users: how deep it is, before a parser sees it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from variegate.files import json_text
from variegate.files.json_text import DEEPEST, DepthError, JsonLines, load_json
from variegate.files.models import ModelFileError, load
from variegate.material.opening import kind_of
from variegate.tables import TableError, TableSelector
from variegate.tables.reading import TableFile, TableFileError
from variegate.text.readers import read_clusters, read_questions

VALUES = st.recursive(
    st.none() | st.floats(allow_nan=False) | st.text('[]{}"\\a\n', max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text('[]{}"\\', max_size=3), inner, max_size=3)
    ),
)


def depth_of(value):
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, list):
        return 0
    return 1 + max(map(depth_of, value), default=0)


@given(VALUES, st.integers(0, 4))
def test_depth_is_counted_as_by_hand(value, deepest):
    text = json.dumps(value)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_text, "DEEPEST", deepest)
        if depth_of(value) <= deepest:
            assert load_json(text) == load_json(text.encode()) == value
        else:
            for one in (text, text.encode()):
                with pytest.raises(DepthError, match=f"more than {deepest} deep"):
                    load_json(one)


@pytest.mark.parametrize("text", ['"' + "[" * 999, '"' + '\\"[' * 999, '["\\'])
def test_a_text_that_does_not_end_is_left_to_the_parser(text):
    with pytest.raises(json.JSONDecodeError):
        load_json(text)


def nested(depth):
    return "[" * depth + "]" * depth


@pytest.mark.parametrize("size", [1, 7, 64, 1000])
def test_lines_are_checked_over_the_ends_of_blocks(tmp_path, size):
    path = tmp_path / "a.jsonl"
    path.write_text(f"{nested(DEEPEST)}\n" * 3 + nested(DEEPEST + 1))
    with JsonLines(str(path), 10_000) as file, pytest.raises(DepthError):
        list(iter(lambda: file.read(size), b""))
    path.write_text(f"{nested(DEEPEST)}\n" * 3)
    with JsonLines(str(path), 10_000) as file:
        assert b"".join(iter(lambda: file.read(size), b"")) == path.read_bytes()


# What reads JSON of users -------------------------------------------------------------

DEEP = [DEEPEST + 1, 1000, 100_000]


@pytest.mark.parametrize("depth", DEEP)
def test_rows_of_json_lines(tmp_path, depth):
    path = tmp_path / "a.jsonl"
    row = f'{{"a": {nested(depth - 1)}}}\n'
    path.write_text(row)
    with pytest.raises(TableFileError, match=r"a\.jsonl has a row in which lists"):
        TableFile(path)


def test_rows_beyond_those_that_tell_the_types(tmp_path):
    path = tmp_path / "a.jsonl"
    rows = f'{{"b": "{"a" * 200}"}}\n' * 100_000
    path.write_text(f'{rows}{{"a": {nested(100_000)}}}\n')
    table = TableFile(path)
    with pytest.raises(TableFileError, match=r"a\.jsonl has a row in which lists"):
        for _ in table.batches():
            pass


@pytest.mark.parametrize("line", ["null", " \t null]", "\ufeffnull", "\r\nnull"])
@pytest.mark.parametrize("n_before", [0, 1, 100_000])
def test_rows_of_null(tmp_path, line, n_before):
    path = tmp_path / "a.jsonl"
    text = f'{{"b": "{"a" * 200}"}}\n' * n_before + f'{line}\n{{"b": "a"}}\n'
    path.write_text(text, encoding="utf-8", newline="")
    with pytest.raises(TableFileError, match=r"one a line .a line is null, not an obj"):
        list(TableFile(path).batches())


def test_blank_lines_are_read(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('\n \n{"a": 1}\n' + "\r\n" * 200_000 + '{"a": 2}\n')
    assert sum(batch.num_rows for batch in TableFile(path).batches()) == 2


def test_cells_of_null_are_read(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"a": 1, "b":\tnull}\n{"a":null, "b": 2}\n')
    assert sum(batch.num_rows for batch in TableFile(path).batches()) == 2


def test_rows_with_few_of_many_keys(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f'{{"k{row}": 1}}\n' for row in range(10_000)))
    with pytest.raises(TableFileError, match="of 10,000 different keys, rows have few"):
        TableFile(path)
    keys = "".join(f'{{"k{row}": 1}}\n' for row in range(500))
    path.write_text(keys + '{"k1": 1}\n' * 2_000_000)
    with pytest.raises(TableFileError, match="of 500 different keys, rows have few"):
        TableFile(path)
    # Those that follow the first 16 MB.
    filling = f'{{"k1": 1, "b": "{"a" * 1000}"}}\n' * 17_000
    path.write_text(keys + filling + "{}\n" * 2_000_000)
    table = TableFile(path)
    with pytest.raises(TableFileError, match="of 501 different keys, rows have few"):
        list(table.batches())


def test_rows_of_allowed_depth_are_read(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(f'{{"a": {nested(DEEPEST - 1)}, "b": "{"[" * 1000}"}}\n')
    assert sum(batch.num_rows for batch in TableFile(path).batches()) == 1


@pytest.mark.parametrize("depth", DEEP)
def test_clusters_and_questions(tmp_path, depth):
    path = tmp_path / "a.jsonl"
    path.write_text(f'{{"documents": {nested(depth)}}}\n')
    for read in (read_clusters, read_questions):
        with pytest.raises(ValueError, match=r"a\.jsonl, line 1: lists or objects are"):
            read(path)
    assert kind_of(path) == "table"  # it cannot be read as documents


@pytest.mark.parametrize("depth", DEEP)
def test_model_files(tmp_path, depth):
    path = tmp_path / "a.json"
    path.write_text(nested(depth))
    with pytest.raises(ModelFileError, match="nested more than 64 deep"):
        load(path)


def test_cells_of_vectors(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("q,y,n,v\n" + f'a,1,1,"{nested(1000)}"\n' * 3)
    select = TableSelector(group="q", label="y", quality="n", similarity="v")
    with pytest.raises(TableError, match=r"column 'v' holds .* in row 1, which is not"):
        select.fit(path)
