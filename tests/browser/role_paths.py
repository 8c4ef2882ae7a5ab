"""What the tests of roles share: users with one group, looks at a page, keys, a real sender."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.contrib.auth.models import Group
from django.db import connection

from subscribers import role_groups
from subscribers.models import Account
from subscribers.roles import Role
from tests.conftest import ROOT, _url
from tests.crash.conftest import Sink
from tests.factories import (
    AccountFactory,
    CampaignFactory,
    ImageFactory,
    LayoutFactory,
    SegmentFactory,
    SendFactory,
    StaffFactory,
    SubscriberFactory,
    SuppressionFactory,
)
from tests.forks import Forked, Forks

from .accessibility import flaws
from .conftest import too_narrow

if TYPE_CHECKING:
    from playwright.sync_api import Page

#: In every name of another account's rows: a page that shows it shows what it must not.
SECRET = "Zanzibar"


def member(role: Role, account: Account, username: str = "") -> Any:
    """Plain staff with one group and one membership, and no permission of their own."""
    role_groups.update()
    user = StaffFactory.create(username=username or role.value)
    user.groups.add(Group.objects.get(sendonce_role__role=role))
    account.members.add(user)
    return user


def neighbours() -> Account:
    """Another account in which as much goes on: drafts, doubt, people, a layout, a picture."""
    account: Account = AccountFactory.create(name=f"{SECRET} Club", slug="neighbours")
    segment = SegmentFactory.create(account=account, name=f"{SECRET} members")
    SubscriberFactory.create(
        account=account, segments=[segment], email=f"{SECRET.lower()}@example.org"
    )
    SuppressionFactory.create(account=account, email=f"{SECRET.lower()}.gone@example.org")
    LayoutFactory.create(account=account, name=f"{SECRET} frame")
    ImageFactory.create(account=account, name=f"{SECRET} picture")
    for state in ("approved", "sending", "paused", "sent"):
        made = CampaignFactory.create(account=account, name=f"{SECRET} {state}", **{state: True})
        for row in ("sent", "in_doubt", "bounced"):
            SendFactory.create(campaign=made, **{row: True})
    return account


def look(page: Page, name: str, *, axe: bool = False) -> None:
    """Nothing of the neighbours, no sideways scrolling, with ``axe`` nothing that it finds; and
    pictures of it where ``SHOTS`` names a folder."""
    page.wait_for_load_state()
    assert SECRET.lower() not in page.content().lower(), name
    assert too_narrow(page) == [], name
    if folder := os.environ.get("SHOTS"):
        for scheme, width in (("dark", 1280), ("light", 1280), ("light", 390)):
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            page.set_viewport_size({"width": width, "height": 900})
            page.screenshot(path=f"{folder}/{name}-{scheme}-{width}.png", full_page=True)
        page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 1280, "height": 900})
    if axe:
        assert flaws(page) == [], name


def posted(page: Page, url: str, **fields: str) -> int:
    """The status of the answer to a POST of the user's own, token and all."""
    token = next(c["value"] for c in page.context.cookies() if c["name"] == "csrftoken")
    answer = page.request.post(
        url,
        form={"csrfmiddlewaretoken": token, **fields},
        headers={"Referer": page.url},
        max_redirects=0,
    )
    assert "CSRF" not in answer.text()
    return answer.status


