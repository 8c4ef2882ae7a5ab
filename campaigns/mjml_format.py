"""MJML, turned into HTML by ``mjml-python``; what its compiler does not say is said here."""

from __future__ import annotations

import re

from .body_formats import VOID, FormatError

#: Elements inside each other. MJML's compiler recurses in native code: a few thousand, or a
#: hundred on a small thread's stack, end the process.
MAX_DEPTH = 40
#: The compiler drops an element that it does not know, with all that is in it, and says nothing.
ELEMENTS = frozenset(
    """
    mjml mj-head mj-body mj-raw mj-attributes mj-all mj-class mj-breakpoint mj-font mj-preview
    mj-html-attributes mj-selector mj-html-attribute mj-style mj-title mj-accordion
    mj-accordion-element mj-accordion-title mj-accordion-text mj-button mj-carousel
    mj-carousel-image mj-column mj-divider mj-group mj-hero mj-image mj-navbar mj-navbar-link
    mj-section mj-social mj-social-element mj-spacer mj-table mj-text mj-wrapper
    """.split()  # noqa: SIM905 (a list of so many is no easier to read)
)
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_TAG = re.compile(r"<(/?)([A-Za-z][\w:-]*)")
_IN_TAG = re.compile(r"[\"'>]|/>")
_OWN = re.compile(r"<(mj[\w-]*)", re.IGNORECASE)
#: What the compiler says of a place: the bytes from and to.
_POSITION = re.compile(r"\s+in root template(?: at position (\d+):\d+)?\s*$")


def from_mjml(source: str) -> str:
    """The HTML of MJML, without web fonts that the author did not ask for.

    Raises ``FormatError``, with the place if it is known.
    """
    try:
        from mjml import mjml2html
    except ImportError as error:
        raise FormatError("MJML needs django-sendonce[mjml] to be installed.") from error
    bare = _COMMENT.sub(lambda comment: " " * len(comment[0]), source)
    for element in _OWN.finditer(bare):
        if element[1].lower() == "mj-include":
            raise FormatError(
                "mj-include is not available: a campaign is one document.", element.start()
            )
        if element[1] not in ELEMENTS:
            raise FormatError(f"MJML has no element {element[1][:50]}.", element.start())
    too_deep = _too_deep(source)
    if too_deep is not None:
        raise FormatError(f"More than {MAX_DEPTH} elements inside each other.", too_deep)
    try:
        return str(mjml2html(source, fonts={}))
    except ValueError as error:
        said = str(error)
        found = _POSITION.search(said)
        at = None
        if found and found[1]:
            at = len(source.encode()[: int(found[1])].decode(errors="ignore"))
        words = said[: found.start()] if found else said
        raise FormatError(f"MJML: {words}.", at) from error


def _too_deep(source: str) -> int | None:
    """Where more elements are inside each other than may be, never later than a parser would
    find it. Linear."""
    open_: list[str] = []
    at = 0
    while tag := _TAG.search(source, at):
        closing, name = tag[1], tag[2].lower()
        at, alone = _end_of_tag(source, tag)
        if closing:
            if open_ and open_[-1] == name:
                open_.pop()
        elif not alone and name not in VOID:
            open_.append(name)
            if len(open_) > MAX_DEPTH:
                return tag.start()
    return None


def _end_of_tag(source: str, tag: re.Match[str]) -> tuple[int, bool]:
    """Where the tag's text ends, and whether it ends in ``/>``."""
    at = tag.end()
    while found := _IN_TAG.search(source, at):
        at = found.end()
        if found[0] not in "\"'":
            return at, found[0] == "/>"
        at = source.find(found[0], at) + 1
        if not at:
            raise FormatError("A quotation mark inside a tag is not closed.", tag.start())
    raise FormatError("A tag is not closed.", tag.start())
