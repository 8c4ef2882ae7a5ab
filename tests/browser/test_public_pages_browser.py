"""The pages for people outside as they see them: without JavaScript, on any screen, by keyboard."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import polib
import pytest
from django.test import Client, override_settings
from django.utils import timezone

from sending.models import Send
from subscribers.models import Account, Membership, Signup, Subscriber
from subscribers.suppression import suppress
from subscribers.tokens import Kind, make_token
from tests.conftest import ROOT
from tests.factories import (
    AccountFactory,
    MembershipFactory,
    SegmentFactory,
    SignupFactory,
    SignupFormFactory,
    SubscriberFactory,
)

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect
else:
    expect = pytest.importorskip("playwright.sync_api").expect

pytestmark = pytest.mark.django_db(transaction=True)

#: Widths of a desk, of a phone, and of a desk at 400 % (WCAG 1.4.10).
DESK, PHONE, ZOOMED = 1280, 390, 320
STYLESHEET = ROOT / "subscribers/static/sendonce_subscribers/page.css"
LONG = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft"

Visit = Callable[..., "Page"]


@pytest.fixture
def visit(chromium: Browser, live_server: Any) -> Iterator[Visit]:
    """``visit(path, dark=False, width=DESK)``: as a stranger, JavaScript off but where axe needs
    it. Fails at its end if a page broke its content security policy, or left a cookie."""
    contexts: list[BrowserContext] = []
    complaints: list[str] = []

    def noted(told: ConsoleMessage) -> None:
        # The browser's own words about an icon, or an answer that is meant to be an error.
        if told.type == "error" and "favicon" not in told.text and "status of" not in told.text:
            complaints.append(told.text)

    def visited(path: str, *, dark: bool = False, width: int = DESK, axe: bool = False) -> Page:
        context = chromium.new_context(
            base_url=live_server.url,
            viewport={"width": width, "height": 900},
            color_scheme="dark" if dark else "light",
            java_script_enabled=axe,
            locale="en",
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", noted)
        page.goto(path)
        return page

    yield visited
    cookies = [context.cookies() for context in contexts]
    for context in contexts:
        context.close()
    assert complaints == []
    assert not any(cookies)


@pytest.fixture
def account() -> Account:
    made: Account = AccountFactory.create(name="Example & Daughters", slug="example")
    for name, description in (
        ("Monthly letter", "What we made this month, and what it taught us."),
        ("Offers", ""),
        ("Invitations", "To our workshops in Exampleton, four times a year."),
    ):
        SegmentFactory.create(account=made, name=name, description=description)
    return made


@pytest.fixture
def person(account: Account) -> Subscriber:
    one: Subscriber = SubscriberFactory.create(
        account=account, email="ann@example.org", segments=list(account.segments.all())
    )
    return one


def url(person: Subscriber, kind: Kind = Kind.PREFERENCES) -> str:
    return f"/u/{make_token(kind, person.pk, None)}"


def moving(person: Subscriber, email: str = "new@example.net") -> Signup:
    signup: Signup = SignupFactory.create(
        account=person.account, form=None, email=email, kind="address", subscriber=person
    )
    return signup


def confirm_url(signup: Signup) -> str:
    return f"/u/{make_token(Kind.CONFIRM, signup.pk, None)}"


# --- every page, looked at -------------------------------------------------------------------


def _left(person: Subscriber) -> str:
    Subscriber.objects.filter(pk=person.pk).update(status="unsubscribed")
    return url(person)


def _gone(person: Subscriber) -> str:
    person.delete()
    return url(Subscriber(pk=person.pk or 1))


def _paused(person: Subscriber) -> str:
    until = timezone.now() + timedelta(days=90)
    Subscriber.objects.filter(pk=person.pk).update(paused_until=until)
    return url(person)


def _long(person: Subscriber) -> str:
    Account.objects.update(name=LONG * 2, postal_address=f"{LONG}\n{LONG}")
    segment = SegmentFactory.create(
        account=person.account, name=LONG * 2, description=f"{LONG} " * 3
    )
    MembershipFactory.create(segment=segment, subscriber=person)
    Subscriber.objects.update(email=f"a@{'x' * 60}.{'y' * 60}.{'z' * 60}.example.org")
    return url(person)


def _moved(person: Subscriber) -> str:
    signup = moving(person)
    Signup.objects.update(confirmed_at=timezone.now())
    Subscriber.objects.update(email=signup.email)
    return confirm_url(signup)


def _form(person: Subscriber) -> str:
    form = SignupFormFactory.create(
        account=person.account,
        name="Our monthly letter",
        slug="letter",
        intro="Once a month: what we made, and what it taught us.",
    )
    return f"/s/example/{form.slug}"


def _joining(person: Subscriber, **fields: Any) -> str:
    _form(person)
    form = person.account.signup_forms.get()
    return confirm_url(SignupFactory.create(account=person.account, form=form, **fields))


PAGES: dict[str, Callable[[Subscriber], str]] = {
    "preferences": url,
    "paused": _paused,
    "long-words": _long,
    "unsubscribe": lambda person: url(person, Kind.UNSUBSCRIBE),
    "unsubscribed": _left,
    "gone": _gone,
    "unknown": lambda person: f"/u/{'x' * 32}",
    "address-confirm": lambda person: confirm_url(moving(person)),
    "address-changed": _moved,
    "form": _form,
    "no-form": lambda person: "/s/example/nothing",
    "confirm": _joining,
    "confirmed": lambda person: _joining(person, confirmed=True),
    "expired": lambda person: _joining(person, mailed_at=timezone.now() - timedelta(days=99)),
}


SCHEMES: tuple[tuple[Literal["light", "dark"], int], ...] = (("light", DESK), ("dark", PHONE))


@pytest.mark.parametrize("name", PAGES)
def test_everybody_can_use_it(visit: Visit, person: Subscriber, name: str) -> None:
    path = PAGES[name](person)
    sent = Client().get(path).content
    assert len(sent) + len(STYLESHEET.read_bytes()) < 15_000
    assert not re.search(rb"<script|<style|style=|\son\w+=", sent)
    page = visit(path, axe=True)
    for scheme, width in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 900})
        assert accessible(page) == []
        assert narrow(page)
    page.set_viewport_size({"width": ZOOMED, "height": 256})
    assert narrow(page)


@pytest.mark.parametrize("dark", [False, True])
def test_it_reads_from_the_right_where_a_language_does(
    visit: Visit, person: Subscriber, tmp_path: Path, dark: bool
) -> None:
    folder = tmp_path / "ar" / "LC_MESSAGES"
    folder.mkdir(parents=True)
    catalogue = polib.POFile()
    catalogue.metadata = {"Content-Type": "text/plain; charset=UTF-8"}
    catalogue.append(polib.POEntry(msgid="You are unsubscribed", msgstr="تم إلغاء اشتراكك"))
    catalogue.append(polib.POEntry(msgid="Your preferences", msgstr="تفضيلاتك"))
    catalogue.save_as_mofile(str(folder / "django.mo"))
    Subscriber.objects.update(locale="ar")
    with override_settings(LOCALE_PATHS=[str(tmp_path)]):
        page = visit(url(person), dark=dark, width=PHONE, axe=True)
        assert page.locator("html").get_attribute("dir") == "rtl"
        expect(page.get_by_role("heading", name="تفضيلاتك")).to_be_visible()
        assert accessible(page) == []
        assert narrow(page)
        box = page.get_by_role("checkbox").first.bounding_box()
        assert box is not None
        assert box["x"] > PHONE / 2, "the boxes are at the right"


def accessible(page: Page) -> list[str]:
    """What axe finds, by the rules of WCAG 2.1 AA and its own best practices."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    found = axe.run(page).response["violations"]
    return [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in found]


