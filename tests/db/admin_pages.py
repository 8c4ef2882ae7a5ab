"""The admin's pages as tests ask for them: whose client, which URL, one row of everything."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from campaigns.models import Approval, Campaign, Content, Image, Layout
from sending.models import (
    ArchivedCount,
    CampaignHealth,
    DeliveryEvent,
    RateLimit,
    Send,
    TransportPause,
)
from subscribers.models import (
    Account,
    AttributeDefinition,
    AuditEvent,
    ConsentText,
    ImportJob,
    Membership,
    MembershipChange,
    Segment,
    Signup,
    SignupAttempt,
    SignupForm,
    Subscriber,
    Suppression,
)
from tests.factories import (
    AttributeDefinitionFactory,
    AuditEventFactory,
    CampaignFactory,
    ConsentTextFactory,
    ContentFactory,
    ImportJobFactory,
    MembershipChangeFactory,
    MembershipFactory,
    SegmentFactory,
    SendFactory,
    SignupAttemptFactory,
    SignupFactory,
    SignupFormFactory,
    StaffFactory,
    SubscriberFactory,
    SuppressionFactory,
)

LABELS = ("sendonce_subscribers", "sendonce_campaigns", "sendonce_sending")
OURS = [model for model in admin.site._registry if model._meta.app_label in LABELS]
SECRET = "secretname"
LAYOUT = "<html><body>{% block content %}{% endblock %}</body></html>"


def url(model: type[Any], page: str, *args: Any) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}", args=args)


def grant_all(user: Any) -> None:
    user.user_permissions.set(Permission.objects.filter(content_type__app_label__in=LABELS))


def member_client(*accounts: Account) -> tuple[Client, Any]:
    """A member of the accounts, with every permission on our models."""
    user = StaffFactory.create()
    grant_all(user)
    for account in accounts:
        account.members.add(user)
    client = Client()
    client.force_login(user)
    return client, user


def seen(client: Client, row: Any) -> dict[str, str]:
    """What the change page of a row carries of how it is now; a browser posts it with the rest."""
    page = client.get(url(type(row), "change", row.pk))
    return {"seen": page.context["adminform"].form["seen"].value()}


def change(client: Client, row: Any, form: dict[str, Any]) -> Any:
    """Post the change page of a row as a browser does that has just loaded it."""
    return client.post(url(type(row), "change", row.pk), {**seen(client, row), **form})


def run_action(client: Client, model: type[Any], name: str, *rows: Any, **more: Any) -> Any:
    data = {"action": name, "_selected_action": [row.pk for row in rows], **more}
    return client.post(url(model, "changelist"), data)


def one_of_each(account: Account) -> dict[type[Any], Any]:
    """One row of every tenant's model, all of ``account`` and all recognisable by ``SECRET``."""
    segment = SegmentFactory.create(account=account, name=f"{SECRET} segment")
    person = SubscriberFactory.create(account=account, email=f"{SECRET}@example.org")
    content = ContentFactory.create(account=account, subject=f"{SECRET} subject")
    campaign = CampaignFactory.create(
        account=account, name=f"{SECRET} campaign", segments=[segment], sending=True
    )
    send = SendFactory.create(campaign=campaign, subscriber=person, in_doubt=True)
    form = SignupFormFactory.create(account=account, name=f"{SECRET} form", segments=[segment])
    words = ConsentTextFactory.create(account=account, text=f"{SECRET} words")
    now = timezone.now()
    made: dict[type[Any], Any] = {
        Account: account,
        Segment: segment,
        Subscriber: person,
        Membership: MembershipFactory.create(segment=segment, subscriber=person),
        MembershipChange: MembershipChangeFactory.create(segment=segment, subscriber=person),
        Suppression: SuppressionFactory.create(account=account, email=f"{SECRET}@x.example.org"),
        AuditEvent: AuditEventFactory.create(account=account, subject=f"{SECRET}@x.example.org"),
        AttributeDefinition: AttributeDefinitionFactory.create(account=account, key=SECRET),
        ImportJob: ImportJobFactory.create(account=account, file_name=SECRET, status="done"),
        SignupForm: form,
        ConsentText: words,
        Signup: SignupFactory.create(
            account=account, form=form, consent=words, email=f"{SECRET}@y.example.org"
        ),
        SignupAttempt: SignupAttemptFactory.create(account=account),
        Content: content,
        Campaign: campaign,
        Approval: Approval.objects.create(
            campaign=campaign,
            by_name=SECRET,
            at=now,
            digest="0" * 64,
            scheduled_for=now,
            content=content,
        ),
        Send: send,
        DeliveryEvent: DeliveryEvent.objects.create(
            send=send, account=account, kind="in_doubt", text=SECRET
        ),
        TransportPause: TransportPause.objects.create(
            alias="default", account=account, stage="mail", reason=SECRET, probe_at=now
        ),
        RateLimit: RateLimit.objects.create(
            key=f"account:{account.pk}", usual=2, rate=1, slowed_at=now, reason=SECRET
        ),
        CampaignHealth: CampaignHealth.objects.create(campaign=campaign, accepted=1, bounced=1),
        ArchivedCount: ArchivedCount.objects.create(
            campaign=campaign, status="sent", number=3, at=now
        ),
        Layout: Layout.objects.create(account=account, name=f"{SECRET} layout", body=LAYOUT),
        Image: Image.objects.create(
            account=account,
            name=f"{SECRET} image",
            file="sendonce/images/secret.png",
            content_type="image/png",
        ),
    }
    return {model: row for model, row in made.items() if admin.site.is_registered(model)}
