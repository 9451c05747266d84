import pyarrow as pa
import pytest

from variegate.tables import Columns, TableError
from variegate.tables.columns import is_number, is_vector, suggest_name

SCHEMA = pa.schema(
    [
        ("query", pa.string()),
        ("doc", pa.int64()),
        ("price_low", pa.float64()),
        ("price_high", pa.float32()),
        ("is_new", pa.bool_()),
        ("amount", pa.decimal128(10, 2)),
        ("kind", pa.dictionary(pa.int8(), pa.string())),
        ("when", pa.timestamp("us")),
        ("embedding", pa.list_(pa.float32())),
        ("length", pa.int32()),
        ("chosen", pa.int8()),
    ]
)
TEXT = pa.schema([(name, pa.string()) for name in SCHEMA.names])


# Names ----------------------------------------------------------------------------


def test_names_lists_and_nothing_become_columns():
    columns = Columns.of(group="query", quality="length", categorical=["kind"])
    assert columns == Columns(group="query", quality=("length",), categorical=("kind",))
    assert Columns.of(group=None, quality=None) == Columns()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"group": 3}, "group must be the name of a column, got 3"),
        ({"label": ["a"]}, r"label must be the name of a column, got \['a'\]"),
        ({"quality": ["a", 3]}, r"quality must be names of columns, got \('a', 3\)"),
        ({"quality": 3}, "quality must be names of columns, got 3"),
        ({"similarity": True}, "similarity must be names of columns, got True"),
        ({"missing": "zero"}, "unknown treatment of missing values 'zero'; there are"),
    ],
)
def test_what_is_no_name_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        Columns.of(**given)


def test_updated_replaces_what_is_given():
    columns = Columns(group="a", label="b", quality=("c",))
    changed = columns.with_roles({"group": "d", "label": None, "quality": ["e", "f"]})
    assert changed == Columns(group="d", label="b", quality=("e", "f"))
    assert columns.group == "a"


def test_features_are_each_column_once():
    columns = Columns(quality=("a", "b"), similarity=("b", "c"))
    assert columns.features() == ("a", "b", "c")


# TOML -----------------------------------------------------------------------------


def test_columns_in_toml(tmp_path):
    path = tmp_path / "columns.toml"
    path.write_text(
        "\ufeffgroup = 'query'  # in a file of Windows\nquality = ['a', 'b_*']\n"
        "similarity = 'embedding'\nmissing = 'mean'\n",
        encoding="utf-8",
    )
    assert Columns.from_toml(path) == Columns(
        group="query", quality=("a", "b_*"), similarity=("embedding",), missing="mean"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("group =", "columns.toml is not TOML: "),
        ("group = 'a'\ngroup = 'b'", "columns.toml is not TOML: "),
        ("groups = 'a'", r"unknown key 'groups' \(did you mean 'group'\?\); there are"),
        ("Group = 'a'", r"unknown key 'Group' \(did you mean 'group'\?\)"),
        ("zzz = 1", "unknown key 'zzz'; there are group, label, item, quality"),
        ("[table]\ngroup = 'a'", "unknown key 'table'"),
        ("group = 3", "columns.toml: group must be the name of a column, got 3"),
        ("quality = 3", "columns.toml: quality must be names of columns, got 3"),
        ("quality = ['a', 3]", "columns.toml: quality must be names of columns"),
        ("[group]\nname = 'a'", "columns.toml: group must be the name of a column"),
        ("missing = 'zero'", "columns.toml: unknown treatment of missing values"),
    ],
)
def test_bad_toml(tmp_path, text, message):
    path = tmp_path / "columns.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(TableError, match=message):
        Columns.from_toml(path)


def test_toml_that_is_no_text(tmp_path):
    path = tmp_path / "columns.toml"
    path.write_bytes(b"group = '\xff'")
    with pytest.raises(TableError, match=r"columns\.toml is not TOML"):
        Columns.from_toml(path)


