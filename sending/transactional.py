"""A message to one person, asked for by code: the same road and guarantees as a campaign's.

A confirmation, a receipt, a test send. The row is made in the caller's transaction, so it is
there exactly when what it speaks of is; a worker sends it, never the request.
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any

from django.db import connection, transaction
from django.utils.timezone import is_aware

from campaigns.content import as_content, compile_message
from campaigns.lifecycle import CHANNEL
from campaigns.models import Content
from subscribers.addresses import erased_hashes, lower, normalize
from subscribers.hooks import Message
from subscribers.models import Account, Subscriber

from .models import Send

#: No colon: ``message:<account>:<kind>:<key>`` must not be readable in two ways.
_KIND = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\Z")
#: Anything visible: a key is the caller's own, often an id or an address with a time.
_NOT_IN_KEY = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff]")
_MAX_JOB_ID = 300
#: An escaped NUL in JSON text, which PostgreSQL's ``jsonb`` can't hold.
_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")

_FROZEN = (
    "subject",
    "preheader",
    "html",
    "text",
    "from_email",
    "from_name",
    "reply_to",
    "account_fields",
)


class KeyReused(ValueError):
    """The key already stands for another message: another content, address or context."""


def enqueue(
    account: Account,
    *,
    kind: str,
    key: str,
    to: str,
    content: Content,
    context: dict[str, Any],
    expires: datetime,
    subscriber: Subscriber | None = None,
    transport: str = "",
) -> Send:
    """Queue one message; workers start on it when the caller's transaction commits.

    ``kind`` (letters, digits, ``.``, ``_``, ``-``) and ``key`` (the caller's, without spaces)
    make the ``job_id`` of at most 300 characters: asking twice gives the same row, whatever its
    status, and sends once. ``content`` may be unsaved (``campaigns.content.as_content``); it is
    saved with the row, and goes with its person when they are erased and it is nobody else's.
    ``context`` is plain JSON data, what the templates see. What has not
    left by ``expires`` (aware) fails as expired. ``transport``: an alias, where it is not to go by
    the account's.

    Raises ``KeyReused`` when the key stands for something else, ``subscribers.addresses.
    AddressError`` (a ``ValueError``) for ``to``, and ``ValueError`` for anything else that
    can't be queued; nothing is written then.
    """
    job_id = _job_id(account, kind, key)
    email = normalize(to)
    data = _plain(context)
    if not is_aware(expires):
        raise ValueError("expires must be an aware time")
    for thing, name in ((content, "content"), (subscriber, "subscriber")):
        if thing is not None and thing.account_id != account.pk:
            raise ValueError(f"the {name} belongs to another account")
    known = _stored(job_id)
    if known is None:
        known = _insert(
            Send(
                account=account,
                subscriber=subscriber,
                email=email,
                job_id=job_id,
                context=data,
                expires=expires,
                transport=transport,
            ),
            content,
        )
    if not _same(known, email, content, data):
        raise KeyReused(
            f"{kind} {key!r} is another message already (send {known.pk}): use another key"
        )
    return known


def send_message(message: Message) -> int:
    """Queue a message whose parts are merge templates; returns the number of its row.

    In the caller's transaction, as ``enqueue``, which see for what it means to ask twice and for
    what it raises. Raises ``campaigns.content.ContentError`` (a ``ValueError``) for a part that
    can't be sent.
    """
    compiled = compile_message(
        message.account, subject=message.subject, text=message.text, html=message.html
    )
    send = enqueue(
        message.account,
        kind=message.kind,
        key=message.key,
        to=message.to,
        content=as_content(compiled, message.account.pk),
        context=message.context,
        expires=message.expires,
        subscriber=message.subscriber,
    )
    return send.pk


def _insert(send: Send, content: Content) -> Send:
    """The row under this job id: ours, or that of a caller who was quicker."""
    with transaction.atomic():
        if content.pk is not None and content.private and not _share(content):
            content.pk = None  # it was emptied meanwhile, with the person whom it was made for
            content._state.adding = True
        unsaved = content.pk is None
        if unsaved:
            content.private = True
            content.save(force_insert=True)
        send.content = content
        Send.objects.bulk_create([send], ignore_conflicts=True)
        found = _stored(send.job_id)
        if found is None:
            # Only under a snapshot older than the quicker caller's commit.
            raise ValueError(f"{send.job_id} was queued by somebody else at this moment: repeat")
        if found.content_id != content.pk and unsaved:
            content.delete()
            content.pk = None
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_notify(%s, %s)", [CHANNEL, "message"])
    return found


def _share(content: Content) -> bool:
    """Make a content that came with one message everybody's, with its words as given."""
    words = {name: getattr(content, name) for name in ("subject", "html", "text")}
    content.private = not Content.objects.filter(pk=content.pk, **words).update(private=False)
    return not content.private


def _stored(job_id: str) -> Send | None:
    return Send.objects.select_related("content").filter(job_id=job_id).first()


def _same(send: Send, email: str, content: Content, context: Any) -> bool:
    if send.email is None:
        # With the address its words went, too: the key alone says that it is the same.
        return send.email_hash in erased_hashes(email)
    addressed = lower(send.email) == lower(email)
    return addressed and send.context == context and _same_content(send, content)


def _same_content(send: Send, content: Content) -> bool:
    if send.content_id == content.pk:
        return True
    return send.content is not None and all(
        getattr(send.content, name) == getattr(content, name) for name in _FROZEN
    )


def _job_id(account: Account, kind: str, key: str) -> str:
    if not _KIND.match(kind):
        raise ValueError(f"{kind!r} is no kind: letters, digits, '.', '_' and '-' make one")
    if not key or _NOT_IN_KEY.search(key):
        raise ValueError(f"{key!r} is no key: it is empty or has spaces or control characters")
    job_id = f"message:{account.pk}:{kind}:{key}"
    if len(job_id) > _MAX_JOB_ID:
        raise ValueError(
            f"kind and key are too long: {job_id[:60]}... has {len(job_id)} characters, "
            f"{_MAX_JOB_ID} are the most"
        )
    return job_id


def _plain(context: dict[str, Any]) -> Any:
    """The context as it will come back from the database. Raises ``ValueError``."""
    try:
        text = json.dumps(context, allow_nan=False)
        json.dumps(context, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"the context is no plain data: {error}") from error
    if _NUL.search(text):
        raise ValueError("the context is no plain data: it holds a NUL character")
    data = json.loads(text)
    if not isinstance(data, dict):
        raise ValueError("the context must be a dict")
    return data
