"""The studio: a page on one's own machine where picks become a model at once.

``variegate studio DATA`` opens it.  A person picks in one group after the other; every
pick is kept in a file before the page shows it, a model learns from the groups that are
done, and its proposals are what the next group starts from.

===============  ==================================================================
``material``     what is shown and learned from: tables, documents, videos, images
``learning``     a teacher, which learns in a process of its own
``proposals``    what a model would choose, and why
``store``        events in a file, :mod:`~variegate.studio.history` what they come to
``session``      the group at hand, its picks and proposal, and what was learned
``export``       what is taken along: picks, a model, a report, the commands for it
``app``          the page and its twin in JSON, behind :mod:`~variegate.studio.security`
``serving``      an address on this machine
===============  ==================================================================
"""

from __future__ import annotations

try:
    import starlette as _starlette
    import uvicorn as _uvicorn
except ImportError as error:
    raise ImportError(
        f"the studio needs Starlette and uvicorn ({error}): "
        "pip install 'variegate[studio]'"
    ) from error

del _starlette, _uvicorn
