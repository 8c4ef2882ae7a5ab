"""What axe finds in a page, whatever the page's own policy is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Page


def flaws(page: Page) -> list[str]:
    """What axe finds in the page's content; the frame around it is Django's own. Looked for in
    a twin of the page, because axe itself styles inline, which our policy forbids."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    body, browser = page.content(), page.context.browser
    assert browser is not None
    found = []
    for scheme in ("light", "dark"):
        context = browser.new_context(bypass_csp=True, color_scheme=scheme)
        twin = context.new_page()
        twin.route(page.url, lambda route: route.fulfill(body=body, content_type="text/html"))
        twin.goto(page.url)
        found += [
            f"{scheme}: {rule['id']}: {node['html'][:200]}"
            for rule in axe.run(twin, context="#content").response["violations"]
            for node in rule["nodes"]
        ]
        context.close()
    return found
