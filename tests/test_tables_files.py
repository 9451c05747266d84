"""Table files: what goes in comes out, in bounded batches, or in one line of words."""

import datetime
import io
import json
import os
import signal
import subprocess
import sys
from decimal import Decimal
from itertools import chain

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from variegate.files import atomic
from variegate.files.atomic import new_file, write_atomic
from variegate.tables.reading import TableFile, TableFileError
from variegate.tables.writing import check_writable, table_writer

NOON = datetime.datetime(2024, 2, 29, 12, 30, 15, 250)
CELLS = {
    "integer": pa.array([1, None, -3]),
    "text": pa.array(["a", None, 'x"\n,\ty']),
    "large": pa.array(["a", None, "ü"], pa.large_string()),
    "category": pa.array(["x", "y", None]).dictionary_encode(),
    "decimal": pa.array([Decimal("1.50"), None, Decimal("-0.25")]),
    "zoned": pa.array([NOON, None, NOON], pa.timestamp("us", "Europe/Berlin")),
    "time": pa.array([NOON, None, NOON], pa.timestamp("ns")),
    "date": pa.array([NOON.date(), None, NOON.date()]),
    "hour": pa.array([NOON.time(), None, NOON.time()]),
    "single": pa.array([0.1, None, 1e-30], pa.float32()),
    "half": pa.array([0.1, None, 2.0]).cast(pa.float16()),
    "view": pa.array(["a", None, "b"], pa.string_view()),
    "nothing": pa.nulls(3),
    "flag": pa.array([True, None, False]),
}
NESTED = {
    "list": pa.array([[0.1, 2.0], None, []], pa.list_(pa.float32())),
    "fixed": pa.array([[0.1, 2.0], None, [3.0, 4.0]], pa.list_(pa.float32(), 2)),
    "struct": pa.array([{"a": 1, "b": ["x"]}, None, {"a": None, "b": None}]),
}
BYTES = {
    "bytes": pa.array([b"\xff", None, b""]),
    "span": pa.array([1, None, 2], pa.duration("s")),
    "map": pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int8())),
}

#: Whether this version of Arrow says how many rows a file has.
COUNTS_ROWS = hasattr(ipc.RecordBatchFileReader, "count_rows")


def as_table(columns):
    fields = [
        pa.field(name, column.type, metadata={"unit": name})
        for name, column in columns.items()
    ]
    return pa.table(
        list(columns.values()), schema=pa.schema(fields, {"made by": "hand"})
    )


def write(path, table, max_chunksize=2):
    with table_writer(path, table.schema) as take:
        for batch in table.to_batches(max_chunksize=max_chunksize):
            take(batch)
    return path


def read(path, columns=None):
    batches = list(TableFile(path).batches(columns))
    return pa.Table.from_batches(batches, batches[0].schema if batches else None)


def pass_over(path):
    for _ in TableFile(path).batches():
        pass


# Round trips ----------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".parquet", ".pq", ".arrow", ".feather", ".ipc"])
def test_typed_formats_keep_everything(tmp_path, suffix):
    table = as_table(CELLS | NESTED | BYTES)
    path = write(tmp_path / f"table{suffix}", table)
    file = TableFile(path)
    assert file.n_rows == (3 if suffix in (".parquet", ".pq") or COUNTS_ROWS else None)
    assert file.schema.equals(table.schema)
    assert file.schema.metadata == {b"made by": b"hand"}
    for name in table.schema.names:
        assert file.schema.field(name).metadata[b"unit"] == name.encode()
    got = read(path)
    got.validate(full=True)
    assert got.equals(table)
    # Each pass begins again, with columns in the order asked.
    assert read(path, ["text", "integer"]).equals(table.select(["text", "integer"]))
    assert [batch.num_rows for batch in file.batches([])] == [
        batch.num_rows for batch in file.batches()
    ]


def test_csv_is_text(tmp_path):
    path = write(tmp_path / "table.csv", as_table(CELLS))
    file = TableFile(path)
    assert (file.format, file.n_rows) == ("csv", None)
    assert set(file.schema.types) == {pa.string()}
    rows = read(path).to_pylist()
    assert set(rows[1].values()) == {"", "y"}
    assert rows[0] | {"half": ""} == {
        "integer": "1",
        "text": "a",
        "large": "a",
        "category": "x",
        "decimal": "1.50",
        "zoned": "2024-02-29T13:30:15.000250+0100",
        "time": "2024-02-29T12:30:15.000250000",
        "date": "2024-02-29",
        "hour": "12:30:15.000250",
        "single": "0.1",
        "half": "",
        "view": "a",
        "nothing": "",
        "flag": "true",
    }
    assert rows[2]["text"] == CELLS["text"][2].as_py()
    assert datetime.datetime.fromisoformat(rows[0]["zoned"]) == NOON.replace(
        tzinfo=datetime.UTC
    )


