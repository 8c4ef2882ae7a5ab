"""A real Chromium before the real pages; without one these tests are skipped and say so."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings
from django.test import Client

from tests.forks import Forks

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Page

#: The first is the same engine without a desktop's parts: it does with two thirds of the CPU.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")


def too_narrow(page: Page) -> list[int]:
    """Widths of the window, of a desk's and of a phone's, at which the page scrolls sideways."""
    # A click's page may be on its way still, without a document for a moment.
    page.wait_for_load_state()
    found = []
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 900})
        if page.evaluate("document.documentElement.scrollWidth > window.innerWidth"):
            found.append(width)
    return found


@pytest.fixture(scope="session")
def playwright_chromium(
    django_db_setup: None,
) -> Iterator[tuple[Browser, asyncio.AbstractEventLoop]]:
    """One for all tests of a worker, and Playwright's loop. It is left running in this thread;
    outside of the browser's tests nobody sees that. It ends before the database, since pages may
    hold connections of the live server open."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip(f"no Chromium on this machine (looked for {', '.join(NAMES)})")
    with playwright.sync_playwright() as running:
        loop = asyncio.get_running_loop()
        browser = running.chromium.launch(executable_path=program, args=list(ARGUMENTS))
        asyncio._set_running_loop(None)
        yield browser, loop
        asyncio._set_running_loop(loop)
        browser.close()


@pytest.fixture(scope="module")
def chromium(
    playwright_chromium: tuple[Browser, asyncio.AbstractEventLoop],
) -> Iterator[Browser]:
    browser, loop = playwright_chromium
    with pytest.MonkeyPatch.context() as patch:
        # Django would take Playwright's loop for async code.
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        asyncio._set_running_loop(loop)
        yield browser
        asyncio._set_running_loop(None)


@pytest.fixture
def open_page(chromium: Browser, live_server: Any) -> Iterator[Callable[..., Page]]:
    """``open_page(user, javascript=True)``: a page logged in as ``user``.

    At its end the test fails if a page broke the content security policy or threw an error.
    """
    contexts = []
    complaints: list[str] = []

    def noted(message: ConsoleMessage) -> None:
        # The browser asks for an icon by itself; whether a site has one is the site's matter.
        if message.type == "error" and not message.location["url"].endswith("/favicon.ico"):
            complaints.append(message.text)

    def opened(user: Any, *, javascript: bool = True) -> Page:
        client = Client()
        client.force_login(user)
        context = chromium.new_context(
            base_url=live_server.url,
            viewport={"width": 1280, "height": 900},
            java_script_enabled=javascript,
        )
        contexts.append(context)
        cookie = client.cookies[settings.SESSION_COOKIE_NAME].value
        context.add_cookies(
            [{"name": settings.SESSION_COOKIE_NAME, "value": cookie, "url": live_server.url}]
        )
        page = context.new_page()
        page.on("console", noted)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture
def relay(tmp_path: Path, bare_environ: dict[str, str], forks: Forks) -> Iterator[Any]:
    """A sink, and real senders on the database that the pages are of (``role_paths.Relay``)."""
    from .role_paths import Relay  # it is made of what stands in this file

    made = Relay(tmp_path, bare_environ, forks)
    yield made
    made.hang_up()
