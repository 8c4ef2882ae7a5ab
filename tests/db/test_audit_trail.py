"""Everything that staff do in the admin is on record: once, by whom, what, to what, from where.

Each act is done by a member with a browser's means: a page is asked for, its form filled and sent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.utils import timezone

from campaigns import lifecycle
from campaigns.models import Campaign, Image, Layout
from sending.models import Send, TransportPause
from subscribers import audit_words
from subscribers.models import (
    Account,
    AttributeDefinition,
    AuditEvent,
    Membership,
    Segment,
    SignupForm,
    Subscriber,
    Suppression,
)
from tests.db.admin_pages import LAYOUT, member_client, run_action, url
from tests.db.admin_urls import forms, stored
from tests.factories import (
    AccountFactory,
    AttributeDefinitionFactory,
    CampaignFactory,
    ImportJobFactory,
    MembershipFactory,
    SegmentFactory,
    SendFactory,
    SignupFormFactory,
    SubscriberFactory,
    SuppressionFactory,
)

pytestmark = pytest.mark.django_db

FROM = "192.0.2.44"
Act = Callable[[Client, Account], Any]


def submit(client: Client, address: str, **changes: Any) -> Any:
    """The form of that page which leads to it, as it is but for ``changes``."""
    page = client.get(address)
    assert page.status_code == 200, (address, page.status_code)
    found = [data for target, data in forms(page.content, address) if target == address]
    assert found, f"no form on {address} leads to it"
    data = {name: value for name, value in found[-1].items() if value != [None]}
    answer = client.post(address, {**data, **changes})
    context = getattr(answer, "context", None)
    errors = context.get("errors", "") if answer.status_code == 200 and context else ""
    assert answer.status_code in (200, 302), (answer.status_code, address)
    assert not errors, errors
    return answer


def campaign(account: Account, **traits: Any) -> Campaign:
    segment = SegmentFactory.create(account=account)
    SubscriberFactory.create(account=account, segments=[segment])
    return CampaignFactory.create(account=account, segments=[segment], **traits)


def approve(client: Client, account: Account) -> None:
    submit(client, url(Campaign, "approve", campaign(account).pk), acknowledged="on")


def withdraw(client: Client, account: Account) -> None:
    draft = campaign(account)
    lifecycle.approve(draft, by=None)
    client.post(url(Campaign, "withdraw", draft.pk))


def verb(name: str, **traits: Any) -> Act:
    def act(client: Client, account: Account) -> None:
        client.post(url(Campaign, name, campaign(account, **traits).pk))

    return act


def write(client: Client, account: Account) -> None:
    segment = SegmentFactory.create(account=account)
    submit(
        client, f"{url(Campaign, 'add')}?account={account.pk}", name="New", subject="News",
        body="Hello", body_format="text", segments=[segment.pk],
    )  # fmt: skip


def edit(client: Client, account: Account) -> None:
    submit(client, url(Campaign, "change", campaign(account).pk), name="Other")


def delete(model: type[Any], made: Callable[[Account], Any]) -> Act:
    def act(client: Client, account: Account) -> None:
        client.post(url(model, "delete", made(account).pk), {"post": "yes"})

    return act


def copy(client: Client, account: Account) -> None:
    client.post(url(Campaign, "copy", campaign(account).pk))


def add(model: type[Any], **given: Any) -> Act:
    def act(client: Client, account: Account) -> None:
        submit(client, f"{url(model, 'add')}?account={account.pk}", account=account.pk, **given)

    return act


def change(model: type[Any], made: Callable[[Account], Any], **given: Any) -> Act:
    def act(client: Client, account: Account) -> None:
        submit(client, url(model, "change", made(account).pk), **given)

    return act


def layout(account: Account) -> Layout:
    return Layout.objects.create(account=account, name="Frame", body=LAYOUT)


def image(account: Account) -> Image:
    return Image.objects.create(
        account=account, name="Picture", file="sendonce/images/none.png", content_type="image/png"
    )


def decide(client: Client, account: Account) -> None:
    send = SendFactory.create(campaign=campaign(account, sending=True), in_doubt=True)
    run_action(client, Send, "treat_as_sent", send, confirmed="yes")


def try_now(client: Client, account: Account) -> None:
    pause = TransportPause.objects.create(
        alias="default", account=account, stage="mail", reason="why", probe_at=timezone.now()
    )
    client.post(url(TransportPause, "delete", pause.pk), {"post": "yes"})


def unsubscribe(client: Client, account: Account) -> None:
    person = SubscriberFactory.create(account=account)
    run_action(client, Subscriber, "unsubscribe_selected", person, confirmed="yes")


def leave(client: Client, account: Account) -> None:
    row = MembershipFactory.create(segment__account=account)
    run_action(client, Membership, "leave_selected", row, confirmed="yes")


def join(client: Client, account: Account) -> None:
    client.post(
        url(Membership, "add"),
        {
            "segment": SegmentFactory.create(account=account).pk,
            "subscriber": SubscriberFactory.create(account=account).pk,
        },
    )


def suppress(client: Client, account: Account) -> None:
    given = {"account": account.pk, "email": "x@example.org", "reason": "manual", "evidence": "?"}
    client.post(url(Suppression, "add"), given)


def release(client: Client, account: Account) -> None:
    entry = SuppressionFactory.create(account=account)
    submit(client, url(Suppression, "release", entry.pk), words="a mistake")


def people_out(client: Client, account: Account) -> None:
    address = f"{url(Subscriber, 'export')}?account={account.pk}"
    answer = client.post(address, {"segment": "", "status": "", "suppressed": ""})
    assert answer.streaming, answer.content.decode()[-2000:]


def suppressions_out(client: Client, account: Account) -> None:
    client.post(url(Suppression, "export"), {"scope": account.pk, "reason": "", "state": ""})


def person(button: str, **more: Any) -> Act:
    def act(client: Client, account: Account) -> None:
        email = SubscriberFactory.create(account=account, segments=[]).email
        client.post(
            url(Subscriber, "person"), {"account": account.pk, "email": email, button: "1", **more}
        )

    return act


def erase(client: Client, account: Account) -> None:
    email = SubscriberFactory.create(account=account).email
    client.post(
        url(Subscriber, "person"),
        {"account": account.pk, "email": email, "erase": "1", "words": "asked", "typed": email},
    )


def cancel_import(client: Client, account: Account) -> None:
    from subscribers.models import ImportJob

    job = ImportJobFactory.create(account=account, status="queued")
    client.post(url(ImportJob, "cancel", job.pk))


ACTS: dict[str, Act] = {
    "campaign.add": write,
    "campaign.edit": edit,
    "campaign.delete": delete(Campaign, campaign),
    "campaign.copy": copy,
    "campaign.approve": approve,
    "campaign.withdraw": withdraw,
    "campaign.pause": verb("pause", sending=True),
    "campaign.resume": verb("resume", paused=True),
    "campaign.cancel": verb("cancel", sending=True),
    "layout.add": add(Layout, name="Frame", body=LAYOUT, body_format="html"),
    "layout.edit": change(Layout, layout, name="Other"),
    "layout.delete": delete(Layout, layout),
    "image.edit": change(Image, image, name="Other"),
    "image.delete": delete(Image, image),
    "send.treat_as_sent": decide,
    "transport.try_now": try_now,
    "account.change": lambda client, account: submit(
        client, url(Account, "change", account.pk), name="Renamed"
    ),
    "attribute.define": add(AttributeDefinition, key="city", kind="text"),
    "attribute.delete": delete(
        AttributeDefinition, lambda a: AttributeDefinitionFactory.create(account=a)
    ),
    "segment.create": add(Segment, name="New", slug="new"),
    "segment.change": change(Segment, lambda a: SegmentFactory.create(account=a), name="Other"),
    "segment.delete": delete(Segment, lambda a: SegmentFactory.create(account=a)),
    "membership.add": join,
    "membership.leave": leave,
    "subscriber.add": add(Subscriber, email="new@example.org", status="pending"),
    "subscriber.unsubscribe": unsubscribe,
    "subscriber.delete": delete(Subscriber, lambda a: SubscriberFactory.create(account=a)),
    "subscriber.export": people_out,
    "signup_form.change": change(
        SignupForm, lambda a: SignupFormFactory.create(account=a), name="Other"
    ),
    "signup_form.delete": delete(SignupForm, lambda a: SignupFormFactory.create(account=a)),
    "suppression.add": suppress,
    "suppression.release": release,
    "suppression.export": suppressions_out,
    "person.export": person("export"),
    "person.erase": erase,
    "import.canceled": cancel_import,
}
#: Whose subject is kept as a hash.
NAMELESS = {"person.erase"}


@pytest.fixture
def account() -> Account:
    return AccountFactory.create()


def member(account: Account) -> tuple[Client, Any]:
    client, user = member_client(account)
    client.defaults["REMOTE_ADDR"] = FROM
    return client, user


@pytest.mark.parametrize("name", list(ACTS))
def test_an_act_is_on_record_once(account: Account, name: str) -> None:
    client, user = member(account)
    ACTS[name](client, account)
    assert list(AuditEvent.objects.values_list("verb", flat=True)) == [name]
    event = AuditEvent.objects.get()
    assert (event.account, event.by, event.by_name) == (account, user, user.get_username())
    assert event.from_address == FROM
    assert event.at is not None
    assert event.subject or name in NAMELESS


class Died(Exception):
    pass


@pytest.mark.parametrize("name", list(ACTS))
def test_an_act_and_its_record_are_one_transaction(
    account: Account, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What fails after the record takes the act with it, and the record too."""
    client, _ = member(account)
    create = AuditEvent.objects.create
    seen: list[Any] = []
    atomic = len(connection.savepoint_ids)

    def then_die(**given: Any) -> Any:
        create(**given)
        seen.append((stored(), len(connection.savepoint_ids)))
        raise Died

    before: list[Any] = []
    post = client.post

    def watched(*args: Any, **kwargs: Any) -> Any:
        before[:] = [stored()]
        return post(*args, **kwargs)

    monkeypatch.setattr(client, "post", watched)
    monkeypatch.setattr(AuditEvent.objects, "create", then_die)
    with pytest.raises(Died):
        ACTS[name](client, account)
    ((during, depth),) = seen
    assert depth > atomic, "not in a transaction of its own"
    assert during != before[0]
    assert stored() == before[0]