def narrow(page: Page) -> bool:
    """Whether nothing is beyond the edge; ``contain`` hides no overflow of a box inside."""
    return bool(
        page.evaluate(
            "document.documentElement.scrollWidth <= window.innerWidth && "
            "[...document.querySelectorAll('body *')].every("
            "e => e.classList.contains('trap') || e.closest('.trap') || "
            "e.getBoundingClientRect().right <= window.innerWidth + 1)"
        )
    )


# --- acting on them --------------------------------------------------------------------------


def present(person: Subscriber) -> set[str]:
    inside = Membership.objects.filter(subscriber=person, left_at__isnull=True)
    return set(inside.values_list("segment__name", flat=True))


def test_segments_by_keyboard(visit: Visit, person: Subscriber) -> None:
    page = visit(url(person))
    page.get_by_label("Offers").focus()
    page.keyboard.press("Space")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_contain_text("Saved.")
    expect(page.get_by_label("Offers")).not_to_be_checked()
    assert present(person) == {"Monthly letter", "Invitations"}
    page.get_by_label("Offers").check()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_label("Offers")).to_be_checked()
    assert "Offers" in present(person)


def test_a_break(visit: Visit, person: Subscriber) -> None:
    page = visit(url(person), width=PHONE)
    page.get_by_role("button", name="3 months").click()
    expect(page.get_by_role("status")).to_contain_text("Paused until")
    person.refresh_from_db()
    assert person.paused_until is not None
    page.get_by_role("button", name="Get mailings again now").click()
    expect(page.get_by_role("status")).to_contain_text("The break is over")
    person.refresh_from_db()
    assert person.paused_until is None


