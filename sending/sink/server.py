"""The sink's server: it listens, and ends at a signal."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable

from .connection import Connection
from .state import Options, Sink


async def serve(options: Options, *, ready: Callable[[str, int], None] | None = None) -> None:
    """Serve until SIGTERM or SIGINT; ``ready`` is told the address when it listens.

    Raises ``OSError`` when the port, the record or the folder can't be opened.
    """
    sink = Sink(options)
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    if threading.current_thread() is threading.main_thread():  # nobody else can have handlers
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
    try:
        server = await loop.create_server(
            lambda: Connection(sink), options.host, options.port, backlog=512
        )
        async with server:
            host, port = server.sockets[0].getsockname()[:2]
            if ready is not None:
                ready(host, port)
            await stop.wait()
    finally:
        sink.recorder.close()
