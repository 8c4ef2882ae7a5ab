"""What the tests of joining share: a form, somebody who fills it in, and the mail that came."""

from __future__ import annotations

import re
from typing import Any

from django.test import Client

from sending.models import Send
from subscribers.models import AttributeDefinition, SignupForm
from tests.factories import AttributeDefinitionFactory, SignupFormFactory

#: A network of its own for everybody who asks: the limits are tested where they are tested.
_HOMES = iter(range(1, 60_000))


def network_of_its_own() -> str:
    number = next(_HOMES)
    return f"100.{64 + number // 250 % 64}.{number % 250}.7"


def form_with_fields() -> SignupForm:
    """A form that asks for one attribute of each kind; the account has one more."""
    made = SignupFormFactory.create(
        account__name="Acme & Söhne",
        name="Our <letter>",
        intro="Once a month.\n\nNo more.",
        consent_text="Send me <it>.\nI can leave.",
        fields=["color", "first_name", "age", "born", "vip"],
    )
    for key, kind, choices in (
        ("first_name", AttributeDefinition.Kind.TEXT, []),
        ("age", AttributeDefinition.Kind.NUMBER, []),
        ("born", AttributeDefinition.Kind.DATE, []),
        ("vip", AttributeDefinition.Kind.BOOLEAN, []),
        ("color", AttributeDefinition.Kind.CHOICE, ["red", "blue & green"]),
        ("secret", AttributeDefinition.Kind.TEXT, []),
    ):
        AttributeDefinitionFactory.create(account=made.account, key=key, kind=kind, choices=choices)
    return made


def address_of(form: SignupForm, ending: str = "/") -> str:
    return f"/s/{form.account.slug}/{form.slug}{ending}"


def visitor(**options: Any) -> Client:
    """A browser in a network of its own; it has no cookies and CSRF checks are on."""
    return Client(enforce_csrf_checks=True, REMOTE_ADDR=network_of_its_own(), **options)


def sign_up(form: SignupForm, email: str, web: Any = None, **more: Any) -> Any:
    return (web or visitor()).post(address_of(form), {"email": email, **more})


def mails() -> list[Send]:
    return list(Send.objects.filter(campaign=None).select_related("content").order_by("pk"))


def link_in(send: Send) -> str:
    """The path behind the mail's link."""
    context: Any = send.context
    found = re.search(r"/u/[A-Za-z0-9_-]{32}", context["confirm_url"])
    assert found is not None
    return found[0]


def asked(email: str = "ann@example.org", **form: Any) -> tuple[SignupForm, str]:
    """A form, and the path of the link that somebody got who filled it in."""
    made = SignupFormFactory.create(**form)
    assert sign_up(made, email).status_code == 200
    return made, link_in(mails()[-1])
