"""One person's rights (GDPR articles 15, 17 and 20): what is known of them, and being forgotten."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone

from .. import hooks
from ..audit import record
from ..models import (
    Account,
    AuditEvent,
    ImportReject,
    Membership,
    MembershipChange,
    Signup,
    Subscriber,
    Suppression,
)
from ..read_committed import read_committed
from ..suppression import Entry, begin_erasing, close_list, erased_among, hold_list, suppress_all
from . import forgetting
from .person_address import PersonAddress, naming


@dataclass(frozen=True, slots=True)
class Erasure:
    """What an erasure did. ``forgotten``: rows deleted or blanked, by kind; none: there was nothing
    left. ``uploads``: files of imports that were not read yet, and may name the person; they are
    refused when those imports run. ``elsewhere``: entries of the list for all accounts, which an
    account's erasure does not touch."""

    email_hash: str
    forgotten: dict[str, int] = field(default_factory=dict)
    uploads: int = 0
    elsewhere: int = 0


# --- knowing -------------------------------------------------------------------------------------


def export_person(account: Account, email: str) -> dict[str, Any]:
    """All that is known of one person in this account, as plain JSON data; no token, no key, and
    nothing of another account. Also for somebody who is no subscriber any more.

    Raises ``ValueError`` without an address.
    """
    address = _known(account, PersonAddress(email))
    people = list(address.people(account))
    ids = [person.pk for person in people]
    data: dict[str, Any] = {
        "account": {"name": account.name, "slug": account.slug},
        "address": address.email,
        "made": timezone.now(),
        "subscriber": [_person(person) for person in people],
        "sign_ups": [
            _signup(signup)
            for signup in Signup.objects.filter(
                forgetting.signups_of(account, address, ids) | _hashed(account, address)
            )
            .filter(Q(subscriber__isnull=True) | Q(subscriber__in=ids))
            .select_related("form", "consent")
            .order_by("pk")
        ],
        "suppressions": _suppressions(account, address),
        "rejected_rows_of_imports": [
            {
                "file": reject.job.file_name,
                "line": reject.line,
                "reason": reject.reason,
                "cells": reject.cells,
            }
            for reject in naming(
                ImportReject.objects.filter(job__account=account).select_related("job"),
                address,
                "reason",
                "cells",
            )
            if address.is_in(reject.cells) or address.is_in(reject.reason)
        ],
        "acts_of_staff": _acts(account, address),
    }
    for known in _each(ids):
        for kind, told in hooks.personal_data(account.pk, known, address.email).items():
            _join(data, kind, told)
    plain: dict[str, Any] = json.loads(json.dumps(data, cls=DjangoJSONEncoder))
    return plain


def record_export(account: Account, email: str, **who: Any) -> None:
    """Put an export on record: under the address, or of somebody who was erased under the hash.
    In a transaction."""
    address = PersonAddress(email)
    # An erasure under way ends first, or begins after this and finds it.
    hold_list(account.pk)
    if erased_among(account, address.forms):
        record(account, "person.export", subject_hash=address.hash, **who)
    else:
        record(account, "person.export", subject=address.email, **who)


def _person(person: Subscriber) -> dict[str, Any]:
    changes = MembershipChange.objects.filter(subscriber=person).order_by("pk")
    history: dict[int, list[dict[str, Any]]] = {}
    for change in changes:
        told = {"what": change.kind, "at": change.at, "source": change.source}
        history.setdefault(change.segment_id, []).append(told)
    return {
        "email": person.email,
        "status": person.status,
        "attributes": person.attributes,
        "locale": person.locale,
        "timezone": person.timezone,
        "consent_source": person.consent_source,
        "created": person.created,
        "confirmed_at": person.confirmed_at,
        "unsubscribed_at": person.unsubscribed_at,
        "paused_until": person.paused_until,
        "segments": [
            {
                "segment": membership.segment.name,
                "joined_at": membership.joined_at,
                "left_at": membership.left_at,
                "history": history.get(membership.segment_id, []),
            }
            for membership in Membership.objects.filter(subscriber=person)
            .select_related("segment")
            .order_by("pk")
        ],
    }


def _signup(signup: Signup) -> dict[str, Any]:
    return {
        "kind": signup.kind,
        "email": signup.email,
        "former_email": signup.former_email,
        "form": signup.form.name if signup.form else None,
        "attributes": signup.attributes,
        "locale": signup.locale,
        "agreed_to": signup.consent.text if signup.consent else None,
        "requested_at": signup.requested_at,
        "requested_from": signup.requested_from,
        "requested_with": signup.requested_agent,
        "confirmed_at": signup.confirmed_at,
        "confirmed_from": signup.confirmed_from,
        "confirmed_with": signup.confirmed_agent,
    }


def _suppressions(account: Account, address: PersonAddress) -> list[dict[str, Any]]:
    named = Q(email_lower__in=address.forms) | Q(email_hash__in=address.hashes)
    rows = Suppression.objects.filter(Q(account=account) | Q(account__isnull=True), named)
    return [
        {
            "for": "this account" if row.account_id else "all accounts",
            "email": row.email,
            "reason": row.reason,
            "reason_before_erasure": row.former_reason or None,
            "evidence": row.evidence,
            "created": row.created,
            "expires": row.expires,
        }
        for row in rows.order_by("pk")
    ]


