"""Providers' APIs on this machine: they accept, remember, record, and fail on purpose.

``python -m tests.providers.server --record FILE`` serves all of ``SHAPES`` until it is killed. Each
acceptance is in the record, on the disk, before its answer begins; the record is the oracle that
says who got what, and how often. A server that starts on an old record remembers its keys.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import select
import socket
import struct
import threading
import time
import uuid
from collections import Counter
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from .faults import NOT_ACCEPTED, REFUSALS, Fault, fault_of
from .shapes import SHAPES, Reply, Request, Shape, Submission

#: The API key, or its secret half, that every provider here takes.
SECRET = "the-right-key"
#: Seconds for which a key is remembered.
WINDOWS = {"resend": 86400.0, "brevo": 900.0, "mailjet": 86400.0, "unisender_go": 60.0}


@dataclass
class Known:
    """What a provider remembers of a key. ``reply`` is None while the first request runs."""

    digest: str
    id: str
    at: float
    reply: Reply | None = None


class Providers:
    """State of all providers. ``handle`` is called by the threads of the server."""

    def __init__(self, record: Path, switch: Path | None, options: argparse.Namespace) -> None:
        self.lock = threading.Lock()
        self.switch, self.seed = switch, options.seed
        self.slow_seconds = options.slow_seconds
        self.keys: dict[tuple[str, str], Known] = {}
        self.times: Counter[tuple[str, str]] = Counter()
        if record.exists():
            for line in record.read_text().splitlines():
                self._remember(json.loads(line))
        self.file = os.open(record, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def _remember(self, entry: dict[str, Any]) -> None:
        submission = Submission(entry["recipient"], entry["metadata"], entry["key"])
        known = Known(entry["digest"], entry["id"], entry["at"])
        known.reply = SHAPES[entry["provider"]].accepted(submission, known.id)
        if known.reply is not None and submission.key:
            self.keys[entry["provider"], submission.key] = known
        self.times[entry["provider"], submission.recipient] += 1

    def percent(self) -> dict[str, float]:
        if self.switch is None or not self.switch.exists():
            return {}
        found: dict[str, float] = json.loads(self.switch.read_text())
        return found

    def handle(self, provider: str, request: Request) -> tuple[Reply, Fault]:
        """The answer to a request, and what shall happen to it on its way."""
        shape = SHAPES[provider]
        if shape.secret(request) != SECRET:
            return shape.refused(Submission("", {}), 401, "The API key is invalid"), Fault.NONE
        submission = shape.read(request)
        digest = hashlib.sha256(request.content).hexdigest()
        fault = fault_of(submission.recipient, self.percent(), self.seed)
        with self.lock:
            first = not self.times[provider, submission.recipient]
            self.times[provider, submission.recipient] += 1
            if fault not in REFUSALS and not first:
                fault = Fault.NONE
            if fault in NOT_ACCEPTED:
                return self._refuse(shape, submission, fault), Fault.NONE
            known = self._known(provider, submission)
            if known is not None:
                return self._repeat(shape, submission, known, digest), Fault.NONE
            known = Known(digest, uuid.uuid4().hex, time.time())
            if submission.key:
                self.keys[provider, submission.key] = known
        if fault is Fault.SLOW:
            time.sleep(self.slow_seconds)
        reply = shape.accepted(submission, known.id)
        self._write(
            provider=provider,
            recipient=submission.recipient,
            key=submission.key,
            metadata=dict(submission.metadata),
            digest=digest,
            id=known.id,
            at=known.at,
            fault="" if fault in (Fault.NONE, Fault.SLOW) else fault,
        )
        known.reply = reply
        return reply, fault

    def _known(self, provider: str, submission: Submission) -> Known | None:
        known = self.keys.get((provider, submission.key)) if submission.key else None
        if known is None or time.time() - known.at > WINDOWS[provider]:
            return None
        return known

    def _repeat(self, shape: Shape, submission: Submission, known: Known, digest: str) -> Reply:
        if known.reply is None:
            return shape.refused(submission, 409, "a request with this key is under way")
        if shape.compares_bodies and known.digest != digest:
            return shape.refused(submission, 409, "the key was used with another payload")
        return known.reply if shape.repeated is None else shape.repeated(submission, known.id)

    def _refuse(self, shape: Shape, submission: Submission, fault: Fault) -> Reply:
        if fault is Fault.BUSY:
            reply = shape.refused(submission, 429, "slow down")
            return Reply(reply.status, reply.body, {**reply.headers, "Retry-After": "1"})
        if fault is Fault.DOWN:
            return Reply(503, "<h1>unavailable</h1>", {"Content-Type": "text/html"})
        if fault is Fault.REJECT and shape.rejected is not None:
            return shape.rejected(submission)
        status = {Fault.LOGIN: 401, Fault.CONFLICT: 409}.get(fault, 400)
        what = {401: "API key is invalid", 409: "concurrent"}.get(status, "address")
        return shape.refused(submission, status, what)

    def _write(self, **entry: Any) -> None:
        with self.lock:
            os.write(self.file, json.dumps(entry).encode() + b"\n")
            os.fsync(self.file)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        provider, _, path = self.path.lstrip("/").partition("/")
        request = Request(path, {k.lower(): v for k, v in self.headers.items()}, content)
        self.server.keep(provider, request, self.client_address[1])
        try:
            reply, fault = self.server.providers.handle(provider, request)
        except (AssertionError, KeyError, ValueError) as error:
            self.respond(Reply(400, {"message": f"{type(error).__name__}: {error}"}))
            return
        self.meet(fault, reply)

    def do_GET(self) -> None:
        """The page that a redirect leads to: JSON which looks like an acceptance, or a 404."""
        if self.path == "/missing":
            self.respond(Reply(404, {"message": "not found"}))
        else:
            self.respond(Reply(200, {"id": "elsewhere", "messageId": "elsewhere"}))

    def meet(self, fault: Fault, reply: Reply) -> None:
        options = self.server.options
        if fault is Fault.ERROR:
            self.respond(Reply(500, {"message": "internal error"}))
        elif fault is Fault.GARBAGE:
            self.respond(Reply(200, "<html>accepted?", {"Content-Type": "text/html"}))
        elif fault is Fault.EMPTY:
            self.respond(Reply(200, {}))
        elif fault is Fault.MOVED:
            self.respond(Reply(303, {}, {"Location": "/elsewhere"}))
        elif fault is Fault.GONE:
            self.respond(Reply(303, {}, {"Location": "/missing"}))
        elif fault is Fault.RESET:
            self.hang_up(hard=True)
        elif fault is Fault.CUT:
            self.respond(reply, cut=True)
            self.hang_up(hard=False)
        elif fault is Fault.LATE:
            # Until the client gives up.
            select.select([self.connection], [], [], options.late_seconds)
            self.hang_up(hard=False)
        else:
            time.sleep(options.delay)
            self.respond(reply)

    def respond(self, reply: Reply, *, cut: bool = False) -> None:
        content = reply.content()
        self.send_response(reply.status)
        for name, value in {"Content-Type": "application/json", **reply.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content) + cut))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if cut else content)

    def hang_up(self, *, hard: bool) -> None:
        self.close_connection = True
        if hard:
            linger = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self.connection.close()

    def log_message(self, format: str, *args: Any) -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__((options.host, options.port), Handler)
        self.options = options
        switch = Path(options.switch) if options.switch else None
        self.providers = Providers(Path(options.record), switch, options)
        self.wire = Path(options.wire) if options.wire else None
        self.wire_lock = threading.Lock()

    def keep(self, provider: str, request: Request, client_port: int) -> None:
        """Every request as it came, accepted or not, where a test wants to compare them."""
        if self.wire is None:
            return
        entry = {
            "provider": provider,
            "path": request.path,
            "client_port": client_port,
            "headers": dict(request.headers),
            "content": request.content.decode("latin-1"),
        }
        with self.wire_lock, self.wire.open("a") as file:
            file.write(json.dumps(entry) + "\n")

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is part of the game."""


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.providers.server")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--record", required=True, help="append what was accepted, a JSON a line")
    parser.add_argument("--wire", help="append every request, a JSON a line")
    parser.add_argument("--switch", help="a JSON file, read for each request: fault to percent")
    parser.add_argument("--seed", default="")
    parser.add_argument("--delay", type=float, default=0.0)
    parser.add_argument("--late-seconds", type=float, default=60.0)
    parser.add_argument("--slow-seconds", type=float, default=0.3)
    server = Server(parser.parse_args(arguments))
    print(f"listening {server.server_address[0]!s}:{server.server_address[1]}", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        server.serve_forever()


if __name__ == "__main__":
    main()
