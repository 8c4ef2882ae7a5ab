"""Links and images: whether they lead anywhere from a mail; pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ..merge_tags import MergeTags
from .addresses import Address
from .facts import Facts
from .findings import Finding, Level
from .markup import Link, without_tags
from .places import MOST, Place, bounded, find, find_url, finding, short
from .urls import Fault, Verdict, judge

_LEVELS: dict[Fault, Level] = {
    "empty": "error",
    "placeholder": "warning",
    "relative": "error",
    "scheme": "error",
    "malformed": "error",
    "host": "warning",
    "mailto": "error",
    "target": "warning",
    "local": "error",
    "http": "warning",
}
_TEXT_URL = re.compile(r"\bhttps?://[^\s<>\"']+", re.IGNORECASE)
_EMPTY = {"link": 'href=""', "image": 'src=""'}
#: What ends a sentence and no URL.
_TRAILING = ".,;:!?)]}"


@dataclass(frozen=True, slots=True)
class _Judged:
    """A URL with what is wrong with it. ``where``: in words, where it is in no link and no
    image; ``is_extra``: the message is the same without what it leads to."""

    url: str
    verdict: Verdict | None
    where: str = ""
    is_extra: bool = False

    @property
    def level(self) -> Level:
        assert self.verdict is not None
        return "warning" if self.is_extra else _LEVELS[self.verdict.fault]


def links(facts: Facts) -> tuple[Finding, ...]:
    """Every link of the message, by its URL, once."""
    material = facts.material
    if material is None:
        return ()
    found: list[Finding] = []
    page = material.page
    targets = page.targets if page is not None else None
    linked = list(page.links) if page is not None else []
    if page is None or facts.sources.get("text_body", "").strip():
        # A text part that somebody wrote has links of its own; one that was made has the page's.
        linked += _links_of_text(material.compiled.text)
    elsewhere = [address for address in page.addresses if address.is_link] if page else []
    judged = _judged((link.url for link in linked), elsewhere, targets)
    found += _findings(facts, "link", judged)
    if page is not None:
        found += _unreadable_links(facts, page.links)
    if page is not None and page.more:
        title = f"{page.more:,} more links and images were not looked at"
        found.append(finding("link.unread", "warning", title, field="body"))
    return bounded(found)


def system_links(facts: Facts) -> tuple[Finding, ...]:
    """The address of the site, with which every person's own links begin. While the mail stays on
    this machine, links to it work for whoever reads it there."""
    verdict = judge(facts.base_url)
    if verdict is None or facts.is_debug:
        return ()
    stays_here = facts.transport_state.stays_here
    only_http = verdict.fault == "http"
    why = "One-click unsubscribing needs https." if only_http else "Nobody could unsubscribe."
    if stays_here:
        why = "That is for a rehearsal: the relay is on this machine."
    return (
        finding(
            f"system_links.{verdict.fault}",
            "warning" if only_http or stays_here else "error",
            f"The address of this site, {short(facts.base_url)}, {verdict.what}",
            f"{why} SENDONCE['BASE_URL'] must be its public https address.",
        ),
    )


def images(facts: Facts) -> tuple[Finding, ...]:
    """Every image: that it can be loaded, and that there is a text for those who don't see it."""
    page = facts.material.page if facts.material is not None else None
    if page is None:
        return ()
    found: list[Finding] = []
    elsewhere = [address for address in page.addresses if not address.is_link]
    judged, written = [], []
    for one in _judged((image.src for image in page.images), elsewhere):
        if not without_tags(one.url).strip().lower().startswith("data:"):
            judged.append(one)
        elif not one.is_extra:
            written.append(find(facts.sources, one.url[:60], "body", "layout"))
    # In the style that was made of a style sheet's rule it may be quoted in another way.
    for at in dict.fromkeys(written):
        title = "An image is written into the message itself (data:)"
        detail = "Gmail and Outlook don't show it. Upload it, or link to it."
        found.append(finding("image.data", "warning", title, detail, at=at, field="body"))
    found += _images_of_this_machine(facts, judged)
    found += _findings(facts, "image", judged)
    bare = [image.src for image in page.images if image.alt is None]
    if bare:
        named = "An image has" if len(bare) == 1 else f"{len(bare):,} images have"
        found.append(
            finding(
                "image.alt",
                "warning",
                f"{named} no alternative text (alt)",
                f"The first is {short(bare[0]) or 'without an address'}. Many people don't see "
                'images. For one that only decorates write alt="".',
                at=find(facts.sources, bare[0], "body", "layout"),
                field="body",
            )
        )
    return bounded(found)


