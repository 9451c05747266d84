"""Settings shared by all tests; helpers live in reference.py and instances.py."""

import sys
from pathlib import Path

from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))

# The same examples every time: a test that fails only sometimes teaches nothing.
settings.register_profile("variegate", deadline=None, derandomize=True)
settings.load_profile("variegate")
