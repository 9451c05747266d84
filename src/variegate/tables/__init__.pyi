from .columns import Columns
from .errors import TableError, TableFileError
from .evaluation import Evaluation
from .gathering import Gathered, gather
from .output import write_table
from .reading import TableFile
from .sample import make_table
from .selecting import FolderSelection, select_untrained
from .selector import TableSelector
from .table import FolderTable

__all__ = [
    "Columns",
    "Evaluation",
    "FolderSelection",
    "FolderTable",
    "Gathered",
    "TableError",
    "TableFile",
    "TableFileError",
    "TableSelector",
    "gather",
    "make_table",
    "select_untrained",
    "write_table",
]
