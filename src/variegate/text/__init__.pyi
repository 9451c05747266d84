from .budget import Budget
from .documents import Cluster, Document, Sentence
from .languages import LANGUAGES
from .oracle import oracle_summary
from .readers import read_clusters, read_documents
from .rouge import Rouge
from .sentences import split_sentences
from .summarizer import Summarizer, load_default
from .summary import MarkedSentence, Summary
from .view import ClusterView

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
    "split_sentences",
]