# In a table -----------------------------------------------------------------------


def test_quality_is_by_default_every_number_without_another_part():
    columns = Columns(
        group="query", label="chosen", item="doc", similarity=("embedding",)
    ).resolve(SCHEMA)
    assert columns.quality == (
        "price_low",
        "price_high",
        "is_new",
        "amount",
        "length",
    )
    costly = Columns(label="chosen", item="doc", cost="length", similarity=("is_new",))
    assert costly.resolve(SCHEMA).quality == ("price_low", "price_high", "amount")


def test_the_relevance_may_be_a_quality():
    columns = Columns(label="chosen", relevance="length", quality=("length",))
    assert columns.resolve(SCHEMA).quality == ("length",)
    assert "length" in Columns(relevance="length").resolve(SCHEMA).quality


def test_categories_belong_to_the_quality_unless_to_the_similarity():
    columns = Columns(quality=("length",), categorical=("kind",)).resolve(SCHEMA)
    assert columns.quality == ("length", "kind")
    apart = Columns(
        quality=("length",), categorical=("kind",), similarity=("kind",)
    ).resolve(SCHEMA)
    assert apart.quality == ("length",)
    assert apart.similarity == ("kind",)
    default = Columns(label="chosen", item="doc", categorical=("kind", "length"))
    assert set(default.resolve(SCHEMA).quality) == {
        "kind",
        "length",
        "price_low",
        "price_high",
        "is_new",
        "amount",
    }


def test_stars_stand_for_anything_but_columns_with_another_part():
    columns = Columns(group="query", label="chosen", quality=("price_*", "length"))
    assert columns.resolve(SCHEMA).quality == ("price_low", "price_high", "length")
    everything = Columns(
        group="query", label="chosen", item="doc", cost="length", quality=("*",)
    ).resolve(SCHEMA)
    assert everything.quality == tuple(
        name
        for name in SCHEMA.names
        if name not in ("query", "chosen", "doc", "length")
    )
    twice = Columns(quality=("price_low", "price_*")).resolve(SCHEMA)
    assert twice.quality == ("price_low", "price_high")


def test_only_stars_are_special_and_a_name_comes_before_a_pattern():
    schema = pa.schema([(n, pa.float64()) for n in ("a*", "ab", "a[b]", "a?", "ac")])
    assert Columns(quality=("a*",)).resolve(schema).quality == ("a*",)
    assert Columns(quality=("a[b]",)).resolve(schema).quality == ("a[b]",)
    with pytest.raises(TableError, match=r"there is no column 'a\.b'"):
        Columns(quality=("a.b",)).resolve(schema)
    # Brackets and question marks are part of a name, also beside a star.
    brackets = pa.schema([(n, pa.float64()) for n in ("x[0]", "x[1]", "x0", "y[0]")])
    assert Columns(quality=("x[*",)).resolve(brackets).quality == ("x[0]", "x[1]")
    assert Columns(quality=("*[0]",)).resolve(brackets).quality == ("x[0]", "y[0]")


def test_a_pattern_is_told_apart_by_case():
    with pytest.raises(
        TableError, match=r"no column matches 'PRICE_\*'; the table has"
    ):
        Columns(quality=("PRICE_*",)).resolve(SCHEMA)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (Columns(group="qurey"), r"no column 'qurey' \(did you mean 'query'\?\); the"),
        (Columns(label="Chosen"), r"no column 'Chosen' \(did you mean 'chosen'\?\)"),
        (Columns(item="zzz"), "there is no column 'zzz'; the table has query, doc"),
        (Columns(cost="lenght"), "did you mean 'length'"),
        (Columns(relevance="zz"), "there is no column 'zz'"),
        (Columns(quality=("lengths",)), "did you mean 'length'"),
        (Columns(similarity=("embeddings",)), "did you mean 'embedding'"),
        (Columns(categorical=("kinds",)), "did you mean 'kind'"),
        (Columns(quality=("zz*",)), r"no column matches 'zz\*'; the table has query"),
    ],
)
def test_a_column_that_is_not_there(columns, message):
    with pytest.raises(TableError, match=message):
        columns.resolve(SCHEMA)


