"""RFC 8058, as mailbox providers and scanners do it: over HTTP, and in sites of many settings."""

from __future__ import annotations

import re
from collections.abc import Callable
from http.client import HTTPConnection, HTTPResponse
from typing import Any
from urllib.parse import urljoin, urlsplit

import pytest
from django.conf.urls.i18n import i18n_patterns
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.test import Client, override_settings
from django.urls import include, path, re_path
from django.utils import timezone

from subscribers.models import Membership, Segment, Signup, Subscriber, Suppression
from subscribers.tokens import Kind, make_token, read_token
from tests.factories import (
    CampaignFactory,
    SegmentFactory,
    SignupFactory,
    SignupFormFactory,
    SubscriberFactory,
)

FORM = "application/x-www-form-urlencoded"
ONE_CLICK = b"List-Unsubscribe=One-Click"
MULTIPART = (
    b'--sep\r\nContent-Disposition: form-data; name="List-Unsubscribe"\r\n\r\nOne-Click\r\n--sep--'
)
HOST = "www.example.org"


def anything(request: HttpRequest, path: str) -> HttpResponse:
    return HttpResponse("a page of the host's")


#: A host with languages, whose own pages take every path that has a language.
urlpatterns = [
    path("mail/", include("subscribers.urls")),
    *i18n_patterns(
        path("letters/", include("subscribers.urls", namespace="translated")),
        re_path("^(?P<path>.*)$", anything),
    ),
]


@pytest.fixture
def person(db: None) -> Subscriber:
    segment = SegmentFactory.create()
    return SubscriberFactory.create(account=segment.account, segments=[segment])


def link(person: Subscriber, kind: Kind = Kind.UNSUBSCRIBE) -> str:
    return f"/u/{make_token(kind, person.pk, 9)}"


def status(person: Subscriber) -> str:
    return Subscriber.objects.values_list("status", flat=True).get(pk=person.pk)


# --- over HTTP -------------------------------------------------------------------------------


class Provider:
    """A client that keeps nothing, follows nothing and takes its time over nothing."""

    def __init__(self, url: str) -> None:
        self.address = urlsplit(url).netloc

    def __call__(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> tuple[HTTPResponse, str]:
        http = HTTPConnection(self.address, timeout=60)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        http.request(method, path, body, named)
        answer = http.getresponse()
        words = answer.read().decode()
        http.close()
        return answer, words


@pytest.fixture
def ask(live_server: Any, transactional_db: None) -> Provider:
    return Provider(live_server.url)


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        (FORM, ONE_CLICK),
        ("multipart/form-data; boundary=sep", MULTIPART),
        ("multipart/form-data; boundary=sep", b"--sep\r\nContent-Disposition: broken"),
        ("multipart/form-data", b"no boundary"),
        ("application/json", b"{"),
        (FORM, b""),
        (FORM, ONE_CLICK + b"&x=" + b"y" * 10_000_000),
        (FORM, b"&".join(b"f%d=1" % n for n in range(5000))),
        ("text/plain; charset=utf-99", b"\xff\xfe"),
    ],
    ids=[
        "urlencoded", "multipart", "broken multipart", "no boundary", "json", "empty",
        "10 MB", "5000 fields", "unknown charset",
    ],
)  # fmt: skip
def test_the_post_of_a_mailbox_provider(
    ask: Provider, person: Subscriber, content_type: str, body: bytes
) -> None:
    """No cookie, no referrer, no origin, an agent of its own: that is all they send."""
    for _ in range(2):
        answer, words = ask(
            "POST", link(person), body, Content_Type=content_type, User_Agent="Provider/1.0"
        )
        assert answer.status == 200
        assert answer.getheader("Set-Cookie") is None
        assert answer.getheader("Location") is None
        assert "You are unsubscribed" in words
    assert status(person) == "unsubscribed"
    assert "Provider/1.0" in Suppression.objects.get().evidence