class Relay:
    """A sink that takes mail, and real senders on the test's database that give it some."""

    def __init__(self, folder: Path, environ: dict[str, str], forks: Forks) -> None:
        self.folder, self.forks = folder, forks
        self.environ = {
            **environ,
            "DATABASE_URL": _url(connection.settings_dict["NAME"]),
            "SECRET_KEY": "only-for-tests-0123456789-0123456789-0123456789",
            "SENDONCE_DIRECT_CONNECTION": "true",
        }
        self.sink: Sink | None = None
        self.running: list[Forked] = []

    def listen(self, *arguments: str) -> Sink:
        self.sink = Sink(self.folder / "relay.jsonl", list(arguments))
        self.sink.start()
        return self.sink

    def send(self, *arguments: str) -> Forked:
        """Start a ``run_sender``; it is ended by ``hang_up`` if it does not end by itself."""
        assert self.sink is not None
        command = [str(ROOT / "manage.py"), "run_sender", *arguments]
        environ = {**self.environ, "EMAIL_URL": f"smtp://127.0.0.1:{self.sink.port}"}
        process = self.forks.start(command, env=environ, out=self.folder / "sender.log")
        self.running.append(process)
        return process

    def drain(self, *arguments: str) -> None:
        process = self.send("--drain", *arguments)
        assert process.wait(60) == 0, (self.folder / "sender.log").read_text()

    def hold(self, signal_number: int = signal.SIGSTOP) -> None:
        """Answer nobody, so that a campaign is under way for as long as somebody looks at it."""
        assert self.sink is not None
        assert self.sink.process is not None
        self.sink.process.send_signal(signal_number)

    def go_on(self) -> None:
        self.hold(signal.SIGCONT)

    def hang_up(self) -> None:
        for process in self.running:
            process.kill()
            process.wait(30)
        if self.sink is not None:
            self.sink.stop()


#: Where the focus is: its name, and whether it can be seen, beside a twin without the focus.
FOCUSED = """() => {
    const at = document.activeElement;
    const named = at.labels && at.labels.length ? at.labels[0].innerText : "";
    const says = [at.getAttribute("aria-label"), named, at.innerText, at.value, at.name];
    const style = getComputedStyle(at), box = at.getBoundingClientRect();
    const outlined = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
    // Of a moment the browser itself marks the part that has the focus, and what has it within
    // a message is the message's to show.
    const own = at.type === "datetime-local" || at.tagName === "IFRAME";
    const ringed = style.boxShadow !== "none";
    const marks = (of) => [of.borderColor, of.backgroundColor, of.color, of.textDecorationLine];
    const twin = at.cloneNode(true);
    twin.removeAttribute("name");
    at.after(twin);
    const bare = marks(getComputedStyle(twin));
    twin.remove();
    return {
        says: says.find((text) => text && text.trim()) || "",
        tag: at.tagName,
        seen: own || outlined || ringed || marks(style).some((mark, index) => mark !== bare[index]),
        inView: box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth,
    };
}"""


#: Whatever takes the focus before its turn in the document does so by this.
OUT_OF_TURN = "[tabindex]:not([tabindex='0']):not([tabindex='-1'])"


class Keys:
    """A page that is used by the keyboard alone."""

    def __init__(self, page: Page) -> None:
        self.page = page
        #: What had the focus and did not show it, or was out of sight.
        self.unseen: list[str] = []

    def to(self, name: str, *, key: str = "Tab", most: int = 150) -> None:
        """Press Tab until the focus is on what is called so; with a ``*`` behind, begins so."""
        passed: list[str] = []
        assert self.page.locator(OUT_OF_TURN).count() == 0
        for _ in range(most):
            self.page.keyboard.press(key)
            at = self.page.evaluate(FOCUSED)
            says = " ".join(at["says"].split())
            passed.append(says)
            if at["tag"] != "BODY" and not (at["seen"] and at["inView"]):
                self.unseen.append(f"{self.page.url}: {at['tag']} {says[:60]} {at}")
            if says == name or (name.endswith("*") and says.startswith(name[:-1])):
                return
        raise AssertionError(f"{name} is not reached by Tab, only {passed}")

    def fill(self, name: str, text: str) -> None:
        self.to(name)
        self.page.keyboard.type(text)

    def tick(self, name: str) -> None:
        self.to(name)
        self.page.keyboard.press("Space")

    def follow(self, name: str, *, key: str = "Tab", press: str = "Enter") -> None:
        """Tab to it and press it; the page that comes has loaded when this returns."""
        self.to(name, key=key)
        with self.page.expect_navigation():
            self.page.keyboard.press(press)


OpenPage = Callable[..., "Page"]
