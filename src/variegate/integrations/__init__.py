"""Choose the context of a language model from the documents of a retriever.

A retriever finds more documents than a language model is to read;
:class:`ContextSelector` chooses among them, by a method of :func:`variegate.select` or
by a learned model, within a number of documents, of tokens, or both.  Three frameworks
have it as a part of their pipelines, each behind an extra of its own and imported only
when it is used:

==============  ============================  =========================================
extra           class                         module
==============  ============================  =========================================
``haystack``    ``VariegateRanker``           :mod:`variegate.integrations.haystack`
``langchain``   ``VariegateCompressor``       :mod:`variegate.integrations.langchain`
``llamaindex``  ``VariegatePostprocessor``    :mod:`variegate.integrations.llamaindex`
==============  ============================  =========================================
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
