"""The page of a sign-up form, as people, programs and attackers use it."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from sending.models import Send
from subscribers.joining.asking import digest
from subscribers.joining.fields import TRAP
from subscribers.models import (
    ConsentText,
    Signup,
    SignupAttempt,
    SignupForm,
    Subscriber,
    Suppression,
)
from tests.db.signups import address_of, form_with_fields, link_in, mails, sign_up, visitor
from tests.factories import (
    SignupFactory,
    SignupFormFactory,
    SubscriberFactory,
    SuppressionFactory,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def form() -> SignupForm:
    return form_with_fields()


def words(answer: Any) -> str:
    return str(answer.content.decode())


# --- looking -------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["", "/"])
@pytest.mark.parametrize("method", ["get", "head"])
def test_looking_changes_nothing(form: SignupForm, ending: str, method: str) -> None:
    for query in ("", "?email=ann@example.org&locale=fr", "?locale=" + "x" * 3000):
        answer = getattr(visitor(), method)(address_of(form, ending) + query)
        assert answer.status_code == 200
        assert not answer.cookies
    assert not Signup.objects.exists()
    assert not SignupAttempt.objects.exists()
    assert not ConsentText.objects.exists()


def test_the_page_says_what_people_agree_to_and_asks_in_order(form: SignupForm) -> None:
    page = words(visitor().get(address_of(form)))
    assert "Our &lt;letter&gt;" in page
    assert "Acme &amp; Söhne" in page
    assert "Send me &lt;it&gt;.<br>I can leave." in page
    names = ["email", *(f"attribute-{key}" for key in form.fields)]
    places = [page.index(f'name="{name}"') for name in names]
    assert places == sorted(places)
    assert "secret" not in page
    assert 'type="number"' in page
    assert 'type="date"' in page
    assert 'type="checkbox"' in page
    assert '<option value="blue &amp; green">' in page
    assert "<script" not in page
    assert "style=" not in page
    assert len(page) < 15_000


def test_the_page_s_headers(form: SignupForm) -> None:
    form.allowed_origins = ["https://www.example.org", "nonsense; script-src *"]
    form.thanks_url = "https://thanks.example.org/page"
    form.save()
    for answer in (visitor().get(address_of(form)), sign_up(form, "nobody")):
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors https://www.example.org" in policy
        assert "form-action 'self' https://thanks.example.org;" in policy
        assert "script-src" not in policy
        assert "X-Frame-Options" not in answer.headers
        assert "no-store" in answer.headers["Cache-Control"]
        assert not answer.cookies


def test_a_page_without_allowed_sites_stands_in_no_frame(form: SignupForm) -> None:
    answer = visitor().get(address_of(form))
    assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
    assert answer.headers["X-Frame-Options"] == "DENY"


@pytest.mark.parametrize("method", ["get", "post"])
def test_a_form_that_is_closed_or_not_there(form: SignupForm, method: str) -> None:
    other = SignupFormFactory.create()
    SignupForm.objects.filter(pk=form.pk).update(is_open=False)
    for path in (
        address_of(form),
        f"/s/{other.account.slug}/{form.slug}/",
        f"/s/{form.account.slug}/{other.slug}/",
        "/s/x/y/",
    ):
        answer = getattr(visitor(), method)(path, {"email": "ann@example.org"})
        assert answer.status_code == 404
        assert "There is no such form" in words(answer)
    assert not Signup.objects.exists()


@pytest.mark.parametrize("method", ["put", "delete", "patch", "options"])
def test_other_methods(form: SignupForm, method: str) -> None:
    assert getattr(visitor(), method)(address_of(form)).status_code == 405


# --- asking --------------------------------------------------------------------------------------


def test_a_request_waits_and_one_mail_is_queued(form: SignupForm) -> None:
    web = visitor(headers={"user-agent": "Browser/7", "accept-language": "fr-CA, en;q=0.5"})
    answer = sign_up(
        form,
        " Ann@EXAMPLE.org ",
        web,
        **{
            "attribute-first_name": "Ann <b>",
            "attribute-age": "42",
            "attribute-born": "1990-02-28",
            "attribute-vip": "on",
            "attribute-color": "red",
            "attribute-secret": "x",
            "status": "confirmed",
            "consent": digest(form.consent_text),
        },
    )
    assert answer.status_code == 200
    signup = Signup.objects.get()
    assert signup.email == "Ann@example.org"
    assert (signup.kind, signup.form, signup.account) == ("join", form, form.account)
    assert signup.attributes == {
        "first_name": "Ann <b>",
        "age": 42,
        "born": "1990-02-28",
        "vip": True,
        "color": "red",
    }
    assert signup.locale == "fr-ca"
    assert signup.consent is not None
    assert signup.consent.text == form.consent_text
    assert signup.requested_from == web.defaults["REMOTE_ADDR"]
    assert signup.requested_agent == "Browser/7"
    assert (signup.mails, signup.confirmed_at, signup.subscriber) == (1, None, None)
    (mail,) = mails()
    assert (mail.email, mail.status) == ("Ann@example.org", Send.Status.QUEUED)
    assert mail.job_id == f"message:{form.account_id}:confirm:{signup.pk}-1"
    # Nothing that was typed is in it: anybody can type anybody's address.
    assert mail.content is not None
    for text in (mail.content.subject, mail.content.text, mail.content.html, str(mail.context)):
        assert "Ann" not in text
    assert not Subscriber.objects.exists()


def test_the_slash_at_the_end_is_optional(form: SignupForm) -> None:
    with override_settings(APPEND_SLASH=True):
        answer = visitor().post(address_of(form, ""), {"email": "ann@example.org"})
    assert answer.status_code == 200
    assert len(mails()) == 1


def prepared(form: SignupForm) -> dict[str, str]:
    """An address of each kind that there is."""
    account = form.account
    kinds = ("pending", "confirmed", "unsubscribed")
    found = {"unknown": "unknown@example.org"}
    for kind in kinds:
        person = SubscriberFactory.create(account=account, email=f"{kind}@x.org", status=kind)
        found[kind] = person.email
    for reason in ("unsubscribed", "hard_bounce", "complaint", "manual"):
        email = f"{reason}.listed@example.org"
        SuppressionFactory.create(account=account, email=email, reason=reason)
        found[f"listed {reason}"] = email
    SuppressionFactory.create(account=None, email="all@example.org")
    SuppressionFactory.create(account=account, erased_email="erased@example.org")
    SignupFactory.create(account=account, form=form, email="waits@example.org")
    return {
        **found,
        "listed for all": "all@example.org",
        "erased": "erased@example.org",
        "waits": "waits@example.org",
    }


def test_the_answer_is_the_same_for_every_address(form: SignupForm) -> None:
    """And so is the work that is done for it, but for one more statement where a request like it
    waits already."""
    everybody = prepared(form)
    sign_up(form, "warm@example.org")
    bodies, queries = {}, {}
    for kind, email in everybody.items():
        with _counted() as counted:
            answer = sign_up(form, email)
        del answer.headers["Expires"]  # now, to the second
        bodies[kind] = (answer.status_code, answer.content, sorted(answer.headers.items()))
        queries[kind] = len(counted)
    assert len({str(body) for body in bodies.values()}) == 1
    assert set(queries.values()) == {queries["unknown"]}
    for kind, email in everybody.items():
        assert Send.objects.filter(email=email).exists(), kind
        # Once more within the wait, and in the trap: nothing is sent, and nobody can tell.
        for more in ({}, {TRAP: "buy"}):
            with _counted() as counted:
                answer = sign_up(form, email, **more)
            assert (answer.status_code, answer.content) == bodies["unknown"][:2]
            assert abs(len(counted) - queries["unknown"]) <= 1
        assert Send.objects.filter(email=email).count() == 1
    statuses = list(Subscriber.objects.order_by("status").values_list("status", flat=True))
    assert statuses == ["confirmed", "pending", "unsubscribed"]
    assert Suppression.objects.count() == 6


def _counted() -> CaptureQueriesContext:
    return CaptureQueriesContext(connection)


def test_the_trap_keeps_nothing(form: SignupForm) -> None:
    answer = sign_up(form, "ann@example.org", **{TRAP: "x"})
    assert answer.status_code == 200
    assert not Signup.objects.exists()
    assert mails() == []
    assert SignupAttempt.objects.get().outcome == "trapped"


def test_where_people_go_afterwards(form: SignupForm) -> None:
    SignupForm.objects.filter(pk=form.pk).update(thanks_url="https://www.example.org/thanks?x=1")
    for more in ({}, {}, {TRAP: "x"}):
        answer = sign_up(form, "ann@example.org", **more)
        assert answer.status_code == 303
        assert answer.headers["Location"] == "https://www.example.org/thanks?x=1"
    assert sign_up(form, "nobody").status_code == 400


def test_a_language_can_be_chosen_by_the_link(form: SignupForm) -> None:
    page = words(visitor().get(address_of(form) + "?locale=fr"))
    assert '<input type="hidden" name="locale" value="fr">' in page
    assert '<html lang="fr">' in page
    sign_up(form, "ann@example.org", locale="fr")
    assert Signup.objects.get().locale == "fr"


def test_nobody_has_to_log_in(form: SignupForm) -> None:
    """On a site where every other page asks for it (Django's ``LoginRequiredMiddleware``)."""
    required = "django.contrib.auth.middleware.LoginRequiredMiddleware"
    with override_settings(MIDDLEWARE=[*settings.MIDDLEWARE, required]):
        assert visitor().get(address_of(form)).status_code == 200
        assert sign_up(form, "ann@example.org").status_code == 200
        data = {"email": "bob@example.org"}
        answer = visitor().post(address_of(form, ".json"), data, content_type="application/json")
        assert answer.status_code == 202
        assert visitor().post(link_in(mails()[0])).status_code == 200