def test_json_lines(tmp_path):
    path = write(tmp_path / "table.jsonl", as_table(CELLS | NESTED))
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert rows[0]["single"] == 0.1
    assert rows[0]["list"] == [0.1, 2.0]
    assert rows[0]["struct"] == {"a": 1, "b": ["x"]}
    assert rows[0]["decimal"] == "1.50"
    assert set(map(str, rows[1].values())) == {"None", "y"}
    assert rows[2]["list"] == []
    got = read(path)
    assert got["time"].type == pa.string()
    assert got["list"].cast(pa.list_(pa.float32())).to_pylist() == (
        NESTED["list"].to_pylist()
    )
    assert got.to_pylist() == rows


def test_json_has_no_nan(tmp_path):
    values = [float("nan"), float("inf"), 0.5]
    table = pa.table({"x": values, "y": pa.array([values] * 3, pa.list_(pa.float32()))})
    path = write(tmp_path / "table.jsonl", table)
    assert path.read_text().splitlines()[2] == '{"x":0.5,"y":[null,null,0.5]}'
    assert read(path)["x"].to_pylist() == [None, None, 0.5]


# A lone surrogate is not text, and pyarrow has none.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet", ".arrow"])
@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    names=st.lists(
        texts.filter(lambda name: name.strip("\ufeff\r\n")),
        min_size=1,
        max_size=3,
        unique=True,
        # The only column of a file may not look like several.
    ).filter(lambda names: len(names) > 1 or not set(names[0]) & set(";\t|")),
    data=st.data(),
)
def test_any_text_comes_back(tmp_path, suffix, names, data):
    n_rows = data.draw(st.integers(1, 5))
    cells = st.lists(texts, min_size=n_rows, max_size=n_rows)
    table = pa.table({name: data.draw(cells) for name in names})
    path = write(tmp_path / f"any{suffix}", table)
    assert read(path).equals(table)


@settings(
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1))
def test_single_precision_comes_back(tmp_path, values):
    values = pa.array(values, pa.float32())
    # A fraction makes the reader take all of them for floating-point numbers.
    table = pa.table({"x": values, "y": pa.array([0.5] * len(values))})
    for suffix in (".csv", ".jsonl"):
        got = read(write(tmp_path / f"single{suffix}", table))["x"]
        assert got.cast(pa.float64()).cast(pa.float32()).combine_chunks().equals(values)


def test_one_column_of_csv_keeps_its_empty_rows(tmp_path):
    table = pa.table({"x": ["a", "", None, "b"]})
    assert read(write(tmp_path / "one.csv", table))["x"].to_pylist() == [
        "a", "", "", "b",
    ]  # fmt: skip
    table = pa.table({"x": [1, None]})
    assert read(write(tmp_path / "one.csv", table))["x"].to_pylist() == ["1", ""]


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".csv"])
def test_no_rows(tmp_path, suffix):
    table = pa.table({"x": pa.array([], pa.int64()), "y": pa.array([], pa.string())})
    path = write(tmp_path / f"none{suffix}", table)
    assert list(TableFile(path).batches()) == []
    assert TableFile(path).schema.names == ["x", "y"]


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_dictionaries_that_differ_from_batch_to_batch(tmp_path, suffix):
    parts = [["a", "b"], ["c", None, "a"], ["b"], ["c", "a"]]
    kind = pa.dictionary(pa.int8(), pa.string(), ordered=True)
    batches = [
        pa.record_batch([pa.array(part).dictionary_encode().cast(kind)], names=["x"])
        for part in parts
    ]
    path = tmp_path / f"table{suffix}"
    with table_writer(path, batches[0].schema) as take:
        for batch in batches:
            take(batch)
    assert read(path)["x"].to_pylist() == list(chain(*parts))
    assert TableFile(path).schema.field("x").type == kind