def test_every_act_has_words() -> None:
    assert [name for name in ACTS if audit_words.words(name) == name.replace(".", ": ")] == []
    assert audit_words.words("shop.close_till") == "shop: close till"


def test_a_file_that_is_uploaded_is_on_record(account: Account) -> None:
    client, user = member(account)
    file = SimpleUploadedFile("x.csv", b"email\nann@example.org\n", "text/csv")
    client.post(url(Suppression, "import"), {"scope": account.pk, "reason": "manual", "file": file})
    event = AuditEvent.objects.get(verb="suppression.import")
    assert (event.account, event.by, event.from_address) == (account, user, FROM)


def test_who_joins_and_leaves_an_account_is_on_record(superuser_client: Client) -> None:
    one, two = (member_client()[1] for _ in range(2))
    account = AccountFactory.create(members=[one])
    submit(superuser_client, url(Account, "change", account.pk), members=[two.pk])
    event = AuditEvent.objects.get()
    assert (event.verb, event.account) == ("account.change", account)
    assert event.detail == {
        "members_added": [two.get_username()],
        "members_removed": [one.get_username()],
    }
    submit(superuser_client, url(Account, "change", account.pk), members=[two.pk])
    assert AuditEvent.objects.count() == 1  # nothing was changed


def test_an_account_that_comes_and_goes_is_on_record(superuser_client: Client) -> None:
    submit(
        superuser_client, url(Account, "add"), name="New", slug="new", from_email="a@example.org"
    )
    account = Account.objects.get(slug="new")
    superuser_client.post(url(Account, "delete", account.pk), {"post": "yes"})
    events = AuditEvent.objects.order_by("pk")
    assert [(e.verb, e.subject) for e in events] == [
        ("account.add", "New"),
        ("account.delete", "New"),
    ]
    assert not events.filter(account__isnull=False).exists()
