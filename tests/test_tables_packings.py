"""The same rows in any packing, by any engine, give the same bits."""

import warnings

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from folder_instances import COLUMNS, Pickling, cut, some_table, write_folder
from variegate.partitions import Serial, Threads
from variegate.tables import TableSelector, partitioning, write_table

KERNELS = {
    "linear": {"kernel": "linear"},
    "multiple": {"kernel": "multiple", "max_iter": 15},
    "kinds": {"kernel": "kinds", "max_iter": 5},
}
ENGINES = {"none": None, "serial": Serial(), "threads": Threads(2), "sent": Pickling()}


def selector_of(kernel, **others):
    return TableSelector(
        **COLUMNS, **KERNELS[kernel], validation_fraction=0.25, **others
    )


def bits(selector, table):
    """Return all that was learned, chosen and judged, to the last bit."""
    models = [
        (one.theta_.tobytes(), one.intercept_, one.kernel_parameters_.tobytes())
        for one in selector.models_
    ]
    scores = selector.evaluate(table).scores["model"].tobytes()
    choices = selector.choose(table)
    chosen = choices.rank.tobytes(), choices.probability.tobytes()
    return models, selector.training_, chosen, scores


@pytest.mark.parametrize("kernel", KERNELS)
@given(
    n_files=st.sampled_from([0, 1, 7, 64]),
    engine=st.sampled_from(sorted(ENGINES)),
    is_scattered=st.booleans(),
    rows=st.sampled_from([30, 10**6]),
)
@settings(
    max_examples=4,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_bits_do_not_depend_on_the_packing_or_the_engine(
    tmp_path_factory, kernel, n_files, engine, is_scattered, rows
):
    table = some_table(16)
    if is_scattered:
        order = np.random.default_rng(0).permutation(table.num_rows)
        table = table.take(pa.array(order))
    folder = tmp_path_factory.mktemp("packing") / "t"
    if n_files:
        ends = np.linspace(0, table.num_rows, n_files + 1).astype(int)[1:-1]
        source = write_folder(folder, cut(table, *ends.tolist()))
    else:
        source = folder.with_suffix(".parquet")
        write_table(table, source)
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few steps are enough here
        patch.setattr(partitioning, "_ROWS", rows)
        home = selector_of(kernel).fit(table)
        there = selector_of(kernel, memory=1000)
        there.fit(source, engine=ENGINES[engine])
        assert bits(there, table) == bits(home, table)
        found = there.evaluate(source, engine=ENGINES[engine])
        expected = home.evaluate(table)
        assert found.scores["model"].tobytes() == expected.scores["model"].tobytes()
        assert found.endings == expected.endings
