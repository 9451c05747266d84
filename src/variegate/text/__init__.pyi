from .budget import Budget
from .cluster_view import ClusterView
from .documents import Cluster, Document, Sentence
from .evidence import EvidenceSelector, EvidenceWarning
from .languages import LANGUAGES
from .readers import read_clusters, read_documents, read_questions
from .rouge import Rouge
from .sentences import split_sentences
from .summarizer import Summarizer, load_default
from .summary import Evidence, MarkedSentence, Summary
from .training_set import oracle_summary

__all__ = [
    "LANGUAGES",
    "Budget",
    "Cluster",
    "ClusterView",
    "Document",
    "Evidence",
    "EvidenceSelector",
    "EvidenceWarning",
    "MarkedSentence",
    "Rouge",
    "Sentence",
    "Summarizer",
    "Summary",
    "load_default",
    "oracle_summary",
    "read_clusters",
    "read_documents",
    "read_questions",
    "split_sentences",
]