def test_a_part_of_a_pandas_frame_is_a_pandas_frame(tmp_path):
    for index in (None, pd.RangeIndex(10, 30, 2), list("abcdefghij")):
        frame = pd.DataFrame(
            {"x": range(10), "c": pd.Categorical(["u", "v"] * 5)}, index=index
        )
        table = pa.Table.from_pandas(frame)
        for suffix, reader in (
            (".parquet", pd.read_parquet),
            (".feather", pd.read_feather),
        ):
            path = write(tmp_path / f"part{suffix}", table.slice(3, 4))
            assert reader(path)["x"].tolist() == [3, 4, 5, 6]


def test_others_read_and_write_the_same_files(tmp_path):
    frame = pl.DataFrame({"x": [1, 2], "t": ["a", None], "v": [[1.0], [2.0, 3.0]]})
    frame.write_parquet(tmp_path / "p.parquet")
    frame.write_ipc(tmp_path / "p.arrow")
    frame.write_ipc_stream(tmp_path / "s.arrow")
    frame.write_ndjson(tmp_path / "p.ndjson")
    for name in ("p.parquet", "p.arrow", "s.arrow", "p.ndjson"):
        got = read(tmp_path / name)
        assert got.to_pylist() == frame.to_dicts()
        copy = write(tmp_path / f"copy{name[1:]}", got)
        if copy.suffix == ".parquet":
            assert pl.read_parquet(copy).equals(frame)
        elif copy.suffix == ".arrow":
            assert pl.read_ipc(copy).equals(frame)


# Batches --------------------------------------------------------------------------


def wide_table(n_rows=30_000, width=512):
    numbers = np.arange(n_rows * width, dtype=np.float32) % 251
    return pa.table(
        {
            "id": np.arange(n_rows),
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(numbers), width),
        }
    )


@pytest.mark.parametrize("kind", ["parquet", "arrow", "stream", "lz4"])
def test_batches_are_bounded_and_in_order(tmp_path, kind):
    table = wide_table()  # 61 MB in one row group or record batch
    path = tmp_path / ("wide.parquet" if kind == "parquet" else "wide.arrow")
    if kind == "parquet":
        pq.write_table(table, path, row_group_size=table.num_rows)
    else:
        options = ipc.IpcWriteOptions(compression="lz4" if kind == "lz4" else None)
        opened = ipc.new_stream if kind == "stream" else ipc.new_file
        with opened(path, table.schema, options=options) as writer:
            writer.write_batch(table.to_batches()[0])
    file = TableFile(path)
    sizes, first = [], 0
    for batch in file.batches():
        assert batch["id"][0].as_py() == first
        first += batch.num_rows
        sizes.append(batch.nbytes)
    assert first == table.num_rows
    assert 3 <= len(sizes) <= 12
    assert max(sizes) < 32e6
    says_it = kind == "parquet" or (kind != "stream" and COUNTS_ROWS)
    assert file.n_rows == (table.num_rows if says_it else None)
    assert sum(b.nbytes for b in file.batches(["id"])) < 9 * table.num_rows
    assert read(path).equals(table)


def test_long_texts_that_repeat_do_not_make_long_batches(tmp_path):
    path = tmp_path / "repeated.parquet"
    pq.write_table(pa.table({"x": ["long " * 4_000] * 5_000}), path)
    assert path.stat().st_size < 1e6
    assert max(batch.nbytes for batch in TableFile(path).batches()) < 32e6


def test_tiny_batches_share_row_groups(tmp_path):
    table = pa.table({"x": range(150_000)})
    path = write(tmp_path / "tiny.parquet", table, max_chunksize=50)
    footer = pq.ParquetFile(path).metadata
    assert footer.num_row_groups == 3
    assert footer.row_group(0).column(0).compression == "ZSTD"
    assert read(path).equals(table)
    path = write(tmp_path / "whole.parquet", table, max_chunksize=None)
    assert pq.ParquetFile(path).metadata.num_row_groups == 3


