"""Messages about missing packages, with the command that installs them."""

from collections.abc import Iterator
from contextlib import contextmanager

from variegate._memory import find_memory_error


@contextmanager
def explain_missing(problem: str, extra: str) -> Iterator[None]:
    """Raise an ImportError in the block with ``problem`` and a pip command instead.

    ``extra`` is the extra of this package that has what is missing.  The reason is
    named if a package is installed and cannot be loaded.  Want of memory becomes a
    MemoryError: installing does not help.
    """
    try:
        yield
    except ImportError as error:
        reason = find_memory_error(error)
        if reason is not None:
            raise MemoryError(f"to load a library: {reason}") from error
        if not isinstance(error, ModuleNotFoundError):
            problem = f"{problem}, which cannot be loaded ({error})"
        raise ImportError(f"{problem}: {install_command(extra)}") from error


def install_command(extra: str) -> str:
    """Return the pip command that adds an extra to this installation.

    From the same index, folder or URL, which pip records in ``direct_url.json``
    (PEP 610) unless it is an index.
    """
    # Imported late: most programs never need them.
    import json
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    try:
        record = distribution("variegate").read_text("direct_url.json")
    except PackageNotFoundError:  # run from its sources
        record = None
    if record is None:
        return f"pip install 'variegate[{extra}]'"
    origin = json.loads(record)
    url = str(origin["url"])
    if "dir_info" in origin:
        option = "-e " if origin["dir_info"].get("editable") else ""
        return f"pip install {option}'{url2pathname(urlsplit(url).path)}[{extra}]'"
    if "vcs_info" in origin:
        source = origin["vcs_info"]
        url = f"{source['vcs']}+{url}@{source['commit_id']}"
    return f"pip install 'variegate[{extra}] @ {url}'"
