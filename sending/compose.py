"""From a claimed row to the message that goes on the wire."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from campaigns.models import Content
from campaigns.rendering import Renderer, build_context
from subscribers.tokens import Links

from .installation import namespace
from .messages import Envelope, build_message
from .queue import Claimed
from .smtp_message import message_bytes
from .transports import Prepared

#: Contents kept compiled in a process; the least recently used goes first.
KEPT = 64


class ComposeError(Exception):
    """This row's message can't be made; the reason is what staff read."""


class Composer:
    """Renders and builds messages; one per process, used by all lanes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._contents: OrderedDict[int, tuple[Content, Renderer | Exception]] = OrderedDict()
        self._namespace: UUID | None = None
        self._links: Links | None = None

    def has(self, content_ids: Iterable[int]) -> bool:
        """Whether ``compose`` can do without the database for these contents."""
        with self._lock:
            return self._namespace is not None and all(c in self._contents for c in content_ids)

    def load(self, content_ids: Iterable[int]) -> None:
        """Fetch and compile contents; call it with a database connection at hand."""
        name = namespace()
        found: dict[int, tuple[Content, Renderer | Exception]] = {}
        for content in Content.objects.select_related("account").filter(pk__in=list(content_ids)):
            try:
                found[content.pk] = (content, Renderer(content))
            except Exception as error:
                found[content.pk] = (content, error)
        with self._lock:
            self._namespace = name
            for content_id, loaded in found.items():
                self._contents[content_id] = loaded
                self._contents.move_to_end(content_id)
            while len(self._contents) > KEPT:
                self._contents.popitem(last=False)

    def compose(self, row: Claimed, *, as_bytes: bool) -> Any:
        """The message of ``row``: ready bytes where the transport takes them, else Django's.

        Raises ``ComposeError``, whatever went wrong: a row that can't be made must fail alone
        and not hold up those behind it.
        """
        with self._lock:
            loaded = self._contents.get(row.content_id)
            name = self._namespace
        if loaded is None or name is None:
            raise ComposeError("its content is gone")
        content, renderer = loaded
        if isinstance(renderer, Exception):
            raise ComposeError(f"the content does not compile: {renderer}")
        try:
            message = self._compose(row, content, renderer, name)
            if not as_bytes:
                return message
            sender, data = message_bytes(message)
            return Prepared(sender, row.email, data)
        except RecursionError as error:
            raise ComposeError("the message could not be made: nested too deeply") from error
        except Exception as error:
            raise ComposeError(f"the message could not be made: {error}") from error

    def _compose(self, row: Claimed, content: Content, renderer: Renderer, name: UUID) -> Any:
        leave = ""
        if row.campaign_id is not None:
            subscriber_id = row.subscriber_id or 0
            links = self._links = self._links or Links()
            leave = links.unsubscribe(subscriber_id, row.campaign_id)
            context = build_context(
                email=row.email,
                attributes=row.attributes,
                account_fields=content.account_fields,
                unsubscribe_url=leave,
                preferences_url=links.preferences(subscriber_id, row.campaign_id),
                web_url="",
            )
        else:
            context = {**(row.context or {}), "email": row.email, "account": content.account_fields}
        rendered = renderer.render(context)
        return build_message(
            Envelope(
                to=row.email,
                from_email=content.from_email,
                from_name=content.from_name,
                reply_to=content.reply_to,
                job_id=row.job_id,
                namespace=name,
                date=datetime.now(UTC),
                account_slug=content.account.slug,
                account_name=content.account.name,
                campaign_id=row.campaign_id,
                unsubscribe_url=leave,
            ),
            rendered,
        )
