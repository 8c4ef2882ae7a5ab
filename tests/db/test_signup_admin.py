"""The admin of joining: forms of one's own accounts, snippets to copy, sign-ups as evidence."""

from __future__ import annotations

import html
import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client, override_settings
from django.utils import timezone

from campaigns import apps as campaign_apps
from subscribers.joining.asking import digest
from subscribers.models import (
    Account,
    AuditEvent,
    ConsentText,
    Signup,
    SignupAttempt,
    SignupForm,
    Subscriber,
)
from tests.db.admin_pages import change, member_client, url
from tests.db.signups import mails, visitor
from tests.factories import (
    AccountFactory,
    AttributeDefinitionFactory,
    ConsentTextFactory,
    SegmentFactory,
    SignupAttemptFactory,
    SignupFactory,
    SignupFormFactory,
)

pytestmark = pytest.mark.django_db

assert campaign_apps  # it fills the hook that checks templates


@pytest.fixture
def account() -> Account:
    return AccountFactory.create(name="Acme")


@pytest.fixture
def client(account: Account) -> Client:
    return member_client(account)[0]


def typed(account: Account, /, **more: Any) -> dict[str, Any]:
    segment = account.segments.first() or SegmentFactory.create(account=account)
    return {
        "account": account.pk,
        "name": "Our letter",
        "slug": "letter",
        "is_open": "on",
        "segments": [segment.pk],
        "intro": "",
        "fields": "",
        "consent_text": "Send me the letter.",
        "subject": "",
        "body": "",
        "thanks_url": "",
        "welcome_url": "",
        "allowed_origins": "",
        **more,
    }


def errors(answer: Any) -> dict[str, list[str]]:
    assert answer.status_code == 200
    return dict(answer.context["adminform"].form.errors)


# --- forms ---------------------------------------------------------------------------------------


def test_a_form_is_made_and_its_words_are_kept(client: Client, account: Account) -> None:
    AttributeDefinitionFactory.create(account=account, key="first_name")
    data = typed(
        account,
        fields="first_name\n\n",
        allowed_origins="https://Www.example.org/\nhttps://www.example.org",
        thanks_url="https://www.example.org/thanks",
    )
    answer = client.post(url(SignupForm, "add") + f"?account={account.pk}", data)
    assert answer.status_code == 302, errors(answer)
    form = SignupForm.objects.get()
    assert (form.fields, form.allowed_origins) == (["first_name"], ["https://www.example.org"])
    assert ConsentText.objects.get().digest == digest("Send me the letter.")
    assert AuditEvent.objects.get().verb == "signup_form.add"
    typed_anew = typed(account, consent_text="Send me more.", slug="other")
    assert change(client, form, typed_anew).status_code == 302
    form.refresh_from_db()
    assert (form.consent_text, form.slug) == ("Send me more.", "other")
    assert ConsentText.objects.count() == 2
    assert AuditEvent.objects.filter(verb="signup_form.change").count() == 1


def test_the_account_comes_first(client: Client, account: Account) -> None:
    answer = client.get(url(SignupForm, "add"))
    assert (answer.status_code, answer.headers["Location"]) == (
        302,
        f"{url(SignupForm, 'add')}?account={account.pk}",
    )
    mine = SegmentFactory.create(account=account, name="Mine")
    SegmentFactory.create(name="Strange")
    AttributeDefinitionFactory.create(account=account, key="first_name")
    page = client.get(answer.headers["Location"]).content.decode()
    assert mine.name in page
    assert "Strange" not in page
    assert "There are: first_name." in page
    other = AccountFactory.create(name="Other")
    both, _ = member_client(account, other)
    page = both.get(url(SignupForm, "add")).content.decode()
    assert "Acme" in page
    assert "Other" in page
    strange = AccountFactory.create(name="Strange")
    page = both.get(url(SignupForm, "add") + f"?account={strange.pk}").content.decode()
    assert "Whose list" in page
    assert "Strange" not in page


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("fields", "unknown_key"),
        ("fields", "email"),
        ("allowed_origins", "www.example.org"),
        ("allowed_origins", "*"),
        ("allowed_origins", "https://example.org/path"),
        ("thanks_url", "javascript:alert(1)"),
        ("thanks_url", "ftp://example.org/"),
        ("welcome_url", "nonsense"),
        ("consent_text", ""),
        ("consent_text", "x" * 3001),
        ("slug", "a b"),
        ("slug", "a.json"),
        ("body", "Hello, nobody can confirm this."),
        ("body", "{{ confirm_url }} {% include 'x' %}"),
        ("body", "{{ confirm_url"),
        ("subject", "{% now 'Y' %}"),
        ("segments", []),
    ],
)
def test_what_can_not_be_is_said_at_its_field(
    client: Client, account: Account, field: str, value: Any
) -> None:
    answer = client.post(url(SignupForm, "add"), typed(account, **{field: value}))
    assert list(errors(answer)) == [field]
    assert not SignupForm.objects.exists()
    assert not ConsentText.objects.exists()