def test_a_post_without_any_header(ask: Provider, person: Subscriber) -> None:
    http = HTTPConnection(ask.address, timeout=60)
    http.putrequest("POST", link(person), skip_accept_encoding=True)
    http.endheaders()
    assert http.getresponse().status == 200
    http.close()
    assert status(person) == "unsubscribed"


def test_forged_tokens_are_refused_quietly(ask: Provider, person: Subscriber) -> None:
    token = make_token(Kind.UNSUBSCRIBE, person.pk, 9)
    for forged in (token[:-1] + ("A" if token[-1] != "A" else "B"), "A" * 32, "x"):
        for method in ("GET", "POST"):
            answer, words = ask(method, f"/u/{forged}", ONE_CLICK, Content_Type=FORM)
            assert 400 <= answer.status < 500
            assert "This link is not valid" in words
            assert person.email not in words
    assert status(person) == "confirmed"


def state() -> list[Any]:
    """Everything that a scanner must leave as it is."""
    return [
        *Subscriber.objects.order_by("pk").values_list("pk", "status", "email", "paused_until"),
        *Membership.objects.order_by("pk").values_list("pk", "left_at"),
        *Signup.objects.order_by("pk").values_list("pk", "confirmed_at", "mails"),
        Suppression.objects.count(),
    ]


def test_scanners_open_every_link_and_change_nothing(ask: Provider, person: Subscriber) -> None:
    """From every kind of link there is, each address on each page, whatever host it names."""
    campaign = CampaignFactory.create(
        account=person.account, sending=True, segments=list(person.segments.all())
    )
    form = SignupFormFactory.create(account=person.account)
    joining, moving = (
        SignupFactory.create(account=person.account, form=form, mails=1, mailed_at=timezone.now())
        for _ in range(2)
    )
    Signup.objects.filter(pk=moving.pk).update(kind="address", subscriber=person, form=None)
    tokens = [
        make_token(Kind.UNSUBSCRIBE, person.pk, None),
        make_token(Kind.WEB, person.pk, campaign.pk),
        make_token(Kind.CONFIRM, joining.pk, None),
        make_token(Kind.CONFIRM, moving.pk, None),
    ]
    todo = [f"/s/{person.account.slug}/{form.slug}", *(f"/u/{token}" for token in tokens)]
    queries = ("utm_source=mail", "action=leave", "action=pause&months=6", "List-Unsubscribe=1")
    before, seen = state(), set[str]()
    while todo:
        url = todo.pop()
        if url in seen:
            continue
        seen.add(url)
        for variant in (url, f"{url}/", *(f"{url}?{query}" for query in queries)):
            for method in ("HEAD", "OPTIONS", "GET"):
                answer, words = ask(method, variant, User_Agent="Scanner/1.0")
                assert answer.status in {200, 204} or (method, url[:3]) == ("OPTIONS", "/s/")
                assert answer.getheader("Set-Cookie") is None
        for target in re.findall(r'(?:href|action|src)="([^"]*)"', words):
            path = urlsplit(urljoin(url, target)).path
            if path.startswith(("/u/", "/s/")):
                todo.append(path)
    kinds = [read_token(url[3:]) for url in seen if url.startswith("/u/")]
    assert {known.kind for known in kinds if known} == set(Kind)
    assert len(seen) >= 7, "what the pages lead to, too"
    assert state() == before


@pytest.mark.parametrize("kind", Kind)
def test_what_may_be_asked_of_a_link(ask: Provider, person: Subscriber, kind: Kind) -> None:
    url = link(person, kind)
    answer, words = ask("OPTIONS", url)
    assert (answer.status, words) == (204, "")
    assert answer.getheader("Allow") == "GET, HEAD, OPTIONS, POST"
    assert answer.getheader("Access-Control-Allow-Origin") is None
    for method in ("PUT", "DELETE", "PATCH", "PROPFIND"):
        answer, _ = ask(method, url, ONE_CLICK)
        assert answer.status == 405
    assert status(person) == "confirmed"


