"""The words of a sign-up form that change, requests that come again, mails that can't be sent."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection

from subscribers import hooks
from subscribers.joining.asking import digest
from subscribers.models import (
    ConsentText,
    Signup,
    SignupAttempt,
    SignupForm,
)
from tests.db.signups import form_with_fields, mails, sign_up
from tests.factories import SignupFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def form() -> SignupForm:
    return form_with_fields()


def words(answer: Any) -> str:
    return str(answer.content.decode())


# --- the words -----------------------------------------------------------------------------------


def test_words_that_have_changed_meanwhile_are_shown_again(form: SignupForm) -> None:
    before = digest(form.consent_text)
    SignupForm.objects.filter(pk=form.pk).update(consent_text="Send me everything.")
    answer = sign_up(form, "ann@example.org", consent=before)
    assert answer.status_code == 400
    assert "What you agree to has changed" in words(answer)
    assert "Send me everything." in words(answer)
    assert f'name="consent" value="{digest("Send me everything.")}"' in words(answer)
    assert not Signup.objects.exists()


def test_an_older_wording_that_is_kept_is_what_was_agreed_to(form: SignupForm) -> None:
    """A copy of the form on another site shows the words that it was made with."""
    sign_up(form, "first@example.org")
    before = digest(form.consent_text)
    SignupForm.objects.filter(pk=form.pk).update(consent_text="Send me everything.")
    sign_up(form, "ann@example.org", consent=before)
    sign_up(form, "bob@example.org")
    by_email = {one.email: one.consent.text for one in Signup.objects.all() if one.consent}
    assert by_email == {
        "first@example.org": form.consent_text,
        "ann@example.org": form.consent_text,
        "bob@example.org": "Send me everything.",
    }
    assert ConsentText.objects.count() == 2


def test_words_of_another_account_are_not_known(form: SignupForm) -> None:
    other = SignupFactory.create().consent
    assert sign_up(form, "ann@example.org", consent=other.digest).status_code == 400


# --- asking again --------------------------------------------------------------------------------


def later(minutes: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE {SignupAttempt._meta.db_table} SET at = at - %s * interval '1 minute'",
            [minutes],
        )


def test_the_same_request_is_mailed_again_and_another_is_another(form: SignupForm) -> None:
    name = "attribute-first_name"
    sign_up(form, "ann@example.org", **{name: "Ann"})
    later(16)
    sign_up(form, "ANN@example.org", **{name: "Ann"})
    signup = Signup.objects.get()
    assert signup.mails == 2
    assert [mail.job_id.rpartition(":")[2] for mail in mails()] == [
        f"{signup.pk}-1",
        f"{signup.pk}-2",
    ]
    assert mails()[0].context == mails()[1].context
    later(16)
    # Somebody else, who types her address: her links go on meaning what she asked for.
    sign_up(form, "ann@example.org", **{name: "Mallory"})
    signup.refresh_from_db()
    assert signup.attributes["first_name"] == "Ann"
    assert Signup.objects.count() == 2
    assert mails()[2].context != mails()[0].context


def test_a_confirmed_one_and_one_that_has_run_out_are_not_used_again(form: SignupForm) -> None:
    sign_up(form, "ann@example.org")
    first = Signup.objects.get()
    Signup.objects.update(mailed_at="2020-01-01T00:00Z")
    later(16)
    sign_up(form, "ann@example.org")
    second = Signup.objects.exclude(pk=first.pk).get()
    Signup.objects.filter(pk=second.pk).update(confirmed_at="2020-01-01T00:00Z")
    later(16)
    sign_up(form, "ann@example.org")
    assert Signup.objects.count() == 3


# --- mails that can't be -------------------------------------------------------------------------


def test_own_words_that_can_not_be_sent_do_not_cost_people(
    form: SignupForm, caplog: pytest.LogCaptureFixture
) -> None:
    SignupForm.objects.filter(pk=form.pk).update(subject="{% include 'x' %}", body="{{ confirm_url")
    assert sign_up(form, "ann@example.org").status_code == 200
    (mail,) = mails()
    assert mail.content is not None
    assert "Please confirm" in mail.content.subject
    assert "can't be sent" in caplog.text


def test_without_anything_that_sends_it_works_all_the_same(
    form: SignupForm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hooks.send_message, "_filled", None)
    assert sign_up(form, "ann@example.org").status_code == 200
    assert Signup.objects.count() == 1


def test_a_request_that_fails_leaves_nothing(
    form: SignupForm, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(message: hooks.Message) -> int:
        raise RuntimeError("the queue is broken")

    monkeypatch.setattr(hooks.send_message, "_filled", broken)
    with pytest.raises(RuntimeError):
        sign_up(form, "ann@example.org")
    assert not Signup.objects.exists()
    assert not SignupAttempt.objects.exists()