def test_own_words_for_the_mail(client: Client, account: Account) -> None:
    words = "Dear reader of {{ account.name }},\r\n\r\n{{ confirm_url }}\r\n\r\nBye"
    data = typed(account, subject="Yes, {{ account.name }}?", body=words)
    assert client.post(url(SignupForm, "add"), data).status_code == 302
    form = SignupForm.objects.get()
    visitor().post(f"/s/{account.slug}/{form.slug}/", {"email": "ann@example.org"})
    (mail,) = mails()
    assert mail.content is not None
    assert mail.content.subject == "Yes, {{ account.name }}?"
    assert "Dear reader" in mail.content.text


def test_a_slug_is_an_account_s_own(client: Client, account: Account) -> None:
    SignupFormFactory.create(account=account, slug="letter")
    SignupFormFactory.create(slug="other")
    answer = client.post(url(SignupForm, "add"), typed(account))
    assert errors(answer)
    assert client.post(url(SignupForm, "add"), typed(account, slug="other")).status_code == 302


def test_nothing_of_another_account_can_be_named(client: Client, account: Account) -> None:
    stranger = SegmentFactory.create(name="Strange")
    AttributeDefinitionFactory.create(account=stranger.account, key="strange_key")
    for more, field in (
        ({"segments": [stranger.pk]}, "segments"),
        ({"fields": "strange_key"}, "fields"),
        ({"account": stranger.account_id}, "account"),
    ):
        answer = client.post(url(SignupForm, "add"), typed(account, **more))
        assert field in errors(answer)
        assert "Strange" not in answer.content.decode()
    form = SignupFormFactory.create(account=account)
    both, _ = member_client(account, stranger.account)
    answer = change(both, form, typed(account, segments=[stranger.pk]))
    assert list(errors(answer)) == ["segments"]
    answer = both.post(url(SignupForm, "add"), typed(account, segments=[stranger.pk]))
    assert list(errors(answer)) == ["segments"]


def test_a_form_that_is_deleted_leaves_the_evidence(client: Client, account: Account) -> None:
    form = SignupFormFactory.create(account=account)
    signup = SignupFactory.create(account=account, form=form, confirmed=True)
    assert client.post(url(SignupForm, "delete", form.pk), {"post": "yes"}).status_code == 302
    signup.refresh_from_db()
    assert signup.form is None
    assert AuditEvent.objects.get().verb == "signup_form.delete"
    assert not SignupForm.objects.exists()


# --- what it is for ------------------------------------------------------------------------------


def copied(page: str, label: str) -> str:
    found = re.search(rf'<textarea readonly[^>]*aria-label="{label}">(.*?)</textarea>', page, re.S)
    assert found is not None
    return html.unescape(found[1])


@override_settings(SENDONCE={"BASE_URL": "https://mail.example.org"})
def test_the_snippet_is_a_form_that_works(client: Client, account: Account) -> None:
    for key, kind, choices in (
        ("first_name", "text", []),
        ("born", "date", []),
        ("age", "number", []),
        ("vip", "boolean", []),
        ("color", "choice", ["red", "<blue>"]),
    ):
        AttributeDefinitionFactory.create(account=account, key=key, kind=kind, choices=choices)
    form = SignupFormFactory.create(
        account=account,
        slug="letter",
        consent_text='Yes & "more" <b>.',
        fields=["first_name", "born", "age", "vip", "color"],
        allowed_origins=["https://www.example.org"],
    )
    page = client.get(url(SignupForm, "change", form.pk)).content.decode()
    snippet = copied(page, "HTML of the form")
    assert f'action="https://mail.example.org/s/{account.slug}/letter"' in snippet
    assert "Yes &amp; &quot;more&quot; &lt;b&gt;." in snippet
    assert '<option value="&lt;blue&gt;">' in snippet
    assert "<script" not in snippet
    assert "style=" not in snippet
    names = re.findall(r'name="([^"]+)"', snippet)
    assert names == [
        "email",
        *(f"attribute-{key}" for key in form.fields),
        "message",
        "consent",
    ]
    # As a browser of the other site posts it.
    consent = re.search(r'name="consent" value="([^"]+)"', snippet)
    assert consent is not None
    change(client, form, typed(account, consent_text=form.consent_text))
    SignupForm.objects.filter(pk=form.pk).update(fields=form.fields, slug="letter")
    answer = visitor(headers={"origin": "null"}).post(
        f"/s/{account.slug}/letter",
        {
            "email": "ann@example.org",
            "attribute-first_name": "Ann",
            "attribute-born": "",
            "attribute-age": "",
            "attribute-vip": "on",
            "attribute-color": "<blue>",
            "message": "",
            "consent": consent[1],
        },
    )
    assert answer.status_code == 200
    attributes = Signup.objects.get().attributes
    assert attributes == {"first_name": "Ann", "vip": True, "color": "<blue>"}
    frame = copied(page, "HTML of the frame")
    assert f'<iframe src="https://mail.example.org/s/{account.slug}/letter"' in frame
    assert f"https://mail.example.org/s/{account.slug}/letter.json" in page


