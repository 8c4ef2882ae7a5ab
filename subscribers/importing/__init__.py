"""Import: people from a file into a segment of an account.

An import adds and completes; it never brings anybody back. Whoever unsubscribed or was erased
stays as they are, a suppression stands, and who left the segment has left it.

Each is an ``ImportJob``. Its file is read into a staging table, then its people are taken in, a
chunk in a transaction (or all in one). Whatever dies meanwhile, the next runner goes on where the
last committed chunk ended. ``import_file`` is for whoever has the file, ``jobs`` for uploads.
"""

from ..tabular import ImportRefused, Options
from .files import import_file
from .report import ImportReport, ImportStopped, Progress, Step, report

__all__ = [
    "ImportRefused",
    "ImportReport",
    "ImportStopped",
    "Options",
    "Progress",
    "Step",
    "import_file",
    "report",
]
