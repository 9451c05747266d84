"""Where Dask is missing, the message says how to get it."""

import subprocess
import sys

from variegate._install import install_command


def test_without_dask_the_message_says_how_to_get_it():
    code = (
        "import sys, variegate; sys.modules['distributed'] = None; "
        "import variegate.dask"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert install_command("dask") in done.stderr