def test_another_address(visit: Visit, person: Subscriber, live_server: Any) -> None:
    page = visit(url(person))
    page.get_by_label("New e-mail address").fill("nobody@localhost")
    page.get_by_role("button", name="Send the confirmation").click()
    field = page.get_by_label("New e-mail address")
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(field).to_have_value("nobody@localhost")
    expect(field).to_have_accessible_description(
        "This is not an e-mail address that mail can be sent to. Please check it. We send a "
        "message there. The address changes once you confirm it with the link in that message."
    )
    assert page.title().startswith("Please check the address")
    field.fill("new@example.net")
    page.get_by_role("button", name="Send the confirmation").click()
    expect(page.get_by_role("status")).to_contain_text("new@example.net")
    question = Send.objects.get()
    assert question.context is not None
    page = visit("/u/" + question.context["confirm_url"].rpartition("/u/")[2])
    page.get_by_role("button", name="Confirm").click()
    expect(page.get_by_role("heading", name="Your address is changed")).to_be_visible()
    person.refresh_from_db()
    assert person.email == "new@example.net"


def test_an_address_that_is_refused(visit: Visit, person: Subscriber) -> None:
    suppress(person.account, "new@example.net", "complaint")
    page = visit(confirm_url(moving(person)), axe=True)
    page.get_by_role("button", name="Confirm").click()
    expect(page.get_by_role("heading", name="Your address was not changed")).to_be_visible()
    assert accessible(page) == []
    person.refresh_from_db()
    assert person.email == "ann@example.org"


def test_from_the_unsubscribe_page_to_fewer(visit: Visit, person: Subscriber) -> None:
    page = visit(url(person, Kind.UNSUBSCRIBE))
    page.get_by_role("link", name="Get fewer mailings instead").click()
    expect(page.get_by_role("heading", name="Your preferences")).to_be_visible()
    page.get_by_role("button", name="Unsubscribe from everything").click()
    expect(page.get_by_role("heading", name="You are unsubscribed")).to_be_visible()
    person.refresh_from_db()
    assert person.status == "unsubscribed"


def test_one_click_of_a_person(visit: Visit, person: Subscriber) -> None:
    page = visit(url(person, Kind.UNSUBSCRIBE), width=PHONE)
    page.keyboard.press("Tab")
    button = page.get_by_role("button", name="Unsubscribe")
    expect(button).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_contain_text("will send no more mailings")
    person.refresh_from_db()
    assert person.status == "unsubscribed"
