"""Documents in, summary out.

``Summarizer`` learns from clusters of documents with summaries that people wrote;
``load_default`` returns one that has learned already.  ``Rouge`` measures.
"""

from __future__ import annotations

from variegate.text.budget import Budget
from variegate.text.documents import Cluster, Document, Sentence
from variegate.text.languages import LANGUAGES
from variegate.text.oracle import oracle_summary
from variegate.text.readers import read_clusters, read_documents, read_duc
from variegate.text.rouge import Rouge
from variegate.text.sentences import split_sentences
from variegate.text.summarizer import Summarizer, load_default
from variegate.text.summary import MarkedSentence, Summary
from variegate.text.view import ClusterView

__all__ = [
    "LANGUAGES",
    "Budget",
    "Cluster",
    "ClusterView",
    "Document",
    "MarkedSentence",
    "Rouge",
    "Sentence",
    "Summarizer",
    "Summary",
    "load_default",
    "oracle_summary",
    "read_clusters",
    "read_documents",
    "read_duc",
    "split_sentences",
]
