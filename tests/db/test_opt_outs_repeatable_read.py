"""People who leave, move or are erased where the host's database has REPEATABLE READ by default:
who waited for a lock acts upon what is there now, and nobody's opt-out ends in an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest
from django.db import connection, transaction
from django.utils import timezone

from sending.models import Send
from subscribers.joining.asking import Origin
from subscribers.leaving.address_change import ask
from subscribers.models import SignupAttempt, Subscriber
from subscribers.rights.acts import erase_person
from subscribers.suppression import is_suppressed
from subscribers.tokens import Kind, make_token
from tests.factories import CampaignFactory

from .forgotten import places_of
from .racing import Race
from .rows import campaign_to, member, row
from .signups import mails, visitor
from .test_preferences_address import confirmed, email_of, url

pytestmark = pytest.mark.django_db(transaction=True)

T = TypeVar("T")


def there(function: Callable[[], T]) -> Callable[[], T]:
    """The function on a connection that keeps a snapshot for a whole transaction by default."""

    def run() -> T:
        with connection.cursor() as cursor:
            cursor.execute("SET default_transaction_isolation = 'repeatable read'")
        return function()

    return run


def has_left(person: Subscriber) -> bool:
    return person.status == "unsubscribed" and is_suppressed(person.account, person.email)


DONE: dict[str, Callable[[Subscriber], bool]] = {
    "unsubscribe": has_left,
    "leave": lambda person: not person.memberships.filter(left_at__isnull=True).exists(),
    "pause": lambda person: person.paused_until is not None,
    "move": lambda person: person.email == "x@example.org",
}


@pytest.mark.parametrize("act", DONE)
def test_who_is_changed_at_the_same_moment_leaves_all_the_same(act: str) -> None:
    campaign = campaign_to(0)
    ann = member(campaign, email="a@example.org")
    segment = campaign.segments.get()
    wish = confirmed(ann, "x@example.org")
    path, given = {
        "unsubscribe": (f"/u/{make_token(Kind.UNSUBSCRIBE, ann.pk, None)}", {}),
        "leave": (url(ann), {"action": "segments", "was": str(segment.pk)}),
        "pause": (url(ann), {"action": "pause", "months": "1"}),
        "move": (f"/u/{make_token(Kind.CONFIRM, wish.pk, None)}", {}),
    }[act]
    web = visitor(raise_request_exception=False)
    with Race() as race:
        with transaction.atomic():
            Subscriber.objects.filter(pk=ann.pk).update(locale="fr")
            ann.memberships.update(joined_at=timezone.now())
            leaving = race.start(there(lambda: web.post(path, given).status_code))
            leaving.wait_until_blocked()
        assert leaving.result() == 200
    ann.refresh_from_db()
    assert ann.locale == "fr"
    assert DONE[act](ann)


def test_a_mailbox_asked_for_twice_at_once_gets_one_mail() -> None:
    ann = member(campaign_to(0), email="a@example.org")
    given = {"action": "address", "email": "victim@example.net"}
    web = visitor()
    with Race() as race:
        with transaction.atomic():
            assert ask(ann, "victim@example.net", Origin("10.9.9.9"), language="en")
            second = race.start(there(lambda: web.post(url(ann), given).status_code))
            second.wait_until_blocked()
        assert second.result() == 200
    assert len(mails()) == 1
    assert SignupAttempt.objects.count() == 2
    assert email_of(ann) == "a@example.org"


def test_an_erasure_finds_the_row_that_was_built_while_it_waited() -> None:
    campaign = campaign_to(0)
    ann = member(campaign, email="a@example.org")
    first = row(campaign, subscriber=ann)
    later = CampaignFactory.create(
        account=campaign.account, sending=True, segments=list(campaign.segments.all())
    )
    with Race() as race:
        with transaction.atomic():
            Send.objects.select_for_update().get(pk=first.pk)
            row(later, subscriber=ann)
            erasing = race.start(
                there(lambda: erase_person(campaign.account, "a@example.org", reason="asked"))
            )
            erasing.wait_until_blocked()
        assert erasing.result().forgotten["subscribers"] == 1
    assert places_of("a@example.org") == []
    assert set(Send.objects.values_list("status", flat=True)) == {"suppressed"}
