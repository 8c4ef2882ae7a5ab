"""The verbs that change a campaign's status; there is no other way.

Each takes the campaign's gate exclusively, as a statement of its own, and then makes one
compare-and-set ``UPDATE ... WHERE status = <expected>``. Of two callers at once one wins; the
other gets ``WrongState`` with the status it found. After ``pause`` or ``cancel`` has returned
(and its transaction is committed), no hand-over of that campaign commits.

Each raises ``GateBusy`` when the gate is not to be had in time, besides what it says.

The verbs open a transaction; inside a caller's own they join it and take effect with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from django.db import OperationalError, connection, transaction
from django.db.models.functions import Now
from django.utils.timezone import is_naive

from . import hooks, images, preflight
from .content import as_content
from .digest import digest, is_approved_as_it_is
from .errors import ApprovalRefused, Conflict, GateBusy, NotAgreed, PreflightFailed, WrongState
from .gate import DECISION_PATIENCE, READ_COMMITTED, enter_exclusive, is_lock_timeout
from .models import Approval, Campaign, Layout

#: The NOTIFY channel. A hint only: workers poll as well.
CHANNEL = "sendonce"

Status = Campaign.Status
Editor = Any  # the host's user model

EDITED_ROUND = "edited after it was approved, not through the admin; look at it and approve again"


def approve(
    campaign: Campaign,
    *,
    by: Editor,
    scheduled_for: datetime | None = None,
    seen_digest: str | None = None,
    objection: Callable[[preflight.Report], str] | None = None,
) -> Campaign:
    """``draft -> approved``: compile and freeze the content, store who, when and the digest.

    ``scheduled_for`` (aware) overrides the campaign's own; when both are empty it means now.
    ``seen_digest`` is the digest of what the approver was shown: the version alone does not see
    that the account's sender or a layout was changed. ``objection`` says why what preflight finds
    is not what the approver agreed to, "" where it is.
    Raises ``WrongState``, ``Conflict`` when ``campaign`` was edited since it was read,
    ``PreflightFailed`` when preflight finds an error (its warnings are for people to weigh),
    ``NotAgreed`` when there is an objection, ``ApprovalRefused`` when the account asks for a second
    person or a picture of this site is no more, and ``ValueError`` for a time without a zone.
    """
    if scheduled_for is not None and is_naive(scheduled_for):
        raise ValueError("scheduled_for has no time zone; whose nine o'clock would it be?")
    with transaction.atomic(), _layout_held(campaign) as layout, _decision(campaign) as now:
        found = _as_stored(campaign, "approve", Status.DRAFT)
        if found.version != campaign.version or found.layout_id != (layout and layout.pk):
            raise Conflict("approve")
        found.layout = layout
        if seen_digest is not None and seen_digest != digest(found):
            raise Conflict("approve")
        refusal = second_person(found, by)
        if refusal:
            raise ApprovalRefused(refusal)
        # Behind the gate, on what is stored and locked: nobody edits it meanwhile. A draft has no
        # rows, so that no worker wants its gate; only another editor of it waits, for as long as
        # counting takes: a few seconds for a million people.
        report = preflight.run(found, scheduled_for=scheduled_for, now=now)
        if not report.ok or report.compiled is None:
            raise PreflightFailed(report)
        why = objection(report) if objection is not None else ""
        if why:
            raise NotAgreed(report, why)
        # The last lock: whoever deletes a picture holds no other that is wanted here.
        if gone := images.hold(report.compiled.html):
            raise ApprovalRefused(f"a picture in it was deleted: {gone[0]}; choose another one")
        found.scheduled_for = scheduled_for or found.scheduled_for or now
        content = as_content(report.compiled, found.account_id)
        content.save(force_insert=True)
        fingerprint = digest(found, content)
        _compare_and_set(
            campaign,
            "approve",
            (Status.DRAFT,),
            status=Status.APPROVED,
            status_reason="",
            scheduled_for=found.scheduled_for,
            approved_by=by,
            approved_at=Now(),
            approved_digest=fingerprint,
            content=content,
        )
        Approval.objects.create(
            campaign=found,
            by=by,
            by_name=_name(by),
            at=now,
            digest=fingerprint,
            scheduled_for=found.scheduled_for,
            content=content,
        )
        _notify(campaign)
    return campaign


def second_person(campaign: Campaign, by: Editor) -> str:
    """Why ``by`` may not approve where the account asks for a second person; "": they may.

    Pure: reads the campaign's account and layout, its author and who edited each last.
    """
    if not campaign.account.second_approver:
        return ""
    if campaign.created_by_id is None:
        return (
            "this account asks for a second person, and the author of the campaign is not known "
            "any more; copy it, and somebody else approves the copy"
        )
    if by is None or by.pk is None:
        return "this account asks for a second person: somebody has to approve by name"
    if by.pk in (campaign.created_by_id, campaign.edited_by_id):
        return (
            "this account asks for a second person: whoever made a campaign or edited it last "
            "can't approve it; ask somebody else who may"
        )
    layout = campaign.layout
    # What its editor did before the campaign was written, the author has seen.
    written = campaign.edited_at or campaign.created
    if layout is not None and by.pk == layout.edited_by_id and layout.changed > written:
        return (
            "this account asks for a second person: whoever edited the layout after the campaign "
            "can't approve it; ask somebody else who may"
        )
    return ""


def withdraw(campaign: Campaign, *, by: Editor = None, reason: str = "") -> Campaign:
    """``approved -> draft``: void the approval before sending starts. Raises ``WrongState``."""
    with _decision(campaign):
        why = reason or f"approval withdrawn by {_name(by)}"
        _back_to_draft(campaign, "withdraw", why)
    return campaign


def pause(campaign: Campaign, *, by: Editor = None, reason: str = "") -> Campaign:
    """``sending -> paused``. Messages already handed over finish. Raises ``WrongState``."""
    return _move(
        campaign, "pause", (Status.SENDING,), Status.PAUSED, reason or f"paused by {_name(by)}"
    )


def resume(campaign: Campaign, *, by: Editor = None) -> Campaign:
    """``paused -> sending``. Raises ``WrongState``."""
    return _move(campaign, "resume", (Status.PAUSED,), Status.SENDING, f"resumed by {_name(by)}")


def cancel(campaign: Campaign, *, by: Editor = None, reason: str = "") -> Campaign:
    """``approved, sending or paused -> canceled``, for good; open rows become ``canceled``.

    What is on the wire finishes and is recorded as it ends. Raises ``WrongState``. Should the
    process die between the status and the last rows, a worker cancels the rest.
    """
    close(campaign, by=by, reason=reason)
    hooks.cancel_rows(campaign.pk)
    return campaign


def close(campaign: Campaign, *, by: Editor = None, reason: str = "") -> Campaign:
    """The decision of ``cancel`` without its rows, for whoever writes something in the same
    transaction. Once that has committed, ``hooks.cancel_rows`` cancels the rows, in short
    transactions of its own; where nobody calls it, a worker does."""
    return _move(
        campaign,
        "cancel",
        (Status.APPROVED, Status.SENDING, Status.PAUSED),
        Status.CANCELED,
        reason or f"canceled by {_name(by)}",
    )


def due(campaign: Campaign) -> bool:
    """``approved -> sending`` when its time has come; whoever gets False stops.

    The digest is computed again first: an edit that came round the admin puts the campaign
    back to ``draft`` with the reason, and nothing is sent.
    """
    with _decision(campaign, worker=True):
        found = (
            Campaign.objects.select_for_update(no_key=True, of=("self",))
            .select_related("account", "content")
            .filter(pk=campaign.pk)
            .due()
            .first()
        )
        if found is None:
            return False
        if not is_approved_as_it_is(found):
            _back_to_draft(campaign, "start", EDITED_ROUND)
            return False
        _compare_and_set(
            campaign, "start", (Status.APPROVED,), status=Status.SENDING, started_at=Now()
        )
        _notify(campaign)
    return True


def finish(campaign: Campaign) -> bool:
    """``sending -> sent`` when it is built and no row of it is open; False otherwise.

    Behind the gate nobody can open a row between the look and the change.
    """
    with _decision(campaign, worker=True):
        if hooks.open_rows(campaign.pk):
            return False
        changed = Campaign.objects.filter(
            pk=campaign.pk, status=Status.SENDING, built_at__isnull=False
        ).update(status=Status.SENT, finished_at=Now(), status_reason="")
        if not changed:
            return False
        _notify(campaign)
    campaign.refresh_from_db()
    return True


def reopen(campaign_id: int, reason: str) -> bool:
    """``sent -> sending``, because a row of it is open again: staff send doubtful or failed
    rows once more, or an answer that came late was a "not accepted".

    Must be called in the transaction that opens the row and holds the campaign's gate (shared
    is enough to keep ``finish`` out). False when the campaign was not ``sent``.
    """
    changed = Campaign.objects.filter(pk=campaign_id, status=Status.SENT).update(
        status=Status.SENDING, finished_at=None, status_reason=reason
    )
    return bool(changed)


def notify(campaign_id: int | None) -> None:
    """Wake the workers when the transaction commits (PostgreSQL sends it then). ``None``: about
    a message of no campaign."""
    about = "message" if campaign_id is None else f"campaign:{campaign_id}"
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_notify(%s, %s)", [CHANNEL, about])


@contextmanager
def _decision(campaign: Campaign, *, worker: bool = False) -> Iterator[datetime]:
    """A transaction behind the campaign's gate; yields the database's time."""
    with transaction.atomic(), connection.cursor() as cursor:
        enter_exclusive(cursor, campaign.pk, worker=worker)
        cursor.execute("SELECT clock_timestamp()")
        row = cursor.fetchone()
        assert row is not None
        yield row[0]


def _as_stored(campaign: Campaign, verb: str, *expected: str) -> Campaign:
    """The campaign as the database has it now, locked against other writers."""
    found = (
        Campaign.objects.select_for_update(no_key=True, of=("self",))
        .select_related("account")
        .filter(pk=campaign.pk)
        .first()
    )
    if found is None:
        raise WrongState(verb, "deleted", expected)
    if found.status not in expected:
        raise WrongState(verb, found.status, expected)
    return found


@contextmanager
def _layout_held(campaign: Campaign) -> Iterator[Layout | None]:
    """The campaign's layout, locked: an edit of it that is under way is waited for, and one that
    comes later finds the approval and takes it back.

    Before the gate: an edit of the layout holds it while it waits for the gates of campaigns. In
    the other order the two would wait for each other.
    """
    with connection.cursor() as cursor:
        cursor.execute(READ_COMMITTED)
        cursor.execute(DECISION_PATIENCE)
    rows = Layout.objects.select_for_update(no_key=True, of=("self",))
    try:
        layout = rows.filter(campaigns=campaign.pk).first()
    except OperationalError as error:
        if is_lock_timeout(error):
            raise GateBusy from error
        raise
    yield layout


def _compare_and_set(
    campaign: Campaign, verb: str, expected: tuple[str, ...], **changes: Any
) -> None:
    changed = Campaign.objects.filter(pk=campaign.pk, status__in=expected).update(**changes)
    if not changed:
        found = Campaign.objects.filter(pk=campaign.pk).values_list("status", flat=True).first()
        raise WrongState(verb, found or "deleted", expected)
    campaign.refresh_from_db()


def _move(
    campaign: Campaign, verb: str, expected: tuple[str, ...], status: str, reason: str
) -> Campaign:
    with _decision(campaign):
        _compare_and_set(campaign, verb, expected, status=status, status_reason=reason[:500])
        _notify(campaign)
    return campaign


def _back_to_draft(campaign: Campaign, verb: str, reason: str) -> None:
    _compare_and_set(
        campaign,
        verb,
        (Status.APPROVED,),
        status=Status.DRAFT,
        status_reason=reason[:500],
        approved_by=None,
        approved_at=None,
        approved_digest="",
        content=None,
    )
    void_approvals(campaign, reason)


def void_approvals(campaign: Campaign, reason: str) -> None:
    """Mark the campaign's standing approvals as void, with the reason."""
    Approval.objects.filter(campaign=campaign, voided_at__isnull=True).update(
        voided_at=Now(), void_reason=reason[:500]
    )


def _notify(campaign: Campaign) -> None:
    notify(campaign.pk)


def _name(by: Editor) -> str:
    return by.get_username() if by is not None else "the system"
