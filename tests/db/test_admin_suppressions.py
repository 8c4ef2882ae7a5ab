"""The suppression list's pages: looking, adding, releasing with a reason, files."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import transaction
from django.test import Client
from django.utils import timezone

from subscribers.models import AuditEvent, Subscriber, Suppression
from subscribers.rights.acts import erase_person
from subscribers.suppressing.releasing import NotReleased, release, version
from subscribers.suppression import is_suppressed, suppress
from tests.db.admin_pages import member_client, url
from tests.db.racing import Race
from tests.factories import AccountFactory, SubscriberFactory, SuppressionFactory

pytestmark = pytest.mark.django_db

ANN = "Ann@example.org"

# --- adding --------------------------------------------------------------------------------------


def test_suppressing_by_hand_goes_through_the_verb(superuser_client: Client) -> None:
    account = AccountFactory.create()
    form = {
        "account": account.pk,
        "email": " Bad@EXAMPLE.org",
        "reason": "manual",
        "evidence": "asked on the phone",
    }
    assert superuser_client.post(url(Suppression, "add"), form).status_code == 302
    row = Suppression.objects.get()
    assert (row.account, row.email) == (account, "Bad@example.org")
    assert row.evidence.startswith("asked on the phone\nAdded by staff")
    assert LogEntry.objects.get().object_id == str(row.pk)


def test_a_weaker_reason_by_hand_does_not_replace_a_stronger(superuser_client: Client) -> None:
    row = SuppressionFactory.create(reason="complaint", email="a@example.org", evidence="ARF")
    form = {"account": row.account_id, "email": "A@example.org", "reason": "manual"}
    answer = superuser_client.post(url(Suppression, "add"), form, follow=True)
    assert "stronger reason" in answer.content.decode()
    stored = Suppression.objects.get()
    assert (stored.reason, stored.evidence) == ("complaint", "ARF")


@pytest.mark.parametrize(
    "form",
    [
        {"email": "nonsense", "reason": "manual"},
        {"email": "a@example.org", "reason": "erased"},
        {
            "email": "a@example.org",
            "reason": "complaint",
            "expires_0": "2999-01-01",
            "expires_1": "00:00",
        },
        {
            "email": "a@example.org",
            "reason": "manual",
            "expires_0": "2001-01-01",
            "expires_1": "00:00",
        },
        {"email": "", "reason": ""},
    ],
)
def test_a_wrong_suppression_is_an_error_of_its_form(
    superuser_client: Client, form: dict[str, str]
) -> None:
    answer = superuser_client.post(url(Suppression, "add"), form)
    assert answer.status_code == 200
    assert answer.context["adminform"].form.errors
    assert not Suppression.objects.exists()


def test_adding_by_hand_is_on_record(superuser_client: Client) -> None:
    account = AccountFactory.create()
    form = {"account": account.pk, "email": ANN, "reason": "manual", "evidence": "by phone"}
    superuser_client.post(url(Suppression, "add"), form)
    event = AuditEvent.objects.get()
    assert (event.account, event.verb, event.subject, event.reason) == (
        account, "suppression.add", ANN, "by phone",
    )  # fmt: skip
    assert event.by_name.startswith("staff")


def test_whose_list_is_chosen_and_never_by_leaving_it_blank(superuser_client: Client) -> None:
    account = AccountFactory.create()
    form = {"email": ANN, "reason": "manual"}
    page = superuser_client.get(url(Suppression, "add"))
    assert page.context["adminform"].form.fields["account"].choices == [
        ("", "---------"),
        ("all", "All accounts (the list for all)"),
        (str(account.pk), account.name),
    ]
    for wrong in ({}, {"account": ""}, {"account": "0"}, {"account": "None"}):
        answer = superuser_client.post(url(Suppression, "add"), {**form, **wrong})
        assert "account" in answer.context["adminform"].form.errors
    assert not Suppression.objects.exists()
    for chosen in (str(account.pk), "all"):
        answer = superuser_client.post(url(Suppression, "add"), {**form, "account": chosen})
        assert answer.status_code == 302
    assert [row.account for row in Suppression.objects.order_by("pk")] == [account, None]


def test_staff_choose_among_their_accounts() -> None:
    own, more, other = AccountFactory.create_batch(3)
    client, _ = member_client(own, more)
    offered = client.get(url(Suppression, "add")).context["adminform"].form.fields["account"]
    assert {value for value, _ in offered.choices} == {"", str(own.pk), str(more.pk)}
    for wrong in ("all", "", str(other.pk)):
        form = {"account": wrong, "email": ANN, "reason": "manual"}
        answer = client.post(url(Suppression, "add"), form)
        assert "account" in answer.context["adminform"].form.errors
    assert not Suppression.objects.exists()
    form["account"] = str(own.pk)
    assert client.post(url(Suppression, "add"), form).status_code == 302
    assert Suppression.objects.get().account == own


@pytest.mark.parametrize(
    ("already", "given", "says", "recorded"),
    [
        (None, "manual", "was added successfully", 1),
        ("manual", "manual", "It was on the list already; nothing was changed.", 0),
        ("complaint", "manual", "for a stronger reason that stays: complained.", 0),
        # Staff have added it, too: noted, and a new sign-up does not take it back.
        ("unsubscribed", "manual", "for a stronger reason that stays: unsubscribed.", 1),
        ("manual", "complaint", "It was on the list already; it says now: complained.", 1),
        ("lapsed", "manual", "was added successfully", 1),
    ],
)
def test_what_was_on_the_list_already_is_not_said_to_be_added(
    superuser_client: Client, already: str | None, given: str, says: str, recorded: int
) -> None:
    account = AccountFactory.create()
    if already:
        SuppressionFactory.create(
            account=account,
            email="ann@example.org",
            reason="manual" if already == "lapsed" else already,
            evidence="before",
            expires=timezone.now() - timedelta(days=1) if already == "lapsed" else None,
        )
    form = {"account": account.pk, "email": ANN, "reason": given}
    answer = superuser_client.post(url(Suppression, "add"), form, follow=True)
    (told,) = [str(message) for message in answer.context["messages"]]
    assert says in told
    assert AuditEvent.objects.filter(verb="suppression.add").count() == recorded
    assert LogEntry.objects.count() == recorded
    assert Suppression.objects.count() == 1
    for button, leads in (
        ("_continue", url(Suppression, "change", Suppression.objects.get().pk)),
        ("_addanother", url(Suppression, "add")),
    ):
        answer = superuser_client.post(url(Suppression, "add"), {**form, button: "yes"})
        assert answer["Location"] == leads


def test_an_erased_person_is_not_written_down_again(superuser_client: Client) -> None:
    account = AccountFactory.create()
    erase_person(account, ANN, by_name="Bea", reason="asked")
    form = {"account": account.pk, "email": "ann@EXAMPLE.org", "reason": "manual"}
    answer = superuser_client.post(url(Suppression, "add"), form)
    assert "erased on request" in str(answer.context["adminform"].form.errors["email"])
    assert not Suppression.objects.filter(email__isnull=False).exists()
    # Another account has its own list.
    form["account"] = AccountFactory.create().pk
    assert superuser_client.post(url(Suppression, "add"), form).status_code == 302


# --- looking -------------------------------------------------------------------------------------


def listed(client: Client, query: str) -> list[Any]:
    answer = client.get(f"{url(Suppression, 'changelist')}?{query}")
    assert answer.status_code == 200
    return list(answer.context["cl"].result_list)


def test_an_address_is_found_by_its_beginning_and_an_erased_one_as_a_whole(
    superuser_client: Client,
) -> None:
    account = AccountFactory.create()
    plain = SuppressionFactory.create(account=account, email=ANN)
    erase_person(account, "bob@example.org", by_name="Bea", reason="asked")
    erased = Suppression.objects.get(reason="erased")
    assert listed(superuser_client, "q=aNN@ex") == [plain]
    assert listed(superuser_client, "q=BOB@example.org") == [erased]
    assert listed(superuser_client, "q=mailto:bob@example.org") == [erased]
    assert listed(superuser_client, "q=bob@example.or") == []
    assert listed(superuser_client, "q=example") == []


def test_the_filters(superuser_client: Client) -> None:
    past = timezone.now() - timedelta(days=1)
    lapsed = SuppressionFactory.create(expires=past)
    everywhere = SuppressionFactory.create(account=None, reason="complaint")
    assert listed(superuser_client, "state=expired") == [lapsed]
    assert listed(superuser_client, "state=live") == [everywhere]
    assert listed(superuser_client, "account=all") == [everywhere]
    assert listed(superuser_client, f"account={lapsed.account_id}") == [lapsed]
    assert listed(superuser_client, "reason__exact=complaint") == [everywhere]


def test_the_list_for_all_is_not_shown_to_staff() -> None:
    SuppressionFactory.create(account=None)
    client, _ = member_client(AccountFactory.create())
    assert listed(client, "account=all") == []
    assert "All accounts" not in client.get(url(Suppression, "changelist")).content.decode()


# --- releasing -----------------------------------------------------------------------------------


def released(client: Client, row: Suppression, words: str = "a mistake", seen: str = "") -> Any:
    data = {"words": words, "seen": seen or version(row)}
    return client.post(url(Suppression, "release", row.pk), data)


@pytest.mark.parametrize("reason", ["manual", "hard_bounce"])
def test_releasing_takes_it_off_the_list_and_is_on_record(
    superuser_client: Client, reason: str
) -> None:
    row = suppress(AccountFactory.create(), ANN, reason, evidence="550 no such user")
    assert "release/" in superuser_client.get(url(Suppression, "change", row.pk)).content.decode()
    assert superuser_client.get(url(Suppression, "release", row.pk)).status_code == 200
    assert released(superuser_client, row).status_code == 302
    assert not Suppression.objects.exists()
    event = AuditEvent.objects.get()
    assert (event.account, event.verb, event.subject, event.reason) == (
        row.account, "suppression.release", ANN, "a mistake",
    )  # fmt: skip
    assert event.detail["suppressed_for"] == reason
    assert event.detail["evidence"] == "550 no such user"


def test_a_release_subscribes_nobody(superuser_client: Client) -> None:
    person = SubscriberFactory.create(unsubscribed=True)
    row = SuppressionFactory.create(account=person.account, email=person.email)
    everywhere = suppress(None, person.email, "complaint")
    page = superuser_client.get(url(Suppression, "release", row.pk)).content.decode()
    assert "list for all accounts has it" in page
    released(superuser_client, row)
    person.refresh_from_db()
    assert person.status == Subscriber.Status.UNSUBSCRIBED
    assert is_suppressed(person.account, person.email)
    assert Suppression.objects.get() == everywhere


@pytest.mark.parametrize(
    ("reason", "says"),
    [("unsubscribed", "signing up again"), ("complaint", "Nothing takes this back"),
     ("erased", "signing up again")],
)  # fmt: skip
def test_a_persons_own_wish_is_not_for_staff_to_release(
    superuser_client: Client, reason: str, says: str
) -> None:
    row = suppress(AccountFactory.create(), ANN, reason)
    for page in ("change", "release"):
        text = superuser_client.get(url(Suppression, page, row.pk)).content.decode()
        assert says in text
        assert "Release…" not in text
    answer = superuser_client.post(
        url(Suppression, "release", row.pk), {"words": "let me", "seen": version(row)}, follow=True
    )
    assert "Not released" in answer.content.decode()
    assert Suppression.objects.filter(pk=row.pk).exists()
    assert not AuditEvent.objects.exists()


def test_a_complaint_before_an_erasure_is_said(superuser_client: Client) -> None:
    account = AccountFactory.create()
    suppress(account, ANN, "complaint")
    erase_person(account, ANN, by_name="Bea", reason="asked")
    row = Suppression.objects.get()
    text = superuser_client.get(url(Suppression, "change", row.pk)).content.decode()
    assert "before the erasure this person had complained" in text
    assert "complained</div>" in text


def test_a_release_needs_words(superuser_client: Client) -> None:
    row = SuppressionFactory.create()
    answer = released(superuser_client, row, words="  ")
    assert answer.status_code == 200
    assert answer.context["form"].errors
    assert Suppression.objects.exists()


@pytest.mark.parametrize("later", ["complaint", "manual"])
def test_what_changed_since_the_page_was_shown_is_not_released(
    superuser_client: Client, later: str
) -> None:
    account = AccountFactory.create()
    row = suppress(account, ANN, "hard_bounce", evidence="550")
    seen = version(row)
    suppress(account, ANN, later, evidence="since then")
    released(superuser_client, row, seen=seen)
    assert Suppression.objects.get().reason == later
    assert not AuditEvent.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_complaint_at_the_same_moment_is_not_released() -> None:
    account = AccountFactory.create()
    row = suppress(account, ANN, "manual")
    act = partial(release, row.pk, seen=version(row), words="a mistake", by_name="Bea")
    with Race() as race:
        with transaction.atomic():
            suppress(account, ANN, "complaint")
            other = race.start(act)
            other.wait_until_blocked()
        with pytest.raises(NotReleased, match="Nothing takes this back"):
            other.result()
    assert Suppression.objects.get().reason == "complaint"


def test_releasing_twice_is_told(superuser_client: Client) -> None:
    row = SuppressionFactory.create()
    released(superuser_client, row)
    with pytest.raises(NotReleased, match="no more"):
        release(row.pk, seen=version(row), words="again", by_name="Bea")
    assert released(superuser_client, row).status_code == 302
    assert AuditEvent.objects.count() == 1


def test_deleting_is_no_way_round(superuser_client: Client) -> None:
    row = SuppressionFactory.create()
    answer = superuser_client.post(url(Suppression, "delete", row.pk), {"post": "yes"})
    assert answer.status_code == 403
    data = {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes"}
    superuser_client.post(url(Suppression, "changelist"), data)
    assert Suppression.objects.exists()


def test_releasing_is_a_permission_of_its_own() -> None:
    account = AccountFactory.create()
    row = SuppressionFactory.create(account=account)
    client, user = member_client(account)
    user.user_permissions.set(Permission.objects.exclude(codename="release_suppression"))
    assert "Release…" not in client.get(url(Suppression, "change", row.pk)).content.decode()
    assert client.get(url(Suppression, "release", row.pk)).status_code == 403
    assert released(client, row).status_code == 403
    assert Suppression.objects.exists()


def test_another_accounts_entry_can_not_be_released() -> None:
    row = SuppressionFactory.create()
    for other in (row, SuppressionFactory.create(account=None)):
        client, _ = member_client(AccountFactory.create())
        assert client.get(url(Suppression, "release", other.pk)).status_code in (302, 403)
        assert released(client, other).status_code in (302, 403)
    assert Suppression.objects.count() == 2


# --- files ---------------------------------------------------------------------------------------


def uploaded(client: Client, scope: Any, text: str, **more: Any) -> Any:
    file = SimpleUploadedFile("list.csv", text.encode())
    data = {"file": file, "scope": scope, "reason": "manual", **more}
    return client.post(url(Suppression, "import"), data)


def test_a_file_is_checked_and_imported(superuser_client: Client) -> None:
    account = AccountFactory.create()
    text = "email,reason\nann@example.org,complaint\nnobody,\n"
    answer = uploaded(superuser_client, account.pk, text, check="yes")
    assert (answer.context["report"].added, answer.context["report"].rejected) == (1, 1)
    assert "Nothing was changed" in answer.content.decode()
    assert not Suppression.objects.exists()
    answer = uploaded(superuser_client, account.pk, text)
    assert answer.context["report"].added == 1
    assert "nobody" in answer.content.decode()
    assert Suppression.objects.get().reason == "complaint"


def test_staff_import_for_their_accounts_only() -> None:
    mine, other = AccountFactory.create(), AccountFactory.create()
    client, _ = member_client(mine)
    for scope in (other.pk, "all", ""):
        answer = uploaded(client, scope, "email\nann@example.org\n")
        assert "scope" in answer.context["form"].errors
    assert other.name not in client.get(url(Suppression, "import")).content.decode()
    assert not Suppression.objects.exists()
    uploaded(client, mine.pk, "email\nann@example.org\n")
    assert Suppression.objects.get().account == mine


def test_superusers_import_for_all(superuser_client: Client) -> None:
    uploaded(superuser_client, "all", "email\nann@example.org\n")
    assert Suppression.objects.get().account is None


@pytest.mark.parametrize("text", ["", "name,city\nAnn,Ulm\n", "\x00\x01\x02"])
def test_a_file_that_is_none_is_the_fields_error(superuser_client: Client, text: str) -> None:
    answer = uploaded(superuser_client, AccountFactory.create().pk, text)
    assert "file" in answer.context["form"].errors
    assert not AuditEvent.objects.exists()


def download(client: Client, **data: Any) -> str:
    answer: Any = client.post(
        url(Suppression, "export"), {"scope": "", "reason": "", "state": "", **data}
    )
    assert answer["Content-Type"].startswith("text/csv")
    return b"".join(answer.streaming_content).decode()


def test_the_download_holds_what_was_chosen_and_is_on_record(superuser_client: Client) -> None:
    account = AccountFactory.create(slug="mine")
    suppress(account, ANN, "complaint", evidence="=1+1")
    suppress(account, "bob@example.org", "manual")
    suppress(None, "cid@example.org", "manual")
    erase_person(account, "dan@example.org", by_name="Bea", reason="asked")
    lines = download(superuser_client).splitlines()
    assert lines[0] == "email,reason,evidence,expires,created,account"
    assert [line.split(",")[0] for line in lines[1:]] == [
        ANN, "bob@example.org", "cid@example.org",
    ]  # fmt: skip
    assert "'=1+1" in lines[1]
    assert lines[1].endswith(",mine")
    assert "bob" not in download(superuser_client, reason="complaint")
    assert "cid" not in download(superuser_client, scope=account.pk)
    assert "bob" not in download(superuser_client, scope="all")
    event = AuditEvent.objects.filter(verb="suppression.export").latest("pk")
    assert event.detail["entries"] == 1


def test_staff_export_their_own_and_with_a_permission() -> None:
    account = AccountFactory.create()
    suppress(account, ANN, "manual")
    SuppressionFactory.create(email="other@example.org")
    SuppressionFactory.create(account=None, email="all@example.org")
    client, user = member_client(account)
    assert [line.split(",")[0] for line in download(client, scope=account.pk).splitlines()] == [
        "email", ANN,
    ]  # fmt: skip
    user.user_permissions.set(
        Permission.objects.exclude(codename__in=["export_suppression", "import_suppression"])
    )
    for page in ("export", "import"):
        assert client.get(url(Suppression, page)).status_code == 403
        assert client.post(url(Suppression, page)).status_code == 403
        assert f"{page}/" not in client.get(url(Suppression, "changelist")).content.decode()
