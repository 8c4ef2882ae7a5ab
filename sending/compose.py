"""From a claimed row to the message that goes on the wire."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Container
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from campaigns.models import Content
from campaigns.rendering import Renderer, build_context
from subscribers.tokens import Links

from .compiled import CompiledMessage
from .installation import namespace
from .messages import Envelope, SendMessage, build_message
from .queue import Claimed
from .smtp_envelope import mailbox
from .smtp_message import message_bytes
from .transports import Prepared, Transport

#: Contents kept compiled in a process; the one used least lately goes first.
KEPT = 64
_LINKS = frozenset({"preferences_url", "web_url"})


class ComposeError(Exception):
    """This row's message can't be made; the reason is what staff read."""


@dataclass(slots=True)
class Loaded:
    """One content, its templates compiled, or why they do not compile."""

    content: Content
    renderer: Renderer | Exception
    #: By campaign (None: transactional), for transports that take bytes; made when first needed.
    compiled: dict[int | None, CompiledMessage] = field(default_factory=dict)


class Composer:
    """Renders and builds messages; one per process, used by all lanes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[int, Loaded] = OrderedDict()
        self._namespace: UUID | None = None
        self._links: Links | None = None

    def cached(self, content_ids: set[int]) -> dict[int, Loaded] | None:
        """These contents, if all of them are at hand; None when ``load`` has to ask."""
        with self._lock:
            if self._namespace is None or not all(c in self._kept for c in content_ids):
                return None
            for content_id in content_ids:
                self._kept.move_to_end(content_id)
            return {c: self._kept[c] for c in content_ids}

    def load(self, content_ids: set[int]) -> dict[int, Loaded]:
        """These contents from the database; one that is not there is left out.

        The caller keeps what it got: the cache may drop it any moment for another lane's.
        """
        name = namespace()
        found: dict[int, Loaded] = {}
        for content in Content.objects.select_related("account").filter(pk__in=content_ids):
            try:
                found[content.pk] = Loaded(content, Renderer(content))
            except Exception as error:
                found[content.pk] = Loaded(content, error)
        with self._lock:
            self._namespace = name
            self._kept.update(found)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return found

    def compose(
        self,
        row: Claimed,
        loaded: dict[int, Loaded],
        *,
        over: Transport,
    ) -> Any:
        """The message of ``row``: ready bytes where the transport takes them, else Django's.

        Where the transport deduplicates, what the message is made of is kept in ``row.frozen``
        (made here the first time) and every later attempt is byte for byte the same.

        Raises ``ComposeError``, whatever went wrong: a row that can't be made must fail alone
        and not hold up those behind it.
        """
        name, found = self._namespace, loaded.get(row.content_id)
        if found is None or name is None:
            raise ComposeError("its content was deleted")
        content, renderer = found.content, found.renderer
        if isinstance(renderer, Exception):
            raise ComposeError(f"the content does not compile: {renderer}")
        try:
            if over.takes_bytes and row.frozen is None and not over.deduplicates:
                return self._written(row, found, renderer, name)
            made_of = row.frozen or self._made_of(row, content)
            if over.deduplicates and row.frozen is None:
                # As it will come back from the database.
                made_of = row.frozen = json.loads(json.dumps(made_of))
            message = self._compose(row, content, renderer, name, made_of)
            if over.takes_bytes:
                sender, data = message_bytes(message)
                return Prepared(sender, mailbox(row.email), data, stuffed=True)
            over.prepare(
                message,
                job_id=row.job_id,
                namespace=name,
                send_id=row.id,
                campaign_id=row.campaign_id,
                repeats=row.repeats,
            )
            return message
        except RecursionError as error:
            raise ComposeError("the message could not be made: nested too deeply") from error
        except Exception as error:
            raise ComposeError(f"the message could not be made: {error}") from error

    def _written(self, row: Claimed, found: Loaded, renderer: Renderer, name: UUID) -> Prepared:
        """The message as bytes; the same that ``_compose`` makes, as far as anybody reads it."""
        compiled = found.compiled.get(row.campaign_id)
        if compiled is None:  # two lanes may make it at the same time: they are equal
            compiled = found.compiled[row.campaign_id] = CompiledMessage(
                found.content, renderer, namespace=name, campaign_id=row.campaign_id
            )
        context, leave = self._context(row, found.content, compiled.reads)
        data = compiled.write(
            to=row.email,
            job_id=row.job_id,
            date=datetime.now(UTC).replace(microsecond=0),
            context=context,
            unsubscribe_url=leave,
        )
        return Prepared(compiled.envelope_from, mailbox(row.email), data, stuffed=True)

    def _made_of(self, row: Claimed, content: Content) -> dict[str, Any]:
        """All that goes into the message beside the content: plain data."""
        context, leave = self._context(row, content, _LINKS)
        return {
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "context": context,
            "unsubscribe_url": leave,
            "account_slug": content.account.slug,
            "account_name": content.account.name,
        }

    def _context(
        self, row: Claimed, content: Content, reads: Container[str]
    ) -> tuple[dict[str, Any], str]:
        """What the templates see, and the link of the header. A link that they do not read is
        blank: to sign one takes as long as to encode a part."""
        account = content.account_fields
        if row.campaign_id is None:
            return {**(row.context or {}), "email": row.email, "account": account}, ""
        links = self._links = self._links or Links()
        ids = row.subscriber_id or 0, row.campaign_id
        leave = links.unsubscribe(*ids)
        context = build_context(
            email=row.email,
            attributes=row.attributes,
            account_fields=account,
            unsubscribe_url=leave,
            preferences_url=links.preferences(*ids) if "preferences_url" in reads else "",
            web_url=links.web(*ids) if "web_url" in reads else "",
        )
        return context, leave

    def _compose(
        self,
        row: Claimed,
        content: Content,
        renderer: Renderer,
        name: UUID,
        made_of: dict[str, Any],
    ) -> SendMessage:
        return build_message(
            Envelope(
                to=row.email,
                from_email=content.from_email,
                from_name=content.from_name,
                reply_to=content.reply_to,
                job_id=row.job_id,
                namespace=name,
                date=datetime.fromisoformat(made_of["date"]),
                account_slug=made_of["account_slug"],
                account_name=made_of["account_name"],
                campaign_id=row.campaign_id,
                unsubscribe_url=made_of["unsubscribe_url"],
            ),
            renderer.render(made_of["context"]),
        )
