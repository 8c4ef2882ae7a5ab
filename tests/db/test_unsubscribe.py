"""The unsubscribe link, as the providers, the scanners and people use it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client, override_settings
from django.urls import include, path

from subscribers import hooks
from subscribers.consent import unsubscribe
from subscribers.models import Account, Subscriber, Suppression
from subscribers.suppression import is_suppressed
from subscribers.tokens import Kind, make_token, unsubscribe_url
from tests.factories import SignupFormFactory

urlpatterns = [path("mail/", include("subscribers.urls"))]

pytestmark = pytest.mark.django_db

ONE_CLICK = "List-Unsubscribe=One-Click"
FORM = "application/x-www-form-urlencoded"


@pytest.fixture
def person() -> Subscriber:
    account = Account.objects.create(
        name="Acme & Söhne", slug="acme", from_email="a@example.org", postal_address="1 Way\nTown"
    )
    return Subscriber.objects.create(
        account=account, email="Ann.Lee@example.org", status=Subscriber.Status.CONFIRMED
    )


@pytest.fixture
def web() -> Client:
    return Client(enforce_csrf_checks=True)


def address(person: Subscriber, kind: Kind = Kind.UNSUBSCRIBE) -> str:
    return f"/u/{make_token(kind, person.pk, 9)}"


def status(person: Subscriber) -> str:
    person.refresh_from_db()
    return person.status


def words(response: Any) -> str:
    return str(response.content.decode())


@pytest.mark.parametrize("method", ["get", "head"])
@pytest.mark.parametrize("agent", ["Mozilla/5.0", "GoogleImageProxy", "Barracuda Sentinel"])
def test_looking_changes_nothing(web: Client, person: Subscriber, method: str, agent: str) -> None:
    for url in (address(person), address(person) + "/", address(person) + "?x=1"):
        response = getattr(web, method)(url, headers={"user-agent": agent})
        assert response.status_code == 200
    assert status(person) == "confirmed"
    assert not Suppression.objects.exists()


def test_a_post_unsubscribes(web: Client, person: Subscriber) -> None:
    assert web.post(address(person), ONE_CLICK, content_type=FORM).status_code == 200
    assert status(person) == "unsubscribed"
    assert person.unsubscribed_at is not None
    suppression = Suppression.objects.get()
    assert (suppression.account, suppression.email_lower) == (person.account, "ann.lee@example.org")
    assert suppression.reason == "unsubscribed"
    assert "campaign 9" in suppression.evidence


def test_repeating_keeps_the_first_moment(web: Client, person: Subscriber) -> None:
    web.post(address(person))
    person.refresh_from_db()
    first = person.unsubscribed_at
    web.post(address(person))
    person.refresh_from_db()
    assert person.unsubscribed_at == first


def test_the_page_and_its_button(web: Client, person: Subscriber) -> None:
    page = words(web.get(address(person)))
    assert re.search(r'<form method="post">\s*<button type="submit">', page)
    assert "Acme &amp; Söhne" in page
    assert "A•••@example.org" in page
    assert "Ann.Lee" not in page
    after = words(web.post(address(person), {}))
    assert "You are unsubscribed" in after
    assert "<form" not in after
    assert "You are unsubscribed" in words(web.get(address(person)))


@pytest.mark.parametrize("kind", [Kind.UNSUBSCRIBE, Kind.PREFERENCES])
def test_who_left_by_mistake_finds_a_form(web: Client, person: Subscriber, kind: Kind) -> None:
    unsubscribe(person, evidence="test")
    SignupFormFactory.create()
    SignupFormFactory.create(account=person.account, is_open=False)
    assert "By mistake?" not in words(web.get(address(person, kind)))
    form = SignupFormFactory.create(account=person.account, name="News & more", slug="news")
    SignupFormFactory.create(account=person.account)
    page = words(web.get(address(person, kind)))
    link = '<a href="/s/acme/news"><bdi>News &amp; more</bdi></a>'
    assert f"By mistake? Sign up again: {link}" in page
    assert form.name.encode() in web.get("/s/acme/news").content.replace(b"&amp;", b"&")


def test_the_page_tells_nobody_anything(web: Client, person: Subscriber) -> None:
    for response in (
        web.get(address(person)),
        web.post(address(person)),
        web.get("/u/" + "x" * 32),
    ):
        csp = response.headers["Content-Security-Policy"]
        assert csp.startswith("default-src 'none'; style-src 'self'; form-action 'self'")
        assert "unsafe" not in csp
        assert response.headers["Referrer-Policy"] == "no-referrer"
        assert "noindex" in response.headers["X-Robots-Tag"]
        assert "no-store" in response.headers["Cache-Control"]
        assert not response.cookies
        assert not re.search(r"<script|style=|<style|\son\w+=", words(response))
        assert len(response.content) < 15_000


@override_settings(STATIC_URL="https://cdn.example.org/static/")
def test_the_policy_follows_the_static_files(web: Client, person: Subscriber) -> None:
    csp = web.get(address(person)).headers["Content-Security-Policy"]
    assert "style-src 'self' https://cdn.example.org;" in csp


@pytest.mark.parametrize(
    ("token", "code"),
    [
        ("x", 410),
        ("x" * 32, 410),
        ("x" * 100, 410),
        ("x" * 101, 404),
        ("%00", 410),
        ("é", 410),
        ("../admin", 404),
        (make_token(Kind.WEB, 1, 1), 404),
    ],
)
def test_a_forged_token_leads_nowhere(
    web: Client, person: Subscriber, token: str, code: int
) -> None:
    for response in (web.get(f"/u/{token}"), web.post(f"/u/{token}")):
        assert response.status_code == code
    assert status(person) == "confirmed"


def test_a_deleted_person_is_told_so(web: Client, person: Subscriber) -> None:
    url = address(person)
    person.delete()
    for response in (web.get(url), web.post(url)):
        assert response.status_code == 200
        assert "not on the list" in words(response)


def test_it_leads_to_the_preferences(web: Client, person: Subscriber) -> None:
    (found,) = re.findall(r'<a href="(/u/[^"]{32})">Get fewer', words(web.get(address(person))))
    assert "Your preferences" in words(web.get(found))


def test_the_page_is_in_the_persons_language(web: Client, person: Subscriber) -> None:
    Subscriber.objects.update(locale="fr_CA")
    response = web.get(address(person), headers={"accept-language": "es"})
    assert '<html lang="fr">' in words(response)
    assert "Se désabonner" in words(response)
    Subscriber.objects.update(locale="tlh")
    response = web.get(address(person), headers={"accept-language": "es"})
    assert '<html lang="es">' in words(response)


@override_settings(ROOT_URLCONF=__name__, SENDONCE={"BASE_URL": "https://host.example"})
def test_links_follow_the_hosts_prefix(web: Client, person: Subscriber) -> None:
    url = unsubscribe_url(person.pk, 9)
    assert url.startswith("https://host.example/mail/u/")
    assert web.post(url.removeprefix("https://host.example")).status_code == 200
    assert status(person) == "unsubscribed"


def test_a_released_suppression_comes_back_with_the_next_click(
    web: Client, person: Subscriber
) -> None:
    web.post(address(person))
    Suppression.objects.all().delete()
    assert unsubscribe(person, evidence="again") is False
    assert is_suppressed(person.account, person.email)


def test_status_and_suppression_are_one_transaction(person: Subscriber) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            f"CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS"
            f" $$ BEGIN RAISE 'refused'; END $$;"
            f" CREATE TRIGGER refuse BEFORE INSERT ON {Suppression._meta.db_table}"
            f" FOR EACH ROW EXECUTE FUNCTION refuse()"
        )
    with pytest.raises(Exception, match="refused"):
        unsubscribe(person, evidence="x")
    assert status(person) == "confirmed"


def test_those_who_left_are_withdrawn_after_the_commit(
    person: Subscriber, django_capture_on_commit_callbacks: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    withdrawn: list[int] = []

    def withdraw(ids: list[int]) -> int:
        withdrawn.extend(ids)
        return len(ids)

    monkeypatch.setattr(hooks.withdraw_leavers, "_filled", withdraw)
    with django_capture_on_commit_callbacks(execute=True):
        assert unsubscribe(person, evidence="x") is True
        assert not withdrawn
    assert withdrawn == [person.pk]


def test_an_address_changed_meanwhile_is_the_one_suppressed(person: Subscriber) -> None:
    Subscriber.objects.update(email="new@example.org")
    unsubscribe(person, evidence="x")
    assert Suppression.objects.get().email == "new@example.org"