def _links_of_text(text: str) -> Iterator[Link]:
    """What mail programs make links of. Its tags are hidden while it is searched: a URL does not
    end at the space in one."""
    hidden = MergeTags(text)
    for match in _TEXT_URL.finditer(hidden.hide(text)):
        yield Link(hidden.show(match[0].rstrip(_TRAILING)), is_empty=False)


def _judged(
    urls: Iterable[str],
    elsewhere: Iterable[Address],
    targets: set[str] | None = None,
) -> list[_Judged]:
    """Each URL once, where it stands first."""
    found = {url: _Judged(url, judge(url, targets=targets)) for url in dict.fromkeys(urls)}
    for other in elsewhere:
        if other.url not in found:
            verdict = judge(other.url, targets=targets)
            found[other.url] = _Judged(other.url, verdict, other.where, other.is_extra)
    return list(found.values())


def _findings(facts: Facts, kind: str, judged: Iterable[_Judged]) -> Iterator[Finding]:
    """Of URLs with what is wrong with them. ``kind``: ``link`` or ``image``."""
    wrong = [one for one in judged if one.verdict is not None and not _is_of_site(facts, one)]
    wrong.sort(key=lambda one: one.level)
    # The places of those that are not shown are not looked for: it would take a look through
    # everything that was written for each.
    for number, one in enumerate(wrong):
        yield _finding(facts if number < MOST else None, kind, one)


def _finding(facts: Facts | None, kind: str, one: _Judged) -> Finding:
    assert one.verdict is not None
    return finding(
        f"{kind}.{one.verdict.fault}",
        one.level,
        f"{_named(kind, one)} {one.verdict.what}",
        at=_where(facts.sources if facts else {}, kind, one.url),
        field="body",
    )


def _named(kind: str, one: _Judged) -> str:
    if not one.url.strip():
        article = "an" if kind == "image" else "a"
        return " ".join(filter(None, [f"The address of {article} {kind}", one.where]))
    noun = "font or style sheet" if one.is_extra else kind
    return " ".join(filter(None, [f"The {noun} {short(one.url)}", one.where]))


def _where(sources: Mapping[str, str], kind: str, url: str) -> Place:
    fields = ("body", "text_body", "layout")
    return find_url(sources, url, *fields) if url else find(sources, _EMPTY[kind], *fields)


def _unreadable_links(facts: Facts, linked: list[Link]) -> Iterator[Finding]:
    empty = [link for link in linked if link.is_empty and link.url.strip() and not link.hidden]
    if not empty:
        return
    named = "A link has" if len(empty) == 1 else f"{len(empty):,} links have"
    yield finding(
        "link.unnamed",
        "warning",
        f"{named} nothing to read",
        f"The first leads to {short(empty[0].url)}. Put words into it, or an image with an "
        "alternative text (alt).",
        at=find(facts.sources, empty[0].url, "body", "layout"),
        field="body",
    )


def _images_of_this_machine(facts: Facts, judged: Iterable[_Judged]) -> Iterator[Finding]:
    """While the site is tried out nothing is said of its address, but a picture that is missing
    is seen by everybody. Otherwise the check of that address says it."""
    if not facts.is_debug:
        return
    local = [
        one
        for one in judged
        if one.verdict is not None and one.verdict.fault == "local" and _is_of_site(facts, one)
    ]
    for number, one in enumerate(local):
        assert one.verdict is not None
        yield finding(
            "image.local",
            "warning",
            f"{_named('image', one)} {one.verdict.what}",
            "Readers elsewhere will not see it. Put it in again once SENDONCE['BASE_URL'] is the "
            "site's public https address.",
            at=_where(facts.sources if number < MOST else {}, "image", one.url),
            field="body",
        )


def _is_of_site(facts: Facts, one: _Judged) -> bool:
    """Links to this site are as good as the site's address, which has a check of its own."""
    if one.verdict is None or one.verdict.fault not in ("http", "local"):
        return False
    return f"{one.url.strip()}/".startswith(f"{facts.base_url}/")
