"""Joining in a real browser: form, mail, link, button; plain, accessible and without script."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest
from django.urls import reverse

from sending.models import Send
from subscribers.joining.asking import keep_words
from subscribers.joining.mail import confirm_url
from subscribers.models import Signup, SignupForm, Subscriber
from tests.db.signups import address_of, link_in
from tests.factories import (
    AttributeDefinitionFactory,
    SegmentFactory,
    SignupFactory,
    SignupFormFactory,
    StaffFactory,
    SuppressionFactory,
)

from .conftest import too_narrow

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, expect
else:
    expect = pytest.importorskip("playwright.sync_api").expect

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def outside(chromium: Browser, live_server: Any) -> Iterator[Callable[..., Page]]:
    """``outside(javascript=False)``: a page of a stranger's browser. At its end the test fails if a
    page broke the content security policy, threw an error or set a cookie."""
    contexts: list[Any] = []
    complaints: list[str] = []

    def opened(*, javascript: bool = False, **options: Any) -> Page:
        context = chromium.new_context(
            base_url=live_server.url,
            viewport={"width": 1280, "height": 900},
            java_script_enabled=javascript,
            **options,
        )
        contexts.append(context)
        page = context.new_page()

        def noted(message: Any) -> None:
            # The browser reports answers of 4xx to the pages themselves, which are meant.
            if message.type == "error" and "Failed to load resource" not in message.text:
                complaints.append(message.text)

        page.on("console", noted)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        return page

    yield opened
    cookies = [cookie for context in contexts for cookie in context.cookies()]
    for context in contexts:
        context.close()
    assert complaints == []
    assert cookies == []


@pytest.fixture
def form() -> SignupForm:
    made = SignupFormFactory.create(
        account__name="Northern Lights Books",
        name="Letters from the bookshop",
        slug="letters",
        intro="New books and what we think of them, once a month.",
        consent_text="I would like to get the monthly letter of Northern Lights Books. I can leave "
        "at any time by the link in every letter.",
        fields=["first_name", "birthday", "visits", "genre", "events"],
        segments=[],
    )
    segment = SegmentFactory.create(account=made.account, name="Monthly letter")
    made.segments.add(segment)
    for key, label, kind, choices in (
        ("first_name", "First name", "text", []),
        ("birthday", "Birthday", "date", []),
        ("visits", "Visits a year", "number", []),
        ("genre", "What you like to read", "choice", ["Novels", "Poems", "Travel"]),
        ("events", "Tell me about readings in the shop", "boolean", []),
    ):
        AttributeDefinitionFactory.create(
            account=made.account, key=key, label=label, kind=kind, choices=choices
        )
    return made


def violations(page: Page) -> list[str]:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    found = axe.run(page).response["violations"]
    return [f"{one['id']}: {[node['html'] for node in one['nodes']]}" for one in found]


class OtherSite(ThreadingHTTPServer):
    """A site of somebody else's: ``pages`` by path."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), OtherPages)
        self.pages: dict[str, str] = {}
        self.url = f"http://127.0.0.1:{self.server_port}"


class OtherPages(BaseHTTPRequestHandler):
    server: OtherSite

    def do_GET(self) -> None:
        body = self.server.pages.get(self.path, "<h1>Elsewhere</h1>").encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def elsewhere() -> Iterator[OtherSite]:
    site = OtherSite()
    thread = threading.Thread(target=site.serve_forever, daemon=True)
    thread.start()
    yield site
    site.shutdown()
    site.server_close()
    thread.join()


