"""What can go wrong with the embedded server, told in one line each."""

from __future__ import annotations


class EmbeddedError(Exception):
    """The embedded PostgreSQL cannot be had; the message says what to do about it."""
