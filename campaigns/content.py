"""From what an editor wrote to what is frozen at approval: merge templates and the sender."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from django.core.exceptions import ValidationError
from django.core.validators import validate_email

from . import body_formats, framing, markup_bounds
from .footers import ADDRESS_FIELD, UNSUBSCRIBE_FIELD, address_lines, html_footer, text_footer
from .layouts import LayoutError
from .merge_tags import MergeTags
from .models import Campaign, Content
from .plain_text import NoText, text_from_html
from .sandbox import Compiled, SandboxError, compile_template, place

#: A campaign's texts: what makes its message, beside its account and its layout.
TEXTS = (
    "subject",
    "preheader",
    "from_email",
    "from_name",
    "reply_to",
    "body_format",
    "body",
    "text_body",
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
#: Neither PostgreSQL nor UTF-8 has them: NUL, and half of a character beyond the first 65,536.
_NOT_TEXT = re.compile(r"[\x00\ud800-\udfff]")


class ContentError(ValueError):
    """The content can't be sent. ``field`` is the campaign's field to mend; ``line`` and
    ``column`` count from 1 in it, and are ``None`` when the error has no place."""

    def __init__(
        self, field: str, message: str, line: int | None = None, column: int | None = None
    ) -> None:
        super().__init__(message)
        self.field = field
        self.message = message
        self.line = line
        self.column = column

    def __str__(self) -> str:
        place = "" if self.line is None else f", line {self.line}, column {self.column}"
        return f"{self.field.replace('_', ' ')}{place}: {self.message}"


class Sender(Protocol):
    """The account: what blanks of the draft fall back to, and what templates see of it."""

    name: str
    slug: str
    from_email: str
    from_name: str
    reply_to: str
    postal_address: str


class Draft(Protocol):
    """What an editor writes: a ``Campaign``, or a form's values for a preview."""

    subject: str
    preheader: str
    from_email: str
    from_name: str
    reply_to: str
    body_format: str
    body: str
    text_body: str

    @property
    def account(self) -> Any:
        """A ``Sender``."""

    @property
    def layout(self) -> Any:
        """A ``framing.Frame`` of the account, or None."""


@dataclass(frozen=True)
class CompiledContent:
    """The fields of a ``Content``. ``subject``, ``html`` and ``text`` are merge templates;
    ``html`` is empty for a text-only message. ``account_fields`` is ``{{ account }}``."""

    subject: str
    preheader: str
    html: str
    text: str
    from_email: str
    from_name: str
    reply_to: str
    account_fields: dict[str, str] = field(default_factory=dict)


def compile_campaign(campaign: Campaign) -> Content:
    """The campaign's content, ready to be saved. Raises ``ContentError``."""
    return as_content(compile_content(campaign), campaign.account_id)


def as_content(compiled: CompiledContent, account_id: int) -> Content:
    """An unsaved ``Content`` of an account."""
    return Content(account_id=account_id, **vars(compiled))


def problems(draft: Draft) -> list[ContentError]:
    """Everything that keeps the draft from being compiled; empty when nothing does."""
    found = list(_refusals(draft))
    if not found:
        try:
            compile_content(draft)
        except ContentError as error:
            found.append(error)
    return found


def compile_content(draft: Draft, *, bulk: bool = True) -> CompiledContent:
    """Resolve the sender, compile the format and validate every template. Pure.

    ``bulk``: a message to many never leaves without a way out and the sender's postal address;
    a footer adds what the body does not show.
    Raises ``ContentError`` for the first field that has to be mended.
    """
    for refusal in _refusals(draft):
        raise refusal
    html = _html(draft, bulk=bulk)
    text = _text(draft, html, bulk=bulk)
    account: Sender = draft.account
    return CompiledContent(
        subject=draft.subject,
        preheader=draft.preheader,
        html=html,
        text=text,
        from_email=draft.from_email or account.from_email,
        from_name=draft.from_name or account.from_name,
        reply_to=draft.reply_to or account.reply_to,
        account_fields=_account_fields(account),
    )