@pytest.mark.parametrize("javascript", [False, True], ids=["no-script", "script"])
def test_from_the_form_to_the_list(
    outside: Callable[..., Page], form: SignupForm, javascript: bool
) -> None:
    page = outside(javascript=javascript)
    page.goto(address_of(form))
    page.get_by_label("E-mail address").fill("ann@example.org")
    page.get_by_label("First name").fill("Ann")
    page.get_by_label("Birthday").fill("1990-02-28")
    page.get_by_label("Visits a year").fill("12")
    page.get_by_label("What you like to read").select_option("Poems")
    page.get_by_label("Tell me about readings").check()
    expect(page.get_by_text("I would like to get the monthly letter")).to_be_visible()
    page.get_by_role("button", name="Sign up").click()
    expect(page.get_by_role("heading", name="One more step")).to_be_visible()
    expect(page.get_by_text("If this address can get our mail")).to_be_visible()

    link = link_in(Send.objects.get())
    page.goto(link)
    expect(page.get_by_text("a•••@example.org")).to_be_visible()
    expect(page.get_by_text("Monthly letter", exact=True)).to_be_visible()
    assert not Subscriber.objects.exists()
    assert Signup.objects.get().confirmed_at is None

    page.get_by_role("button", name="Yes, sign me up").click()
    expect(page.get_by_role("heading", name="You are signed up")).to_be_visible()
    person = Subscriber.objects.get()
    assert person.status == Subscriber.Status.CONFIRMED
    assert person.attributes == {
        "first_name": "Ann",
        "birthday": "1990-02-28",
        "visits": 12,
        "genre": "Poems",
        "events": True,
    }
    page.goto(link)
    expect(page.get_by_role("heading", name="You are signed up")).to_be_visible()


def test_mistakes_are_named_and_what_was_typed_stays(
    outside: Callable[..., Page], form: SignupForm
) -> None:
    page = outside(javascript=True)
    page.goto(address_of(form))
    page.get_by_label("E-mail address").fill("ann@nowhere")
    page.get_by_label("First name").fill("Ann")
    page.get_by_role("button", name="Sign up").click()
    field = page.get_by_label("E-mail address")
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(field).to_have_accessible_description(
        "This is not an e-mail address that mail can be sent to. Please check it."
    )
    expect(page.get_by_label("First name")).to_have_value("Ann")
    assert violations(page) == []
    assert not Signup.objects.exists()


def test_the_trap_is_out_of_everybody_s_way(outside: Callable[..., Page], form: SignupForm) -> None:
    page = outside(javascript=True)
    page.goto(address_of(form))
    trap = page.locator("[name=message]")
    box = trap.bounding_box()
    assert box is None or box["x"] + box["width"] < 0
    page.get_by_label("E-mail address").focus()
    for _ in range(12):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.name") != "message"
    assert "Leave this empty" not in page.locator("main").aria_snapshot()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_answer_is_accessible_small_and_fits(
    outside: Callable[..., Page], form: SignupForm, scheme: str
) -> None:
    """The pages that a visit alone shows are among those of ``test_public_pages_browser``."""
    words = keep_words(form.account, form.consent_text)
    waiting = SignupFactory.create(account=form.account, form=form, consent=words)
    refused = SignupFactory.create(account=form.account, form=form, consent=words)
    SuppressionFactory.create(account=form.account, email=refused.email, reason="complaint")

    def path(signup: Signup) -> str:
        return "/u/" + confirm_url(signup).rpartition("/u/")[2]

    page = outside(javascript=True, color_scheme=scheme)

    def check(name: str) -> None:
        assert violations(page) == [], name
        assert too_narrow(page) == [], name
        assert len(page.content()) < 15_000, name
        page.set_viewport_size({"width": 1280, "height": 900})

    page.goto(address_of(form))
    check("form")  # with all kinds of fields
    page.get_by_label("E-mail address").fill("new@example.org")
    page.get_by_role("button", name="Sign up").click()
    check("sent")
    page.goto(path(refused))
    page.get_by_role("button").click()
    expect(page.get_by_role("heading", name="You are not signed up")).to_be_visible()
    check("refused")
    page.goto(path(waiting))
    page.get_by_role("button").click()
    check("confirmed")
    Subscriber.objects.all().delete()
    page.goto(path(waiting))
    expect(page.get_by_role("link", name="Letters from the bookshop")).to_be_visible()
    check("expired")