def test_a_wide_table_is_not_listed_in_full():
    schema = pa.schema([(f"{k}c", pa.float64()) for k in range(1000)])
    with pytest.raises(TableError, match=r"29c and 970 more$"):
        Columns(group="query").resolve(schema)
    numbered = pa.schema([(f"c{k}", pa.float64()) for k in range(1000)])
    with pytest.raises(TableError, match=r"the table has c0 … c999$"):
        Columns(group="query").resolve(numbered)


@pytest.mark.parametrize("part", ["group", "label", "item", "cost", "given", "segment"])
@pytest.mark.parametrize("use", ["quality", "similarity", "categorical"])
def test_a_column_has_one_part(part, use):
    columns = Columns.of(**{part: "length", use: "length"})
    message = (
        "'length' cannot be both the group, label, item, cost, given or segment and "
        f"part of {use}"
    )
    with pytest.raises(TableError, match=message):
        columns.resolve(SCHEMA)


@pytest.mark.parametrize(
    ("one", "other"),
    [("group", "label"), ("group", "item"), ("label", "item"), ("label", "cost"),
     ("label", "relevance")],
)  # fmt: skip
def test_the_label_and_the_group_are_nothing_else(one, other):
    with pytest.raises(TableError, match="'chosen' cannot be both"):
        Columns.of(**{one: "chosen", other: "chosen"}).resolve(SCHEMA)


def test_no_numbers_left():
    schema = pa.schema([("a", pa.string()), ("y", pa.int64())])
    with pytest.raises(TableError, match=r"no column of numbers left.*table has a, y"):
        Columns(label="y").resolve(schema)
    assert Columns(label="y", categorical=("a",)).resolve(schema).quality == ("a",)


def test_text_files_must_name_their_numbers():
    with pytest.raises(
        TableError, match="name the quality columns with quality: nothing in"
    ):
        Columns(group="query", label="chosen").resolve(TEXT)
    columns = Columns(group="query", label="chosen", quality=("price_*", "length"))
    resolved = columns.resolve(TEXT)
    assert resolved.quality == ("price_low", "price_high", "length")


def test_without_need_of_quality_there_is_none():
    columns = Columns(group="query", similarity=("emb*",))
    resolved = columns.resolve(TEXT, needs_quality=False)
    assert resolved.quality == ()
    assert resolved.similarity == ("embedding",)


def test_resolving_twice_changes_nothing():
    columns = Columns(
        group="query", label="chosen", categorical=("kind",), similarity=("emb*",)
    ).resolve(SCHEMA)
    assert columns.resolve(SCHEMA) == columns


# Types ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "number", "vector"),
    [
        (pa.int8(), True, False),
        (pa.uint64(), True, False),
        (pa.float16(), True, False),
        (pa.bool_(), True, False),
        (pa.decimal256(50, 3), True, False),
        (pa.string(), False, False),
        (pa.date32(), False, False),
        (pa.duration("s"), False, False),
        (pa.list_(pa.float32()), False, True),
        (pa.large_list(pa.int8()), False, True),
        (pa.list_(pa.float16(), 3), False, True),
        (pa.fixed_shape_tensor(pa.float32(), (3,)), False, True),
        (pa.list_(pa.string()), False, False),
        (pa.list_(pa.list_(pa.float32())), False, False),
    ],
)
def test_what_is_a_number_and_what_a_vector(kind, number, vector):
    assert is_number(kind) is number
    assert is_vector(kind) is vector


def test_nearest():
    assert suggest_name("qery", ["query", "kind"]) == " (did you mean 'query'?)"
    assert suggest_name("xyz", ["query", "kind"]) == ""
    assert suggest_name("QUERY", ["Query"]) == " (did you mean 'Query'?)"
