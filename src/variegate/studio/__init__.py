"""The studio: a page on one's own machine where picks become a model at once.

``variegate studio DATA`` opens it.  A person picks in one group after the other; every
pick is kept in a file before the page shows it, a model learns from the groups that are
done, and the next group starts from its proposals.

===============  ==================================================================
``material``     items to be shown and learned from: tables, documents, videos, images
``teacher``      learning in other processes; :mod:`~variegate.studio.group_learner`
``proposals``    choices of a model, the reasons for them, and a map of a group
``store``        events in a file, :mod:`~variegate.studio.history` the picks after them
``matching``     groups and items of edited DATA, found again by key and identity
``repair``       what can be read of a damaged file of picks
``session``      the current group, its picks and proposal, and the last result
``export``       picks, a model, a report, and the commands for it
``app``          the page and its API in JSON, behind :mod:`~variegate.studio.security`
``serving``      an address on this machine
===============  ==================================================================
"""

from __future__ import annotations

from variegate._install import explain_missing as _explain_missing

with _explain_missing("the studio needs Starlette and uvicorn", "studio"):
    import starlette as _starlette
    import uvicorn as _uvicorn

del _starlette, _uvicorn
