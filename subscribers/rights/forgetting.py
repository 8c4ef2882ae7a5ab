"""What each table of this app knows of one person, made to forget them. Only as parts of
``acts.erase_person``: each works inside its transaction and returns rows changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.apps import apps
from django.db.models import Q

from ..addresses import erased_hashes
from ..joining.limits import mailbox
from ..models import (
    Account,
    AuditEvent,
    ImportJob,
    ImportReject,
    ImportRow,
    Membership,
    Signup,
    SignupAttempt,
    Subscriber,
    Suppression,
)
from ..suppression import REMEMBERED
from .person_address import PersonAddress, naming

#: Stands where a name was.
NOBODY = "erased person"
_BATCH = 500


def signups_of(account: Account, address: PersonAddress, people: list[int]) -> Q:
    return Q(account=account) & (Q(email_lower__in=address.forms) | Q(subscriber__in=people))


def forget_signups(account: Account, address: PersonAddress, people: list[int]) -> int:
    """Those that wait are deleted. Of those that were confirmed stays that somebody, known by the
    hash alone, agreed to these words at that time."""
    found = Signup.objects.filter(signups_of(account, address, people))
    waiting, _ = found.filter(confirmed_at__isnull=True).delete()
    agreed = found.filter(confirmed_at__isnull=False)
    # Of somebody who had this address before: theirs goes on being evidence, without the address.
    others = agreed.filter(subscriber__isnull=False).exclude(subscriber__in=people)
    severed = others.update(email=None, email_hash=address.hash)
    former = Q(former_lower__in=address.forms) | Q(subscriber__in=people)
    Signup.objects.filter(former, account=account, former_email__isnull=False).update(
        former_email=None
    )
    blanked = severed + agreed.filter(Q(subscriber__isnull=True) | Q(subscriber__in=people)).update(
        email=None,
        email_hash=address.hash,
        subscriber=None,
        attributes={},
        locale="",
        requested_from=None,
        requested_agent="",
        confirmed_from=None,
        confirmed_agent="",
    )
    return waiting + blanked


def forget_attempts(account: Account, address: PersonAddress) -> int:
    boxes = {digest for form in address.forms for digest in erased_hashes(mailbox(form))}
    return SignupAttempt.objects.filter(account=account, address_hash__in=boxes).delete()[0]


def replace_suppressions(account: Account, address: PersonAddress) -> list[int]:
    """The hashes alone go on suppressing, and remember the strongest reason there was. The ids of
    the entries that are gone."""
    mine = Suppression.objects.filter(account=account)
    plain = list(mine.filter(email_lower__in=address.forms).select_for_update(of=("self",)))
    known = [reason for row in plain for reason in (row.reason, row.former_reason) if reason]
    hashed = mine.filter(email_hash__in=address.hashes)
    known += [reason for reason in hashed.values_list("former_reason", flat=True) if reason]
    if known:
        hashed.update(former_reason=max(known, key=_strength))
    mine.filter(pk__in=[entry.pk for entry in plain]).delete()
    return [entry.pk for entry in plain]


def forget_audit(account: Account, address: PersonAddress) -> int:
    """What staff did stays on record, with the hash where the address was."""
    rows = AuditEvent.objects.filter(account=account)
    changed = []
    for event in naming(rows, address, "subject", "reason", "detail").iterator(_BATCH):
        if not any(address.is_in(said) for said in (event.subject, event.reason, event.detail)):
            continue
        if address.is_in(event.subject):
            event.subject_hash = address.hash
            whole = event.subject_lower in address.forms
            event.subject = "" if whole else address.cut_out(event.subject)
        event.reason = address.cut_out(event.reason)
        event.detail = address.cut_out(event.detail)
        changed.append(event)
    AuditEvent.objects.bulk_update(
        changed, ["subject", "subject_hash", "reason", "detail"], batch_size=_BATCH
    )
    return len(changed)


def forget_rejects(account: Account, address: PersonAddress) -> int:
    """The cells of a row that names the person go; that there was such a row stays."""
    rows = ImportReject.objects.filter(job__account=account)
    changed = []
    for reject in naming(rows, address, "reason", "cells").iterator(_BATCH):
        if address.is_in(reject.cells) or address.is_in(reject.reason):
            reject.cells, reject.reason = [], address.cut_out(reject.reason)
            changed.append(reject)
    ImportReject.objects.bulk_update(changed, ["reason", "cells"], batch_size=_BATCH)
    return len(changed)


def forget_imports(account: Account, address: PersonAddress) -> int:
    """Rows of previews, words of errors, and what ended imports have left. Those that are queued
    refuse the person by themselves, and end without their rows: a runner holds their job first and
    waits for erasures then, and must not be waited for here."""
    jobs = ImportJob.objects.filter(account=account).exclude(status=ImportJob.Status.QUEUED)
    changed = []
    held = jobs.select_for_update(of=("self",), no_key=True).order_by("pk")
    for job in naming(held, address, "preview", "error", "cursor").iterator(_BATCH):
        before = (job.preview, job.error, job.cursor)
        job.preview = address.without_rows(job.preview)
        job.error = address.cut_out(job.error)
        if job.cursor in address.forms:
            job.cursor = ""
        if before != (job.preview, job.error, job.cursor):
            changed.append(job)
    ImportJob.objects.bulk_update(changed, ["preview", "error", "cursor"], batch_size=_BATCH)
    ended = list(jobs.values_list("pk", flat=True))
    staged = ImportRow.objects.filter(job__in=ended, email_lower__in=address.forms)
    return len(changed) + staged.delete()[0]


def uploads_waiting(account: Account) -> int:
    """Files of imports that have not ended: nobody can look into them before they are read."""
    waiting = (ImportJob.Status.DRAFT, ImportJob.Status.QUEUED)
    jobs = ImportJob.objects.filter(account=account, status__in=waiting)
    return jobs.filter(chunks__isnull=False).distinct().count()


def forget_admin_log(
    address: PersonAddress, gone: Iterable[tuple[type[Any], Iterable[int]]]
) -> int:
    """Django's own log of the admin names every object: those in ``gone`` (model, ids), and those
    of this name that were deleted earlier."""
    if not apps.is_installed("django.contrib.admin"):
        return 0
    from django.contrib.admin.models import LogEntry
    from django.contrib.contenttypes.models import ContentType

    erased = {
        (ContentType.objects.get_for_model(model).pk, str(pk)) for model, ids in gone for pk in ids
    }
    models = {
        ContentType.objects.get_for_model(model).pk: model
        for model in (Subscriber, Membership, Suppression, Signup)
    }
    entries = LogEntry.objects.filter(content_type__in=list(models))
    changed = []
    for entry in naming(entries, address, "object_repr", "change_message").iterator(_BATCH):
        said = (entry.object_repr, entry.change_message)
        if not any(address.is_in(text) for text in said):
            continue
        key = (entry.content_type_id, entry.object_id)
        # The same name in another account is another person's affair while they are there.
        if key not in erased and _is_there(models[entry.content_type_id], entry.object_id):
            continue
        if address.is_in(entry.object_repr):
            entry.object_repr = NOBODY
        entry.change_message = address.cut_out(entry.change_message)
        changed.append(entry)
    LogEntry.objects.bulk_update(changed, ["object_repr", "change_message"], batch_size=_BATCH)
    return len(changed)


def _is_there(model: type[Any], pk: str) -> bool:
    exists: bool = pk.isdigit() and model._default_manager.filter(pk=pk).exists()
    return exists


def _strength(reason: str) -> int:
    return [str(known) for known in REMEMBERED].index(reason)
