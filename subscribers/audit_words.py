"""What the verbs of the audit trail are in words. Each app registers its own in ``ready()``."""

from __future__ import annotations

from collections.abc import Mapping

_words: dict[str, str] = {
    "account.add": "added the account",
    "account.change": "changed the account",
    "account.delete": "deleted the account",
    "attribute.change": "changed an attribute",
    "attribute.define": "defined an attribute",
    "attribute.delete": "deleted an attribute's definition",
    "import.canceled": "canceled an import",
    "import.done": "imported people",
    "import.failed": "an import failed",
    "import.start": "started an import",
    "membership.add": "put somebody into a segment",
    "membership.leave": "took somebody out of a segment",
    "person.erase": "erased a person",
    "person.export": "took a person's data out",
    "segment.add": "put people into a segment",
    "segment.change": "changed a segment",
    "segment.create": "added a segment",
    "segment.delete": "deleted a segment",
    "segment.remove": "took people out of a segment",
    "signup_form.add": "added a sign-up form",
    "signup_form.change": "changed a sign-up form",
    "signup_form.delete": "deleted a sign-up form",
    "subscriber.add": "added a person",
    "subscriber.change": "changed a person",
    "subscriber.confirm": "confirmed a person",
    "subscriber.delete": "deleted a person",
    "subscriber.export": "took people out as a file",
    "subscriber.unsubscribe": "unsubscribed a person",
    "suppression.add": "suppressed an address",
    "suppression.export": "took the suppression list out",
    "suppression.import": "imported suppressions",
    "suppression.lift": "a new sign-up lifted a suppression",
    "suppression.release": "released an address",
}


def register(words: Mapping[str, str]) -> None:
    """Add another app's verbs, or replace some."""
    _words.update(words)


def words(verb: str) -> str:
    """``campaign.pause`` as ``paused a campaign``; of a verb that nobody registered what can be
    read out of it: ``shop.close_till`` is ``shop: close till``."""
    return _words.get(verb) or verb.replace(".", ": ").replace("_", " ")
