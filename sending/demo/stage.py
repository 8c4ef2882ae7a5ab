"""What the demo puts into the database: an account, its people and logins, and the campaign."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.core.management import call_command
from django.db import transaction

from campaigns import lifecycle
from campaigns.models import Campaign
from subscribers import role_groups
from subscribers.importing import Options, import_file
from subscribers.models import Account, Segment
from subscribers.roles import Role

from .people import generate, write_csv

SLUG = "demo"
#: The demo's own alias: no sender but the demo's knows it, so that nothing of this account
#: can leave through the relay of the installation while the demo runs.
TRANSPORT = "demo"

SUBJECT = "{{ first_name }}, your spring catalogue"
PREHEADER = "Seedlings, tools, and a word about the weather in {{ city }}"
BODY = """\
<!doctype html>
<html lang="en">
<body style="font-family: Georgia, serif; color: #1f2328; max-width: 34em">
<h1>Good morning, {{ first_name }}!</h1>
<p>Spring has come to {{ city|default:"town" }}, and our new catalogue with it.
{% if last_name %}We set one aside for the {{ last_name }} household.{% endif %}</p>
<p><a href="https://www.example.org/spring">Have a look</a></p>
<p style="font-size: 80%">{{ account.name }}, {{ account.postal_address }}<br>
You get this at {{ email }}. <a href="{{ unsubscribe_url }}">Unsubscribe</a></p>
</body>
</html>
"""

_SYLLABLES = tuple(consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou")


@dataclass(frozen=True, slots=True)
class Login:
    """A demo login; the password is new with every run."""

    username: str
    password: str
    role: str


#: Username, what it may do, and the role whose group it is in; None: a superuser.
LOGINS: tuple[tuple[str, str, Role | None], ...] = (
    ("demo", "superuser: everything", None),
    ("demo-editor", "editor: writes and tests campaigns, can't approve them", Role.EDITOR),
    ("demo-approver", "approver: approves and schedules them", Role.APPROVER),
    (
        "demo-operator",
        "operator: pauses, resumes, cancels, decides about doubt",
        Role.OPERATOR,
    ),
    (
        "demo-lists",
        "list keeper: imports, segments, sign-up forms, suppressions, people's data",
        Role.LIST_KEEPER,
    ),
    ("demo-viewer", "viewer: sees all of it, changes nothing", Role.VIEWER),
)


def prepare_database() -> None:
    """Bring the tables up to date; the first query starts an embedded server."""
    call_command("migrate", interactive=False, verbosity=0)


def make_account() -> Account:
    """The demo's account, sending through the demo's transport until ``release_account``."""
    account, _ = Account.objects.update_or_create(
        slug=SLUG,
        defaults={
            "name": "Greenhouse & Söhne",
            "from_email": "news@example.org",
            "from_name": "Greenhouse & Söhne",
            "postal_address": "1 Example Street, 12345 Exampleton",
            "transport": TRANSPORT,
        },
    )
    return account


def release_account(account: Account) -> None:
    """From now on it sends as the installation does: for whoever plays on in the admin."""
    Account.objects.filter(pk=account.pk, transport=TRANSPORT).update(transport="default")


def cancel_leftovers(account: Account) -> list[int]:
    """Cancel what an interrupted demo left behind; returns the campaigns' ids."""
    left = Campaign.objects.filter(account=account, status__in=["approved", "sending", "paused"])
    canceled = []
    for campaign in left:
        lifecycle.cancel(campaign, reason="left behind by an interrupted demo")
        canceled.append(campaign.pk)
    return canceled


def make_logins(account: Account) -> list[Login]:
    """The superuser and a login per role, members of the account, with new passwords."""
    role_groups.update()  # a flush takes them away, and migrate has then nothing to do
    logins = []
    for username, may, role in LOGINS:
        login = Login(username, new_password(), may)
        user = _user(login, superuser=role is None)
        user.user_permissions.clear()  # of a demo before there were groups
        user.groups.set(Group.objects.filter(sendonce_role__role=role) if role else [])
        account.members.add(user)
        logins.append(login)
    return logins


def _user(login: Login, *, superuser: bool) -> Any:
    model = get_user_model()
    with transaction.atomic():
        user, _ = model._default_manager.get_or_create(**_named(login.username))
        user.is_staff = user.is_active = True
        user.is_superuser = superuser
        user.set_password(login.password)
        user.save()
    return user


def new_password() -> str:
    """Three words that can be read aloud; 36 bits, enough for a demo on one machine."""
    return "-".join("".join(secrets.choice(_SYLLABLES) for _ in range(2)) for _ in range(3))


def load_people(account: Account, count: int, seed: int, folder: Path) -> Segment:
    """Invent ``count`` people, write them to a CSV file in ``folder`` and import it.

    Raises ``subscribers.importing.ImportRefused``.
    """
    segment, _ = Segment.objects.get_or_create(
        account=account,
        slug=f"demo-{count}-{seed}",
        defaults={"name": f"Newsletter ({count:,} people, seed {seed})"},
    )
    path = folder / "subscribers.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        write_csv(generate(count, seed), file)
    import_file(
        path,
        account=account,
        segment=segment,
        options=Options(confirmed=True, consent_source="invented for the demo"),
    )
    return segment


def compose(account: Account, segment: Segment) -> Campaign:
    """The draft, written by the editor."""
    number = Campaign.objects.filter(account=account).count() + 1
    campaign = Campaign.objects.create(
        account=account,
        name=f"Spring catalogue, no. {number}",
        subject=SUBJECT,
        preheader=PREHEADER,
        body=BODY,
        created_by=_person("demo-editor"),
    )
    campaign.segments.add(segment)
    return campaign


def approve(campaign: Campaign) -> Campaign:
    """Approved by the other person, to be sent now."""
    return lifecycle.approve(campaign, by=_person("demo-approver"))


def _person(username: str) -> Any:
    return get_user_model()._default_manager.get(**_named(username))


def _named(username: str) -> dict[str, Any]:
    return {get_user_model().USERNAME_FIELD: username}
