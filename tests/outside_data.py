"""Data that are not part of the project, for the tests that compare with them."""

import os
from pathlib import Path

import pytest


def outside_data(part):
    """Return the folder ``text`` or ``video`` of the data, or skip the test.

    The data belong to others and cannot be shipped; without them, what the test checks
    is still checked on examples by hand.
    """
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("VARIEGATE_DATA", beside)) / part
    if not folder.is_dir():
        pytest.skip(
            f"compares with data that cannot be shipped: set VARIEGATE_DATA to the "
            f"folder that has {part}/"
        )
    return folder
