"""Retrieval pipelines: documents found in, context for a language model out.

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

from variegate.integrations.candidates import Candidates, Found, count_words
from variegate.integrations.core import ContextSelector, ContextWarning
from variegate.integrations.learned import training_table

__all__ = [
    "Candidates",
    "ContextSelector",
    "ContextWarning",
    "Found",
    "count_words",
    "training_table",
]
