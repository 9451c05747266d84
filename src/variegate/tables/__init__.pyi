from .columns import Columns
from .evaluation import Evaluation
from .file_errors import TableFileError
from .folder.files import FolderTable
from .folder.gather import Gathered, gather
from .folder.selecting import FolderSelection
from .output import write_table
from .reading import TableFile
from .sample import make_table
from .selector import TableSelector
from .table import TableError
from .untrained import select_untrained

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
