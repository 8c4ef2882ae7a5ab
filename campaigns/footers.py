"""What every bulk message must say, as a footer says it: the way out, the postal address; pure."""

from __future__ import annotations

from django.conf import settings
from django.utils import translation
from django.utils.html import escape
from django.utils.translation import gettext

UNSUBSCRIBE_FIELD = "unsubscribe_url"
ADDRESS_FIELD = "account.postal_address"


def address_lines(address: str) -> list[str]:
    """The lines of a postal address that say something. Pure."""
    return [line for line in map(str.strip, address.splitlines()) if line]


def html_footer(missing: frozenset[str]) -> str:
    """HTML that prints the ``missing`` fields."""
    parts = []
    if ADDRESS_FIELD in missing:
        parts.append(
            "{% if account.postal_address %}{{ account.postal_address|linebreaksbr }}{% endif %}"
        )
    if UNSUBSCRIBE_FIELD in missing:
        parts.append(
            f'<a href="{{{{ unsubscribe_url }}}}" style="color:#57606a">'
            f"{escape(_footer_words())}</a>"
        )
    return (
        '<div style="padding:24px 16px;text-align:center;font-family:Helvetica,Arial,sans-serif;'
        f'font-size:12px;line-height:1.5;color:#57606a">{"<br>".join(parts)}</div>'
    )


def text_footer(missing: frozenset[str]) -> str:
    """Likewise of a text part."""
    footer = "\n\n--------------------\n"
    if ADDRESS_FIELD in missing:
        footer += "{% if account.postal_address %}{{ account.postal_address }}\n{% endif %}"
    if UNSUBSCRIBE_FIELD in missing:
        footer += f"{_footer_words()}: {{{{ unsubscribe_url }}}}\n"
    return footer


def _footer_words() -> str:
    # The installation's language, not that of whoever approves: the same draft compiles to the
    # same content on every machine.
    with translation.override(settings.LANGUAGE_CODE):
        return gettext("Unsubscribe")
