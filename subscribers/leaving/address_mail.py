"""The two mails of a change of address: the question to the new one, the notice to the old."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone, translation
from django.utils.translation import gettext

from .. import hooks
from ..addresses import AddressError, normalize
from ..joining.mail import KIND, LEAVES_WITHIN, URL_FIELD, as_html, confirm_url
from ..languages import language_for
from ..models import Signup, Subscriber
from ..pages import masked
from ..tokens import preferences_url

#: The notice is worth something for as long as this.
NOTICE_LEAVES_WITHIN = timedelta(days=14)
_NAME = "{{ account.name }}"
_SIGNED = "{{ account.name }}\n{{ account.postal_address }}"


def queue_confirmation(signup: Signup, language: str) -> int | None:
    """Queue the question whether this address is the new one. Nothing that was typed but the
    address itself is in it."""
    with translation.override(language):
        text = _joined(
            gettext("Hello,"),
            gettext(
                "Somebody, probably you, wants to get the mailings from %(name)s at this address "
                "instead of an earlier one. If it was you, please confirm it:"
            )
            % {"name": _NAME},
            URL_FIELD,
            gettext(
                "If it was not you, there is nothing to do: without your confirmation "
                "nothing changes."
            ),
            _SIGNED,
        )
        html = as_html(text, label=gettext("Yes, this is my new address"))
        subject = gettext("Please confirm your new address: %(name)s") % {"name": _NAME}
    return hooks.send_message(
        hooks.Message(
            account=signup.account,
            kind=KIND,
            key=f"{signup.pk}-{signup.mails}",
            to=signup.email or "",
            subject=subject,
            text=text,
            html=html,
            context={"confirm_url": confirm_url(signup)},
            expires=timezone.now() + LEAVES_WITHIN,
            subscriber=signup.subscriber,
        )
    )


def queue_notice(signup: Signup, old: Subscriber, email: str, *, merged: bool) -> int | None:
    """Queue word to the old address that another one takes its place, and how to undo it.
    ``old`` as it was before; where that address can't be written to, nobody is told."""
    try:
        to = normalize(old.email)
    except AddressError:
        return None
    with translation.override(language_for(old.locale)):
        undo = (
            gettext("If it was not you, please reply to this message.")
            if merged
            else gettext("If it was not you, change it back here, and tell us by a reply:")
        )
        text = _joined(
            gettext("Hello,"),
            gettext(
                "the mailings from %(name)s come to another address from now on, as was asked for "
                "on your preferences page and confirmed at the new address: %(address)s"
            )
            % {"name": _NAME, "address": "{{ new_address }}"},
            undo,
            *([] if merged else ["{{ preferences_url }}"]),
            _SIGNED,
        )
        subject = gettext("Your address was changed: %(name)s") % {"name": _NAME}
    return hooks.send_message(
        hooks.Message(
            account=old.account,
            kind="address-changed",
            key=str(signup.pk),
            to=to,
            subject=subject,
            text=text,
            context={
                "new_address": masked(email),
                "preferences_url": preferences_url(old.pk, None),
            },
            expires=timezone.now() + NOTICE_LEAVES_WITHIN,
            subscriber=None if merged else old,
        )
    )


def _joined(*paragraphs: str) -> str:
    return "\n\n".join(paragraphs) + "\n"
