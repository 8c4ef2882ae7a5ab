"""A local SMTP server that records what it accepts and fails on purpose.

For the demo and the crash tests: its fsynced record is the oracle that says who got what. It is
written on ``asyncio`` alone because the faults need the bytes (a connection dropped between body
and final dot) and the tests its speed. ``python -m sending.sink`` or ``manage.py sink``.
"""

from .faults import Fault, Faults
from .record import accepted, read_record
from .server import serve
from .state import Options

__all__ = ["Fault", "Faults", "Options", "accepted", "read_record", "serve"]
