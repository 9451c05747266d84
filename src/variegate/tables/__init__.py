"""Tables in, selections out.

A table is read twice, in batches: once to find its groups and to learn how columns
become features (:mod:`~variegate.tables.survey`, :mod:`~variegate.tables.encoding`),
and once to bring the rows of each group together (:mod:`~variegate.tables.groups`).
Groups are learned from (:mod:`~variegate.tables.training`), chosen from
(:mod:`~variegate.tables.choosing`) and judged by (:mod:`~variegate.tables.evaluation`).
"""

from variegate._install import explain_missing as _explain_missing

with _explain_missing("tables need pyarrow and narwhals", "tables"):
    import narwhals as _narwhals
    import pyarrow as _pyarrow

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)

del _narwhals, _pyarrow
