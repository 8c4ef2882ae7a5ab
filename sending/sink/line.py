"""What is said to one client, and how long it is under way."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable


class Line:
    """Replies on their way through ``transport``: what is said before a ``flush`` leaves in one
    write, and arrives ``latency`` seconds later."""

    def __init__(self, transport: asyncio.Transport, latency: float) -> None:
        self._transport = transport
        self._latency = latency
        self._said: list[bytes] = []
        #: When it arrives, what, and what happens then.
        self._far: deque[tuple[float, bytes, Callable[[], None] | None]] = deque()

    def say(self, text: str) -> None:
        """Add a reply."""
        self._said.append(text.encode() + b"\r\n")

    def flush(self, then: Callable[[], None] | None = None) -> None:
        """Let go what was said; ``then`` is called when it has been written."""
        if not self._said:
            return
        data = b"".join(self._said)
        self._said.clear()
        if self._latency <= 0:
            self._write(data, then)
            return
        due = asyncio.get_running_loop().time() + self._latency
        self._far.append((due, data, then))
        if len(self._far) == 1:
            asyncio.get_running_loop().call_at(due, self._arrive)

    def _arrive(self) -> None:
        """Write what is due. One timer at a time, so that replies stay in their order."""
        loop = asyncio.get_running_loop()
        while self._far:
            due, data, then = self._far[0]
            if due > loop.time():
                loop.call_at(due, self._arrive)
                return
            self._far.popleft()
            self._write(data, then)

    def _write(self, data: bytes, then: Callable[[], None] | None) -> None:
        if self._transport.is_closing():
            return
        self._transport.write(data)
        if then is not None:
            then()