def test_a_frame_needs_a_site(client: Client, account: Account) -> None:
    form = SignupFormFactory.create(account=account)
    page = client.get(url(SignupForm, "change", form.pk)).content.decode()
    assert "Only on the sites that are allowed" in page
    assert "&lt;iframe" not in page


def test_counts_and_who_was_turned_away(client: Client, account: Account) -> None:
    form = SignupFormFactory.create(account=account)
    SignupFactory.create_batch(2, account=account, form=form)
    SignupFactory.create(account=account, form=form, confirmed=True)
    page = client.get(url(SignupForm, "change", form.pk)).content.decode()
    assert re.search(r"Wait for confirmation:.*?>2<", page, re.S)
    assert re.search(r"Confirmed:.*?>1<", page, re.S)
    assert "0 (the account may send 1000" in page
    assert "told to come back" not in client.get(url(SignupForm, "changelist")).content.decode()
    old = timezone.now() - timedelta(hours=25)
    SignupAttemptFactory.create(account=account, outcome="account", at=old)
    SignupAttemptFactory.create(outcome="account", account__name="Strange")
    assert "told to come back" not in client.get(url(SignupForm, "changelist")).content.decode()
    SignupAttemptFactory.create(account=account, outcome="account")
    page = client.get(url(SignupForm, "changelist")).content.decode()
    assert "told to come back later: Acme." in page
    assert "Strange" not in page


# --- evidence ------------------------------------------------------------------------------------


def test_staff_see_the_evidence_on_the_person_s_page(client: Client, account: Account) -> None:
    form = SignupFormFactory.create(account=account, name="The form")
    signup = SignupFactory.create(account=account, form=form, confirmed=True)
    page = client.get(url(Subscriber, "change", signup.subscriber.pk)).content.decode()
    for seen in ("The form", "192.0.2.1", "192.0.2.2", url(Signup, "change", signup.pk)):
        assert seen in page
    page = client.get(url(Signup, "change", signup.pk)).content.decode()
    assert signup.consent.text in page
    assert "Browser/1" in page


@pytest.mark.parametrize("model", [Signup, ConsentText, SignupAttempt])
def test_evidence_is_read_only(superuser_client: Client, model: type[Any]) -> None:
    signup = SignupFactory.create(confirmed=True)
    SignupAttemptFactory.create(account=signup.account)
    pk = model._default_manager.get().pk
    assert superuser_client.get(url(model, "add")).status_code == 403
    assert superuser_client.get(url(model, "change", pk)).status_code == 200
    assert superuser_client.post(url(model, "change", pk), {}).status_code == 403
    assert superuser_client.post(url(model, "delete", pk), {"post": "yes"}).status_code == 403
    assert model._default_manager.filter(pk=pk).exists()


@pytest.mark.parametrize("model", [SignupForm, Signup, ConsentText, SignupAttempt])
def test_nothing_of_another_account_is_seen(client: Client, model: type[Any]) -> None:
    stranger = AccountFactory.create(name="secretname", slug="secretname")
    form = SignupFormFactory.create(account=stranger, name="secretname")
    text = ConsentTextFactory.create(account=stranger, text="secretname")
    SignupFactory.create(account=stranger, form=form, consent=text, email="secretname@x.org")
    SignupAttemptFactory.create(account=stranger)
    row = model._default_manager.get()
    for query in ("", "?q=secret", f"?account={stranger.pk}"):
        answer = client.get(url(model, "changelist") + query, follow=True)
        assert answer.status_code == 200
        assert "secretname" not in answer.content.decode()
        assert row not in list(answer.context["cl"].result_list)
    for page in ("change", "delete", "history"):
        assert client.get(url(model, page, row.pk)).status_code in (302, 403)
    assert client.post(url(model, "change", row.pk), {"name": "x"}).status_code in (302, 403)
    assert SignupForm.objects.get().name == "secretname"