def test_a_form_in_a_frame_and_a_copy_of_it_on_another_site(
    outside: Callable[..., Page], form: SignupForm, live_server: Any, elsewhere: OtherSite
) -> None:
    SignupForm.objects.update(allowed_origins=[elsewhere.url])
    target = live_server.url + address_of(form)
    elsewhere.pages = {
        "/frame": f'<iframe src="{target}" title="x" width="500" height="900"></iframe>',
        "/copy": f'<form method="post" action="{target}"><input name="email" '
        'value="copy@example.org"><button>Go</button></form>',
    }
    page = outside(javascript=True)
    page.goto(f"{elsewhere.url}/frame")
    frame = page.frame_locator("iframe")
    frame.get_by_label("E-mail address").fill("frame@example.org")
    frame.get_by_role("button", name="Sign up").click()
    expect(frame.get_by_role("heading", name="One more step")).to_be_visible()
    page.goto(f"{elsewhere.url}/copy")
    # Of another origin, and of a type that the browser asks for first.
    answered = page.evaluate(
        """async ([url, body]) => {
            const answer = await fetch(url, {method: 'POST', body,
                headers: {'Content-Type': 'application/json'}});
            return [answer.status, await answer.json()];
        }""",
        [f"{live_server.url}{address_of(form, '.json')}", '{"email": "script@example.org"}'],
    )
    assert answered == [202, {"status": "accepted"}]
    page.get_by_role("button", name="Go").click()
    expect(page.get_by_role("heading", name="One more step")).to_be_visible()
    emails = list(Signup.objects.order_by("email").values_list("email", flat=True))
    assert emails == [
        "copy@example.org",
        "frame@example.org",
        "script@example.org",
    ]


def test_thanks_and_welcome_on_another_site(
    outside: Callable[..., Page], form: SignupForm, elsewhere: OtherSite
) -> None:
    SignupForm.objects.update(
        thanks_url=f"{elsewhere.url}/thanks", welcome_url=f"{elsewhere.url}/welcome"
    )
    page = outside()
    page.goto(address_of(form))
    page.get_by_label("E-mail address").fill("ann@example.org")
    page.get_by_role("button", name="Sign up").click()
    expect(page).to_have_url(f"{elsewhere.url}/thanks")
    expect(page.get_by_role("heading", name="Elsewhere")).to_be_visible()
    page.goto(link_in(Send.objects.get()))
    page.get_by_role("button").click()
    expect(page).to_have_url(f"{elsewhere.url}/welcome")
    assert Subscriber.objects.get().status == Subscriber.Status.CONFIRMED


def test_staff_make_a_form_without_script(open_page: Callable[..., Page], form: SignupForm) -> None:
    page = open_page(StaffFactory.create(superuser=True), javascript=False)
    page.goto(reverse("admin:sendonce_subscribers_signupform_add"))
    page.goto(reverse("admin:sendonce_subscribers_signupform_add") + f"?account={form.account_id}")
    page.get_by_label("Name:").fill("Events")
    page.get_by_label("Slug:").fill("events")
    page.get_by_label("Monthly letter").check()
    page.get_by_label("Attributes:").fill("first_name\ngenre")
    page.get_by_label("Consent text:").fill("Tell me about events.")
    page.get_by_role("button", name="Save and continue editing").click()
    expect(page.get_by_text("was added successfully")).to_be_visible()
    snippet = page.get_by_label("HTML of the form").input_value()
    assert 'name="attribute-genre"' in snippet
    made = SignupForm.objects.get(slug="events")
    for name, args in (
        ("signupform_change", [made.pk]),
        ("signupform_changelist", []),
        ("signup_changelist", []),
        ("signup_change", [SignupFactory.create(account=form.account, confirmed=True).pk]),
    ):
        page.goto(reverse(f"admin:sendonce_subscribers_{name}", args=args))
        assert too_narrow(page) == [], name
