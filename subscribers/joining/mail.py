"""The confirmation mail: its words, and its place in the queue.

Nothing that was typed into the form is in it. Whoever types a stranger's address could otherwise
have us deliver an advertisement as the stranger's "first name".
"""

from __future__ import annotations

import logging
import re
from datetime import timedelta

from django.db import transaction
from django.utils import timezone, translation
from django.utils.html import escape
from django.utils.translation import gettext

from .. import hooks
from ..models import Signup, SignupForm
from ..tokens import Kind, link, make_token

log = logging.getLogger("sendonce.signups")

KIND = "confirm"
URL_FIELD = "{{ confirm_url }}"
#: A mail that could not leave for so long is not sent any more; the form can be used again.
LEAVES_WITHIN = timedelta(days=3)

_TAG = re.compile(r"(\{\{.*?\}\}|\{%.*?%\})", re.DOTALL)
_URL_TAG = re.compile(r"\{\{\s*confirm_url\s*\}\}")
_ADDRESS_TAG = re.compile(r"\{\{\s*account\.postal_address\s*\}\}")
#: It has lines of its own.
_ADDRESS = "{{ account.postal_address|linebreaksbr }}"
_LINK = '<a href="{{ confirm_url }}">{{ confirm_url }}</a>'
_BUTTON = (
    '<p style="margin:24px 0"><a href="{{{{ confirm_url }}}}" style="display:inline-block;'
    "padding:14px 24px;border-radius:6px;background:#1f4e8c;color:#ffffff;font-weight:bold;"
    'text-decoration:none">{label}</a></p>'
)
_DOCUMENT = """\
<!doctype html>
<html lang="{language}"{direction}>
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"></head>
<body style="margin:0;padding:24px;color:#1f2328;background:#ffffff;\
font:16px/1.5 sans-serif"><div style="max-width:36em">
{body}
</div></body>
</html>
"""


def queue_mail(signup: Signup, form: SignupForm, language: str) -> int | None:
    """Queue the sign-up's next confirmation mail in the caller's transaction; its id, or
    ``None`` where nothing is installed that sends.

    Words of the form's own that can't be sent must not cost people: then the usual ones go, and
    the log says so.
    """
    if not (form.subject or form.body):
        return hooks.send_message(message(signup, form, language))
    try:
        with transaction.atomic():
            return hooks.send_message(message(signup, form, language))
    except ValueError as error:
        log.error("The confirmation mail of the sign-up form %s can't be sent: %s", form.pk, error)
        return hooks.send_message(message(signup, form, language, usual=True))


def message(
    signup: Signup, form: SignupForm, language: str, *, usual: bool = False
) -> hooks.Message:
    """The mail, in the words of the form or, where it has none, in the usual ones."""
    with translation.override(language):
        subject = ("" if usual else form.subject) or usual_subject()
        text = ("" if usual else form.body) or usual_text()
        html = as_html(text, label=gettext("Yes, sign me up"))
    return hooks.Message(
        account=signup.account,
        kind=KIND,
        key=f"{signup.pk}-{signup.mails}",
        to=signup.email or "",
        subject=subject,
        text=text.replace("\r\n", "\n"),
        html=html,
        context={"confirm_url": confirm_url(signup)},
        expires=timezone.now() + LEAVES_WITHIN,
    )


def confirm_url(signup: Signup) -> str:
    """The link that confirms; the same in every mail of this sign-up."""
    return link(make_token(Kind.CONFIRM, signup.pk, None))


def usual_subject() -> str:
    return gettext("Please confirm: %(name)s") % {"name": "{{ account.name }}"}


def usual_text() -> str:
    """The usual words in the active language, a merge template."""
    paragraphs = (
        gettext("Hello,"),
        gettext(
            "Somebody, probably you, has asked for mail from %(name)s at this address. If it was "
            "you, please confirm it:"
        )
        % {"name": "{{ account.name }}"},
        URL_FIELD,
        gettext(
            "If it was not you, there is nothing to do: without your confirmation you are on no "
            "list."
        ),
        "{{ account.name }}\n{{ account.postal_address }}",
    )
    return "\n\n".join(paragraphs) + "\n"


def as_html(text: str, *, label: str) -> str:
    """A plain text template as a simple page: paragraphs, links that can be pressed, and a button
    where the confirmation link is a paragraph of its own. Merge tags stay what they are."""
    paragraphs = re.split(r"\n\s*\n", text.replace("\r\n", "\n").strip())
    language = translation.get_language() or "en"
    return _DOCUMENT.format(
        language=language,
        direction=' dir="rtl"' if translation.get_language_bidi() else "",
        body="\n".join(_paragraph(one.strip(), label) for one in paragraphs),
    )


def _paragraph(text: str, label: str) -> str:
    if _URL_TAG.fullmatch(text):
        return _BUTTON.format(label=escape(label))
    pieces = [
        _in_words(piece) if number % 2 == 0 else _as_html_tag(piece)
        for number, piece in enumerate(_TAG.split(text))
    ]
    return f"<p>{''.join(pieces)}</p>"


def _as_html_tag(tag: str) -> str:
    return _ADDRESS_TAG.sub(_ADDRESS, _URL_TAG.sub(_LINK, tag))


def _in_words(piece: str) -> str:
    return escape(piece).replace("\n", "<br>\n")
