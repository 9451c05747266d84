"""Choose the context of a language model from the documents of a retriever.

:class:`ContextSelector` chooses within a number of documents, of tokens, or both, by a
method of :func:`variegate.select` or by a learned model.  :class:`EvidenceExtractor`
cuts documents to the sentences that answer the question.  Three frameworks have both as
parts of their pipelines, in modules named as their extras:

* ``haystack``: ``VariegateRanker`` and ``VariegateEvidenceExtractor``;
* ``langchain``: ``VariegateCompressor`` and ``VariegateEvidenceCompressor``;
* ``llamaindex``: ``VariegatePostprocessor`` and ``VariegateEvidencePostprocessor``.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