def compile_message(account: Sender, *, subject: str, text: str, html: str = "") -> CompiledContent:
    """A message to one person, whose merge templates are ready as they are; from the account.

    Raises ``ContentError`` for a subject, a text or an HTML part (blank: text only) that can't be
    sent, and for an account without a usable address.
    """
    for name, source in (("subject", subject), ("text", text)):
        if not source.strip():
            raise ContentError(name, "This must not be empty.")
    if _CONTROL.search(subject):
        raise ContentError("subject", "A subject can't contain line ends or control characters.")
    for name, source in (("subject", subject), ("text", text), ("html", html)):
        try:
            compile_template(source, html=name == "html")
        except SandboxError as error:
            raise ContentError(name, error.message, error.line, error.column) from error
    for refusal in _sender_refusals(account, "", "", ""):
        raise refusal
    return CompiledContent(
        subject=subject,
        preheader="",
        html=html,
        text=text,
        from_email=account.from_email,
        from_name=account.from_name,
        reply_to=account.reply_to,
        account_fields=_account_fields(account),
    )


def template_error(source: str, html: bool) -> str:
    """What is wrong with a merge template, in words with its place; "" for nothing."""
    try:
        compile_template(source, html=html)
    except SandboxError as error:
        return str(error)
    return ""


def _account_fields(account: Sender) -> dict[str, str]:
    return {
        "name": account.name,
        "slug": account.slug,
        "postal_address": account.postal_address,
    }


def _sender_refusals(
    account: Sender, from_email: str, from_name: str, reply_to: str
) -> Iterator[ContentError]:
    for name, address in (
        ("from_email", from_email or account.from_email),
        ("reply_to", reply_to or account.reply_to),
    ):
        if address or name == "from_email":
            try:
                validate_email(address)
            except ValidationError:
                yield ContentError(name, f"{address!r} is not an e-mail address.")
    if _CONTROL.search(from_name or account.from_name):
        yield ContentError("from_name", "A name can't contain line ends or control characters.")


def _refusals(draft: Draft) -> Iterator[ContentError]:
    for name in ("subject", "body"):
        if not getattr(draft, name).strip():
            yield ContentError(name, "This must not be empty.")
    if draft.body_format not in Campaign.BodyFormat.values:
        yield ContentError("body_format", f"There is no format {draft.body_format!r}.")
    yield from _sender_refusals(draft.account, draft.from_email, draft.from_name, draft.reply_to)
    if _CONTROL.search(draft.subject):
        yield ContentError("subject", "A subject can't contain line ends or control characters.")
    yield from _overlong(draft)
    for name in ("subject", "preheader", "body", "text_body"):
        if name == "body":
            yield from map(_content_error, framing.refusals(draft))
            continue
        try:
            compile_template(getattr(draft, name), html=False)
        except SandboxError as error:
            yield ContentError(name, error.message, error.line, error.column)
    for name in ("subject", "preheader", "from_name", "body", "text_body"):
        found = _NOT_TEXT.search(getattr(draft, name))
        if found:
            where = place(getattr(draft, name), found.start())
            yield ContentError(name, "Here is a character that no text can hold.", *where)


def _overlong(draft: Draft) -> Iterator[ContentError]:
    """What no parser should be given."""
    if draft.body_format == Campaign.BodyFormat.TEXT:
        return
    sources = {"body": draft.body, "layout": draft.layout.body if draft.layout else ""}
    for name, source in sources.items():
        at = markup_bounds.overlong_tag(source)
        if at is not None:
            most = markup_bounds.MOST_ATTRIBUTES
            where = place(source, at)
            yield ContentError(name, f"This tag has more than {most} attributes.", *where)
    most = markup_bounds.MOST_MARKDOWN
    if draft.body_format == Campaign.BodyFormat.MARKDOWN and len(draft.body) > most:
        yield ContentError("body", f"A body in Markdown is at most {most:,} characters long.")


def _content_error(error: LayoutError) -> ContentError:
    return ContentError(error.field, error.message, error.line, error.column)


