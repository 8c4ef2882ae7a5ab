"""What axe finds in a page, whatever the page's own policy is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Page


def flaws(page: Page) -> list[str]:
    """What axe finds in the page's content; the frame around it is Django's own. Looked for in
    a twin of the page, because axe itself styles inline, which our policy forbids."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    # A click's page may be on its way still: what is read must be the whole of it.
    page.wait_for_load_state()
    page.wait_for_selector("#content", state="attached")
    body, browser = page.content(), page.context.browser
    assert browser is not None
    context = browser.new_context(bypass_csp=True)
    twin = context.new_page()
    twin.route(page.url, lambda route: route.fulfill(body=body, content_type="text/html"))
    found = []
    # In the dark nothing but the colours is another.
    schemes: tuple[tuple[Literal["light", "dark"], dict[str, list[str]]], ...] = (
        ("light", {}),
        ("dark", {"runOnly": ["color-contrast"]}),
    )
    for scheme, options in schemes:
        twin.emulate_media(color_scheme=scheme)
        twin.goto(page.url)
        found += [
            f"{scheme}: {rule['id']}: {node['html'][:200]}"
            for rule in axe.run(twin, context="#content", options=options).response["violations"]
            for node in rule["nodes"]
        ]
    context.close()
    return found
