"""Files of subscribers: CSV in its kinds and Excel's ``.xlsx``, read in bounded memory.

``detect`` looks at a file, ``open_table`` reads its rows, and a ``Plan`` says what each means.
"""

from .detecting import Detected, detect, open_table
from .options import Options
from .plan import Plan, Row
from .records import BadRecord, ImportRefused, Record, RowError, Table

__all__ = [
    "BadRecord",
    "Detected",
    "ImportRefused",
    "Options",
    "Plan",
    "Record",
    "Row",
    "RowError",
    "Table",
    "detect",
    "open_table",
]