def _html(draft: Draft, *, bulk: bool) -> str:
    if draft.body_format == Campaign.BodyFormat.TEXT:
        return ""
    frame = draft.layout.body if draft.layout is not None else ""
    tags = MergeTags(draft.body, frame, draft.subject, draft.preheader)
    try:
        document = framing.document(draft, tags, tags.hide(draft.subject))
    except LayoutError as error:
        raise _content_error(error) from error
    inlined = body_formats.inlined(document, tags)
    preheader = tags.hide(draft.preheader)
    if preheader:
        document = body_formats.with_preheader(document, preheader)
        inlined = body_formats.with_preheader(inlined, preheader)
    try:
        return _html_with_footer(draft, tags, inlined, bulk=bulk)
    except ContentError:
        # Inlining can make a document too long; it goes out as it was written.
        return _html_with_footer(draft, tags, document, bulk=bulk)


def _html_with_footer(draft: Draft, tags: MergeTags, hidden: str, *, bulk: bool) -> str:
    """The HTML, checked, with what a bulk message must say and this one does not."""
    html = tags.show(hidden)
    try:
        compiled = compile_template(html, html=True)
    except SandboxError as error:
        raise _made_unfit(draft, tags, hidden, html, error) from error
    missing = _missing(draft, compiled) if bulk else frozenset()
    if missing:
        html = body_formats.with_footer(html, html_footer(missing))
        _checked("body", html, html=True)
    return html


def _made_unfit(
    draft: Draft, tags: MergeTags, hidden: str, html: str, error: SandboxError
) -> ContentError:
    """What a format made of fit templates, told at the tag that it is about if that is known."""
    message = f"This does not survive its format: {error.message}"
    if error.line is None or error.column is None:
        return ContentError("body", message)
    lines = html.split("\n")[: error.line - 1]
    offset = sum(len(line) + 1 for line in lines) + error.column - 1
    origin = tags.origin_at(hidden, offset)
    if origin is None:
        return ContentError("body", message)
    return _content_error(framing.error_at(draft, origin, message))


def _text(draft: Draft, html: str, *, bulk: bool) -> str:
    if not html:
        text, name = framing.written(draft).text, "body"
    elif draft.text_body.strip():
        text, name = draft.text_body, "text_body"
    else:
        text, name = _text_of_html(html), "text_body"
    compiled = _checked(name, text, html=False)
    missing = _missing(draft, compiled) if bulk else frozenset()
    if missing:
        text = text.rstrip() + text_footer(missing)
        _checked(name, text, html=False)
    return text


def _missing(draft: Draft, compiled: Compiled) -> frozenset[str]:
    """What every bulk message must say and this one does not: the way out, the address.

    An address that the author typed counts too, if all its lines are there: the first is often
    no more than the sender's name, which stands in every newsletter.
    """
    missing = set()
    if UNSUBSCRIBE_FIELD not in compiled.always:
        missing.add(UNSUBSCRIBE_FIELD)
    account: Sender = draft.account
    lines = address_lines(account.postal_address)
    written = f"{framing.written(draft).text}\n{draft.text_body}"
    typed = bool(lines) and all(line in written for line in lines)
    if not typed and ADDRESS_FIELD not in compiled.fields:
        missing.add(ADDRESS_FIELD)
    return frozenset(missing)


def _text_of_html(html: str) -> str:
    tags = MergeTags(html)
    try:
        text = text_from_html(tags.hide(html), tags.block)
    except NoText as error:
        raise ContentError("body", f"No text can be made from this: {error}.") from error
    made = tags.show(text)
    try:
        compile_template(made, html=False)
    except SandboxError as error:
        # Half of an {% if %} stood in something that has no text, such as a hidden element.
        raise ContentError(
            "text_body", f"No text can be made from this body, please write one: {error.message}"
        ) from error
    return made


def _checked(name: str, source: str, *, html: bool) -> Compiled:
    """Compile what a format made; the author's own errors were found before."""
    try:
        return compile_template(source, html=html)
    except SandboxError as error:
        raise ContentError(name, f"This does not survive its format: {error.message}") from error
