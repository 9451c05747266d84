"""Documents in, summary out.

``Summarizer`` learns from clusters of documents with summaries that people wrote;
``load_default`` returns one that has learned already.  ``Rouge`` measures.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
