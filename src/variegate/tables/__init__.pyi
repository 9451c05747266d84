from .columns import Columns
from .folder.files import FolderTable
from .folder.gather import Gathered, gather
from .folder.judging import FolderEvaluation, evaluate_folder
from .folder.learning import learn_folder
from .folder.selecting import FolderSelection, select_folder
from .output import write_table
from .reading import TableFile, TableFileError
from .sample import make_table
from .selector import TableSelector
from .table import TableError
from .untrained import select_untrained

__all__ = [
    "Columns",
    "FolderEvaluation",
    "FolderSelection",
    "FolderTable",
    "Gathered",
    "TableError",
    "TableFile",
    "TableFileError",
    "TableSelector",
    "evaluate_folder",
    "gather",
    "learn_folder",
    "make_table",
    "select_folder",
    "select_untrained",
    "write_table",
]