MEASURED = """
import sys
import pyarrow as pa
from variegate.tables.reading import TableFile

def peak():
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024

file = TableFile(sys.argv[1])
before = peak()
for batch in file.batches():
    pass
print(peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_a_row_group_is_never_held_whole(tmp_path, kind):
    numbers = np.random.default_rng(0).standard_normal(64 * 2**20, dtype=np.float32)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(numbers), 256)
    table = pa.table({"vector": vectors})
    path = tmp_path / f"large.{kind}"
    if kind == "parquet":
        pq.write_table(table, path, row_group_size=len(table), use_dictionary=False)
    else:
        with ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    assert path.stat().st_size > 240e6
    result = subprocess.run(
        [sys.executable, "-c", MEASURED, path], capture_output=True, check=True
    )
    assert float(result.stdout) < 160


# What is wrong with a file --------------------------------------------------------


def parquet_bytes(table, **options):
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


SMALL = pa.table({"a": [1, 2]})
MANY = b'{"a": 1}\n' * 2_000_000  # more than the first block


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.xlsx", b"x", r"a\.xlsx: the suffix '\.xlsx' is of no known .* \.parquet, "),
        ("a", b"x", "a: the suffix '' is of no known table format"),
        ("a.csv", b"", r"a\.csv is empty; write it again"),
        ("a.csv", b"\n\n", r"a\.csv has no columns"),
        ("a.csv", b"a,b\n1,2\n3\n", r"a\.csv: Row #3: Expected 2 columns, got 1: 3; e"),
        ("a.csv", b"a,b,a\n1,2,3\n", "several columns have the name 'a'; rename"),
        ("a.csv", b"a,b\n1,\xe9\n", r"a\.csv holds text that is not UTF-8; convert it"),
        ("a.csv", b"\xe9,b\n1,2\n", "holds text that is not UTF-8"),
        ("a.csv", "a,b\n".encode("utf-16"), "holds text that is not UTF-8"),
        ("a.csv", b"a" * 200_000, "is not a CSV file: its first line is not a header"),
        ("a.csv", b'a\n"' + b"x\n" * 2**25, "more than 4 MB, or a quote that is nev"),
        ("a.csv", parquet_bytes(SMALL), "is a Parquet file under the suffix of anot"),
        ("a.parquet", b"a,b\n1,2\n", r"a\.parquet is not a Parquet file, or is damag"),
        ("a.parquet", b"ARROW1\0\0", "is an Arrow file under the suffix of another"),
        ("a.arrow", b"a,b\n1,2\n" * 9, r"a\.arrow is not an Arrow file, or is damage"),
        ("a.arrow", b"ARROW1\0\0" * 9, "is not an Arrow file, or is damaged"),
        ("a.parquet", parquet_bytes(pa.table({})), "has no columns"),
        ("a.jsonl", b"a,b\n1,2\n", r"a\.jsonl is not a file of JSON objects, one a l"),
        ("a.jsonl", b'[{"a": 1}]', "is not a file of JSON objects, one a line"),
        ("a.jsonl", b'{"a": 1}\n{"a": 2', "is not a file of JSON objects, one a line"),
        ("a.jsonl", b"\n", "is not a file of JSON objects, one a line"),
        ("a.jsonl", b'{"a": 1, "a": 2}\n', r"/a\) was specified twice; rename one of"),
        ("a.jsonl", b'{"a": 1}\n{"a": "x"}\n', "a row contradicts the types of the"),
        ("a.jsonl", b'{"a": "\xff"}\n', "holds text that is not UTF-8"),
        ("a.jsonl", b'{"\xff": 1}\n', "holds text that is not UTF-8"),
        ("a.jsonl", MANY + b'{"a": "x"}\n', "number to string.*; convert the file to"),
        ("a.jsonl", MANY + b'{"a": 0.5}\n', r"couldn't parse: ?0\.5.*Parquet"),
        ("a.jsonl", MANY + b'{"b": 5}\n', "contradicts .* field.*Parquet"),
        ("a.jsonl", MANY + b"and so on\n", "is not a file of JSON objects, one a li"),
    ],
)  # fmt: skip
def test_what_is_not_a_table(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(TableFileError, match=message) as caught:
        pass_over(path)
    assert "\n" not in str(caught.value)
    assert name in str(caught.value)


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_names_that_repeat(tmp_path, suffix):
    table = pa.table([[1], [2]], names=["a", "a"])
    path = tmp_path / f"twice{suffix}"
    if suffix == ".parquet":
        pq.write_table(table, path)
    else:
        with ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    with pytest.raises(TableFileError, match="several columns have the name 'a'"):
        TableFile(path)


def test_no_such_file_folder_or_column(tmp_path):
    with pytest.raises(TableFileError, match=r"there is no file .*gone\.csv"):
        TableFile(tmp_path / "gone.csv")
    (tmp_path / "folder.parquet").mkdir()
    with pytest.raises(TableFileError, match="is a folder; name a file in it"):
        TableFile(tmp_path / "folder.parquet")
    file = TableFile(write(tmp_path / "a.csv", SMALL))
    with pytest.raises(TableFileError, match=r"a\.csv has no column 'b'; it has 'a'"):
        file.batches(["a", "b"])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_no_permission(tmp_path):
    path = write(tmp_path / "a.csv", SMALL)
    path.chmod(0)
    with pytest.raises(TableFileError, match=r"cannot read .*a\.csv: Permission den"):
        TableFile(path)


def test_a_file_that_goes_away_between_passes(tmp_path):
    for suffix in (".csv", ".parquet", ".arrow", ".jsonl"):
        path = write(tmp_path / f"a{suffix}", pa.table({"a": [1], "b": [2]}))
        file = TableFile(path)
        path.unlink()
        with pytest.raises(TableFileError, match=rf"a\{suffix}"):
            list(file.batches())


@pytest.mark.parametrize("share", [0.0001, 0.1, 0.5, 0.9, 0.9999])
@pytest.mark.parametrize("kind", ["parquet", "arrow", "stream"])
def test_files_cut_short(tmp_path, share, kind):
    table = wide_table(2_000, 64)
    path = tmp_path / ("a.parquet" if kind == "parquet" else "a.arrow")
    if kind == "stream":
        with ipc.new_stream(path, table.schema) as writer:
            writer.write_table(table)
    else:
        write(path, table, max_chunksize=500)
    whole = path.read_bytes()
    path.write_bytes(whole[: max(int(len(whole) * share), 1)])
    with pytest.raises(TableFileError, match="or is damaged"):
        pass_over(path)


@pytest.mark.parametrize("share", [0.05, 0.3, 0.5, 0.7, 0.9])
def test_damage_in_the_middle(tmp_path, share):
    rng = np.random.default_rng(0)
    table = pa.table({"x": rng.standard_normal(50_000), "t": ["some text"] * 50_000})
    whole = bytearray(write(tmp_path / "a.parquet", table).read_bytes())
    place = int(len(whole) * share)
    whole[place : place + 50] = bytes(byte ^ 0xFF for byte in whole[place : place + 50])
    (tmp_path / "a.parquet").write_bytes(whole)
    file = TableFile(tmp_path / "a.parquet")  # its footer is whole
    with pytest.raises(TableFileError, match=r"a\.parquet is not .* or is damaged"):
        list(file.batches())


def test_damaged_offsets_and_texts_of_arrow_files(tmp_path):
    path = tmp_path / "a.arrow"
    table = pa.table({"t": ["abcdefgh"] * 1_000})
    whole = write(path, table, max_chunksize=None).read_bytes()
    offsets = np.arange(0, 8_008, 8, dtype=np.int32).tobytes()
    assert offsets in whole
    wild = np.frombuffer(offsets, np.int32).copy()
    wild[500] = 2**30
    for damaged in (
        whole.replace(offsets, wild.tobytes()),
        whole.replace(b"abcdefgh", b"abc\xffefgh"),
    ):
        path.write_bytes(damaged)
        with pytest.raises(TableFileError, match=r"a\.arrow"):
            pass_over(path)


def test_header_and_cells_of_csv(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b'\xef\xbb\xbf"a, b",c\r\n007,\r\n"x\r\ny",NA\r\n\r\n')
    assert read(path).to_pylist() == [
        {"a, b": "007", "c": ""},
        {"a, b": "x\r\ny", "c": "NA"},
    ]
    for header in (b"a,b", b"a,b\n"):
        path.write_bytes(header)
        assert TableFile(path).schema.names == ["a", "b"]
        assert list(TableFile(path).batches()) == []


def test_times_in_json_stay_text(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(
        '{"a":"2024-01-01","b":["2024-01-01"],"c":{"d":"2024-01-01T00:00:00Z"}}\n'
        '{"a":"soon","b":null}\n{"e":5}\n'
    )
    assert read(path).to_pylist() == [
        {"a": "2024-01-01", "b": ["2024-01-01"], "c": {"d": "2024-01-01T00:00:00Z"},
         "e": None},
        {"a": "soon", "b": None, "c": None, "e": None},
        {"a": None, "b": None, "c": None, "e": 5},
    ]  # fmt: skip


# Writing --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "columns", "message"),
    [
        ("a.xls", CELLS, "the suffix '.xls' is of no known table format"),
        ("a.csv", CELLS | NESTED, r"cannot hold 'list' \(list<.*'fixed'.*'struct'.*; wr"
                                  r"ite \.parquet or \.jsonl"),
        ("a.csv", BYTES, r"'bytes' \(binary\), 'span' .*, 'map' "),
        ("a.jsonl", BYTES, r"a\.jsonl file cannot hold 'bytes' .*; write \.parquet"),
        ("a.parquet", {"x": pa.nulls(3, pa.struct([]))}, "cannot write .*; write "),
    ],
)  # fmt: skip
def test_what_a_format_cannot_hold(tmp_path, name, columns, message):
    schema = as_table(columns).schema
    with pytest.raises(ValueError, match=message.replace("a\\.jsonl file", "file")):
        check_writable(tmp_path / name, schema)
    with pytest.raises(ValueError), table_writer(tmp_path / name, schema):  # noqa: PT011
        pass
    assert list(tmp_path.iterdir()) == []


def test_writing_wrong_things(tmp_path):
    twice = pa.schema([("a", pa.int8()), ("a", pa.int8())])
    with pytest.raises(ValueError, match="several columns have the name 'a'"):
        check_writable(tmp_path / "a.csv", twice)
    with (
        pytest.raises(ValueError, match="a batch has the columns"),
        table_writer(tmp_path / "a.csv", SMALL.schema) as take,
    ):
        take(pa.record_batch({"b": [1]}))
    with (
        pytest.raises(FileNotFoundError, match=r"cannot write .* there is no folder"),
        table_writer(tmp_path / "gone" / "a.csv", SMALL.schema),
    ):
        pass
    (tmp_path / "folder.csv").mkdir()
    with (
        pytest.raises(OSError, match=r"cannot write .*folder\.csv: Is a directory"),
        table_writer(tmp_path / "folder.csv", SMALL.schema),
    ):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["folder.csv"]


@pytest.fixture(params=["nameless", "hidden"])
def way(request, monkeypatch):
    """Run a test with files that have no name, and with hidden names."""
    if request.param == "hidden":
        monkeypatch.setattr(atomic, "_open_nameless", lambda folder: None)
    return request.param


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".jsonl", ".arrow"])
def test_an_error_leaves_what_was_there(tmp_path, suffix, way):
    path = tmp_path / f"a{suffix}"

    def interrupted():
        with table_writer(path, SMALL.schema) as take:
            take(SMALL.to_batches()[0])
            raise OSError("of another file")

    with pytest.raises(OSError, match=r"^of another file$"):
        interrupted()
    assert list(tmp_path.iterdir()) == []
    write(path, SMALL)
    before = path.read_bytes()
    with pytest.raises(OSError, match=r"^of another file$"):
        interrupted()
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    assert path.read_bytes() == before
    # And a whole one takes its place.
    write(path, pa.table({"a": [5]}))
    assert read(path).num_rows == 1
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_modes_follow_the_umask(tmp_path, way):
    before = os.umask(0o027)
    try:
        write_atomic(tmp_path / "new", "x")
        write_atomic(tmp_path / "new", "y")
    finally:
        os.umask(before)
    assert (tmp_path / "new").read_text() == "y"
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o640


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(
        atomic, "_open_nameless", lambda folder: os.open("/dev/full", os.O_WRONLY)
    )
    with pytest.raises(OSError, match=r"cannot write .*a: No space left on device"):
        write_atomic(tmp_path / "a", b"x" * 10**6)
    table = wide_table(1_000, 64)
    for suffix in (".parquet", ".csv", ".jsonl", ".arrow"):
        some = table.select(["id"]) if suffix == ".csv" else table
        with pytest.raises(OSError, match=rf"cannot write .*a\{suffix}: .*[Nn]o space"):
            write(tmp_path / f"a{suffix}", some, None)
    assert list(tmp_path.iterdir()) == []


KILLED = """
import sys, time
from contextlib import ExitStack
import pyarrow as pa
from variegate.tables.writing import table_writer

table = pa.table({"x": range(200_000)})
with ExitStack() as writers:
    for path in sys.argv[1:]:
        take = writers.enter_context(table_writer(path, table.schema))
        for batch in table.to_batches():
            take(batch)
    print("ready", flush=True)
    time.sleep(60)
"""


@pytest.mark.faults
@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="needs files without a name")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_killed_process_leaves_nothing(tmp_path, how):
    with new_file(tmp_path / "probe"):
        if list(tmp_path.iterdir()):
            pytest.skip("this file system has no files without a name")
    (tmp_path / "probe").unlink()
    files = [tmp_path / f"a{s}" for s in (".parquet", ".csv", ".jsonl", ".arrow")]
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, *files], stdout=subprocess.PIPE
    )
    with process:
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(how)
        assert process.wait() == -how
    assert list(tmp_path.iterdir()) == []
