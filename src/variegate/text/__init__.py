"""Documents in, summary out; question and documents in, evidence out.

``Summarizer`` learns from clusters of documents with summaries that people wrote;
``load_default`` returns one that has learned already.  ``Rouge`` measures.
``EvidenceSelector`` learns from questions whose wanted sentences people marked;
``EvidenceSelector.pretrained`` returns one that has learned already.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