def _acts(account: Account, address: PersonAddress) -> list[dict[str, Any]]:
    """What staff did about the person. Who of the staff it was is not theirs to know."""
    rows = AuditEvent.objects.filter(account=account)
    named = [
        event.pk
        for event in naming(rows, address, "subject", "reason", "detail")
        if any(address.is_in(said) for said in (event.subject, event.reason, event.detail))
    ]
    events = rows.filter(Q(pk__in=named) | Q(subject_hash__in=address.hashes)).order_by("pk")
    return [
        {"at": event.at, "what": event.verb, "reason": event.reason, "detail": event.detail}
        for event in events
    ]


def _hashed(account: Account, address: PersonAddress) -> Q:
    return Q(account=account, email_hash__in=address.hashes)


def _join(data: dict[str, Any], kind: str, told: Any) -> None:
    known = data.get(kind)
    data[kind] = [*known, *told] if isinstance(known, list) and isinstance(told, list) else told


# --- forgetting ----------------------------------------------------------------------------------


def erase_person(
    account: Account,
    email: str,
    *,
    by: Any = None,
    reason: str,
    by_name: str = "",
    request: HttpRequest | None = None,
) -> Erasure:
    """Forget one person in this account, for good: all or nothing, safe to repeat.

    What stays is what is no personal data (that a message was sent, that somebody agreed), and a
    keyed hash of the address, which goes on suppressing it wherever it comes from; only the
    person's own new confirmed sign-up lifts that, and not even it after a complaint. It waits for
    a chunk of an import that is being written.

    The order of the locks is that of all others: import, sign-ups, sends, person, list. Raises
    ``ValueError``: no address, or no ``reason``.
    """
    if not reason.strip():
        raise ValueError("say why the person is erased")
    address = _known(account, PersonAddress(email))
    with read_committed():
        forgotten: Counter[str] = Counter()
        _suppress_hashes(account, address)
        begin_erasing(account.pk)
        known = [person.pk for person in address.people(account)]
        _lock(Signup.objects.filter(forgetting.signups_of(account, address, known)))
        _erase_above(account, address, known, forgotten)
        people = list(
            Subscriber.objects.select_for_update(of=("self",))
            .filter(Q(pk__in=known) | Q(account=account, email_lower__in=address.forms))
            .order_by("pk")
        )
        # Their address may have changed, and a campaign may have taken them in, until just now.
        address = address.with_stored(person.email for person in people)
        ids = [person.pk for person in people]
        _suppress_hashes(account, address)
        _erase_above(account, address, ids, forgotten)
        close_list(account.pk)
        signups = _lock(Signup.objects.filter(forgetting.signups_of(account, address, ids)))
        memberships = _lock(Membership.objects.filter(subscriber__in=ids))
        forgotten["sign-ups"] += forgetting.forget_signups(account, address, ids)
        forgotten["attempts to sign up"] += forgetting.forget_attempts(account, address)
        forgotten["memberships"] += len(memberships)
        forgotten["subscribers"] += len(ids)
        Subscriber.objects.filter(pk__in=ids).delete()
        entries = forgetting.replace_suppressions(account, address)
        forgotten["suppressions"] += len(entries)
        forgotten["entries of the audit trail"] += forgetting.forget_audit(account, address)
        forgotten["rejected rows of imports"] += forgetting.forget_rejects(account, address)
        forgotten["rows of imports"] += forgetting.forget_imports(account, address)
        forgotten["entries of the admin's log"] += forgetting.forget_admin_log(
            address,
            [
                (Subscriber, ids),
                (Membership, memberships),
                (Suppression, entries),
                (Signup, signups),
            ],
        )
        erasure = Erasure(
            email_hash=address.hash,
            forgotten={kind: number for kind, number in forgotten.items() if number},
            uploads=forgetting.uploads_waiting(account),
            elsewhere=Suppression.objects.filter(
                account__isnull=True, email_lower__in=address.forms
            ).count(),
        )
        record(
            account,
            "person.erase",
            by=by,
            by_name=by_name,
            subject_hash=address.hash,
            reason=address.cut_out(reason.strip()),
            detail={"forgotten": erasure.forgotten},
            request=request,
        )
    return erasure


def _each(people: list[int]) -> list[int | None]:
    """Their ids; and one look without an id for somebody who is no subscriber."""
    return [*people] or [None]


def _known(account: Account, address: PersonAddress) -> PersonAddress:
    """With the forms in which it is stored."""
    return address.with_stored(address.people(account).values_list("email", flat=True))


def _lock(rows: QuerySet[Any]) -> list[int]:
    return list(rows.select_for_update(of=("self",)).order_by("pk").values_list("pk", flat=True))


def _suppress_hashes(account: Account, address: PersonAddress) -> None:
    suppress_all(
        Entry(account, form, Suppression.Reason.ERASED, "Erased on request.")
        for form in sorted(address.forms)
    )


def _erase_above(
    account: Account, address: PersonAddress, people: list[int], forgotten: Counter[str]
) -> None:
    for known in _each(people):
        forgotten.update(hooks.erase_personal_data(account.pk, known, address.email, address.hash))
