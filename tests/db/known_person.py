"""A person of whom every table knows something."""

from __future__ import annotations

from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import connection

from subscribers.addresses import erased_hashes
from subscribers.joining.limits import mailbox
from subscribers.models import (
    Account,
    AuditEvent,
    ImportJob,
    ImportReject,
    ImportRow,
    Membership,
    MembershipChange,
    Signup,
    SignupAttempt,
    Subscriber,
    Suppression,
)
from tests.factories import (
    AuditEventFactory,
    ImportJobFactory,
    ImportRejectFactory,
    ImportRowFactory,
    MembershipChangeFactory,
    SegmentFactory,
    SignupAttemptFactory,
    SignupFactory,
    StaffFactory,
    SubscriberFactory,
    SuppressionFactory,
)

ANN = "Ann@Example.org"


def everything_of(account: Account, email: str = ANN) -> Subscriber:
    """A person of whom every table knows something, in more than one spelling."""
    segment = SegmentFactory.create(account=account)
    person: Subscriber = SubscriberFactory.create(
        account=account, email=email, segments=[segment], attributes={"city": "Secretville"}
    )
    MembershipChangeFactory.create(segment=segment, subscriber=person)
    SignupFactory.create(
        account=account,
        email=email.upper(),
        confirmed=True,
        subscriber=person,
        attributes={"city": "Secretville"},
    )
    SignupFactory.create(account=account, email=email.lower())
    SignupAttemptFactory.create(account=account, address_hash=erased_hashes(mailbox(email))[0])
    SuppressionFactory.create(account=account, email=email, evidence=f"{email} wrote")
    AuditEventFactory.create(
        account=account,
        subject=email,
        reason=f"{email.lower()} called",
        detail={"was": [email], "n": 1},
    )
    job = ImportJobFactory.create(
        account=account,
        status="done",
        cursor=email.lower(),
        preview={"header": ["email", "city"], "rows": [[email, "Secretville"], ["b@x.org", "Ulm"]]},
    )
    ImportRejectFactory.create(
        job=job, cells=[f" {email} ", "Secretville"], reason=f"{email} is late."
    )
    ImportRowFactory.create(job=job, email=email)
    LogEntry.objects.create(
        user=StaffFactory.create(),
        content_type=ContentType.objects.get_for_model(Subscriber),
        object_id=str(person.pk),
        object_repr=email,
        action_flag=CHANGE,
        change_message=f'[{{"added": {{"object": "{email} in News"}}}}]',
    )
    return person


def everything_stored() -> str:
    """All that the tables of people and of the admin's log hold, as one text."""
    models = (
        Subscriber, Membership, MembershipChange, Signup, SignupAttempt, Suppression, AuditEvent,
        ImportJob, ImportReject, ImportRow, LogEntry,
    )  # fmt: skip
    with connection.cursor() as cursor:
        found = []
        for model in models:
            cursor.execute(f"SELECT t::text FROM {model._meta.db_table} t")
            found += [row[0] for row in cursor.fetchall()]
    return "\n".join(found)