# --- in the sites of others ------------------------------------------------------------------

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.cache.UpdateCacheMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.BrokenLinkEmailsMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django.middleware.cache.FetchFromCacheMiddleware",
]
FOREIGN = override_settings(
    ROOT_URLCONF=__name__,
    MIDDLEWARE=MIDDLEWARE,
    APPEND_SLASH=True,
    PREPEND_WWW=True,
    ALLOWED_HOSTS=[HOST],
    SECURE_SSL_REDIRECT=True,
    SECURE_REDIRECT_EXEMPT=[r"^mail/u/", "letters/u/"],
    SESSION_SAVE_EVERY_REQUEST=True,
    CSRF_USE_SESSIONS=True,
    LANGUAGES=[("en", "English"), ("fr", "French")],
    DEBUG=False,
)


@pytest.fixture
def client() -> Client:
    return Client(enforce_csrf_checks=True, headers={"host": HOST, "accept-language": "fr"})


@pytest.mark.parametrize("prefix", ["/mail", "/fr/letters", "/en/letters"])
@pytest.mark.parametrize("end", ["", "/", "?a=b", "/?a=b"])
@pytest.mark.parametrize("content_type", [FORM, "multipart/form-data; boundary=sep"])
def test_no_setting_of_a_host_redirects_it(
    client: Client, person: Subscriber, prefix: str, end: str, content_type: str
) -> None:
    body = ONE_CLICK if content_type == FORM else MULTIPART
    with FOREIGN:
        for _ in range(2):
            answer = client.post(
                f"{prefix}{link(person)}{end}", body.decode(), content_type=content_type
            )
            assert answer.status_code == 200
            assert not answer.cookies
    assert status(person) == "unsubscribed"


def test_not_even_a_forged_one_is_sent_on(
    client: Client, person: Subscriber, mailoutbox: list[Any]
) -> None:
    with FOREIGN:
        for url in (f"/mail/u/{'A' * 32}", f"/mail/u/{'A' * 32}/", "/mail/u/x"):
            for method in ("get", "post"):
                answer = getattr(client, method)(url, headers={"referer": "https://example.com"})
                assert answer.status_code == 410
                assert not answer.cookies
    assert mailoutbox == [], "managers are not told of it"


class Unread:
    """A body that nobody may touch."""

    def read(self, *_: Any) -> bytes:
        raise AssertionError("the body was read")

    readline = __iter__ = read


def test_the_body_is_not_even_read(client: Client, person: Subscriber) -> None:
    with FOREIGN:
        answer = client.request(
            REQUEST_METHOD="POST",
            PATH_INFO=f"/mail{link(person)}",
            CONTENT_TYPE="multipart/form-data; boundary=sep",
            CONTENT_LENGTH=str(2**40),
            **{"wsgi.input": Unread()},
        )
    assert answer.status_code == 200
    assert status(person) == "unsubscribed"


def test_a_hosts_transaction_around_the_request_is_no_harm(person: Subscriber) -> None:
    connection.settings_dict["ATOMIC_REQUESTS"] = True
    try:
        assert Client().post(link(person)).status_code == 200
    finally:
        connection.settings_dict["ATOMIC_REQUESTS"] = False
    assert status(person) == "unsubscribed"


# --- the preferences link is none ------------------------------------------------------------


@pytest.mark.parametrize(
    "act",
    [
        lambda web, url: web.post(url, ONE_CLICK.decode(), content_type=FORM),
        lambda web, url: web.post(url, {"action": "everything"}),
        lambda web, url: web.post(url, "", content_type="text/plain"),
    ],
)
def test_a_one_click_to_the_preferences_changes_nothing(
    person: Subscriber, act: Callable[[Client, str], Any]
) -> None:
    answer = act(Client(enforce_csrf_checks=True), link(person, Kind.PREFERENCES))
    assert answer.status_code == 200
    assert status(person) == "confirmed"
    assert not Membership.objects.filter(left_at__isnull=False).exists()
    assert Segment.objects.count() == 1
