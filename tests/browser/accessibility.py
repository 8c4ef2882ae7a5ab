"""What axe finds in a page, whatever the page's own policy is."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

#: axe describes what is wrong, and not all that is right, which would be most of its work. What
#: stands in a frame is somebody's mail.
OPTIONS = {"resultTypes": ["violations"], "iframes": False}
#: In the dark nothing but the colours is another.
SCHEMES: tuple[tuple[Literal["light", "dark"], dict[str, Any]], ...] = (
    ("light", OPTIONS),
    ("dark", {**OPTIONS, "runOnly": ["color-contrast"]}),
)
#: What a twin needs to look as the page does; what scripts made is in its content already.
LOOKS = ("stylesheet", "font", "image")


def flaws(page: Page) -> list[str]:
    """What axe finds in the page's content; the frame around it is Django's own. Looked for in
    a twin of the page, because axe itself styles inline, which our policy forbids."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    # A click's page may be on its way still: what is read must be the whole of it.
    page.wait_for_load_state()
    page.wait_for_selector("#content", state="attached")
    body, browser = page.content(), page.context.browser
    assert browser is not None
    twin = _twin(browser)

    def answer(route: Route) -> None:
        if route.request.is_navigation_request() and route.request.url == page.url:
            route.fulfill(body=body, content_type="text/html")
        elif route.request.resource_type in LOOKS:
            route.continue_()
        else:
            route.abort()

    twin.unroute_all()
    twin.route("**/*", answer)
    twin.goto(page.url)
    twin.evaluate(axe.axe_script)
    # Django's links take a moment to change their colour.
    twin.add_style_tag(content="* { transition: none !important }")
    found = []
    for scheme, options in SCHEMES:
        twin.emulate_media(color_scheme=scheme)
        violations = twin.evaluate(
            f"axe.run('#content', {json.dumps(options)}).then((result) => result.violations)"
        )
        found += [
            f"{scheme}: {rule['id']}: {node['html'][:200]}"
            for rule in violations
            for node in rule["nodes"]
        ]
    return found


@lru_cache(maxsize=1)
def _twin(browser: Browser) -> Page:
    """One for all pages of a browser: it ends with it."""
    return browser.new_context(bypass_csp=True).new_page()
