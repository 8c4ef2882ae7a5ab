"""A content made ready for many people: what is the same for all of them is made once.

That is the headers but for six of them, whatever the templates print for everybody, and the
encoded lines of the text between the fields. What is written for one person is the message that
``messages.build_message`` makes of the same arguments; it differs in soft line breaks only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from campaigns.models import Content
from campaigns.rendering import Rendered, Renderer, one_line
from campaigns.sandbox import Compiled

from . import headers as h
from .messages import (
    Envelope,
    MessageError,
    assembled,
    build_message,
    header_date,
    own_names,
)
from .smtp_envelope import mailbox
from .text_parts import PartEncoder

_LINK = "https://example.org/"
_NOBODY = "person@example.org"


@dataclass(frozen=True, slots=True)
class _Part:
    subtype: str
    template: Compiled
    encoder: PartEncoder

    def written(self, context: Mapping[str, Any]) -> tuple[str, str, list[bytes]] | None:
        """Subtype, transfer encoding and lines for one person; None when there is no HTML for
        them, as a message without text is still a message."""
        pieces = self.template.pieces(context)
        if self.template.html and not any(pieces):
            return None
        try:
            return self.subtype, *self.encoder.encode(pieces)
        except UnicodeEncodeError as error:
            raise MessageError(f"The {self.subtype} part is no valid Unicode: {error}.") from error


class CompiledMessage:
    """The messages of one content in one campaign, or in none (``campaign_id`` is None: they are
    transactional). Used by any thread.

    ``envelope_from`` is the bare address of the sender, ``reads`` are the top-level names of the
    fields that the templates read. Raises ``MessageError`` for a content of which no message can
    be made, ``ValueError`` for a sender that no envelope can have.
    """

    def __init__(
        self,
        content: Content,
        renderer: Renderer,
        *,
        namespace: UUID,
        campaign_id: int | None,
    ) -> None:
        self._namespace = namespace
        self._is_bulk = campaign_id is not None
        self._from_email = content.from_email
        known = {"account": content.account_fields}
        self._subject = renderer.subject.given(known)
        templates = [("plain", renderer.text.given(known))]
        if renderer.html is not None:
            templates.append(("html", renderer.html.given(known)))
        self._parts = [_part(subtype, template) for subtype, template in templates]
        sample = build_message(
            Envelope(
                to=_NOBODY,
                from_email=content.from_email,
                from_name=content.from_name,
                reply_to=content.reply_to,
                job_id="",
                namespace=namespace,
                date=datetime.fromisoformat("2000-01-01T00:00:00+00:00"),
                account_slug=content.account.slug,
                account_name=content.account.name,
                campaign_id=campaign_id,
                unsubscribe_url=_LINK if self._is_bulk else "",
            ),
            Rendered(subject="", html="", text=""),
        )
        self.envelope_from = mailbox(content.from_email)
        self.reads = frozenset(
            name.partition(".")[0]
            for template in (self._subject, *(part.template for part in self._parts))
            for name in template.fields
        )
        own = ("To", "Subject", "Date", "Message-ID", "List-Unsubscribe")
        self._head = "".join(
            f"{name}: %({name})s\n" if name in own else f"{name}: {value}\n".replace("%", "%%")
            for name, value in sample.checked_headers()
        )

    def write(
        self,
        *,
        to: str,
        job_id: str,
        date: datetime,
        context: Mapping[str, Any],
        unsubscribe_url: str,
    ) -> bytes:
        """One person's message: lines that end in CRLF, none of which begins with a dot.

        ``date`` is aware; ``unsubscribe_url`` belongs to a campaign. Raises ``SandboxError`` for
        data that the templates refuse, ``MessageError`` for what no header may hold.
        """
        subject = one_line(self._subject.render(context))
        written = (part.written(context) for part in self._parts)
        parts = [part for part in written if part is not None]
        message_id, mark = own_names(self._namespace, job_id, self._from_email)
        own = {
            "To": h.wire_address(to),
            "Subject": h.unstructured("Subject", subject),
            "Date": header_date(date),
            "Message-ID": message_id,
        }
        if self._is_bulk:
            own["List-Unsubscribe"] = h.uri("List-Unsubscribe", unsubscribe_url)
        return assembled(self._head % own, mark, parts)


def _part(subtype: str, template: Compiled) -> _Part:
    try:
        return _Part(subtype, template, PartEncoder(template.texts))
    except UnicodeEncodeError as error:
        raise MessageError(f"The {subtype} part is no valid Unicode: {error}.") from error
