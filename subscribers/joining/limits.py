"""Against mail bombing: how often a form may write to one mailbox, and how often one network and
one account may use forms.

Whoever asks holds the locks of the mailbox, the network and the account until their transaction
ends, so that requests at once are counted one after the other and none slips through between.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum

from django.db import connection

from ..addresses import erased_hashes, lower
from ..conf import conf
from ..models import Account, SignupAttempt

#: A mailbox is written to at most once in so many minutes, and so many times a day, whatever
#: forms and accounts were asked.
ADDRESS_WAIT_MINUTES = 15
ADDRESS_DAY = 3

#: The first of the two numbers of our advisory locks ("SGNU").
_NAMESPACE = 0x53474E55
_TABLE = SignupAttempt._meta.db_table
#: Domains whose mailboxes ignore dots in the local part.
_DOTLESS = frozenset({"gmail.com", "googlemail.com"})

# Read after the locks are held, so by a snapshot that has whatever the last holder wrote. The
# clock is the statement's: the transaction may have waited.
_COUNT = f"""
WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS at)
SELECT
    (SELECT count(*) FROM {_TABLE}, clock WHERE address_hash = ANY(%(mailbox)s)
        AND {_TABLE}.at > clock.at - %(wait)s * interval '1 minute' AND outcome = 'mailed'),
    (SELECT count(*) FROM {_TABLE}, clock WHERE address_hash = ANY(%(mailbox)s)
        AND {_TABLE}.at > clock.at - interval '1 day' AND outcome = 'mailed'),
    (SELECT count(*) FROM {_TABLE}, clock WHERE network = %(network)s
        AND {_TABLE}.at > clock.at - interval '1 hour'),
    (SELECT count(*) FROM {_TABLE}, clock WHERE network = %(network)s
        AND {_TABLE}.at > clock.at - interval '1 day'),
    (SELECT count(*) FROM {_TABLE}, clock WHERE account_id = %(account)s
        AND {_TABLE}.at > clock.at - interval '1 hour' AND outcome = 'mailed')"""


class Verdict(StrEnum):
    """What becomes of a request; the value is the ``outcome`` of its attempt."""

    MAILED = "mailed"
    #: This mailbox has been written to enough. Nobody may be told.
    ADDRESS = "address"
    #: The trap was sprung: a program filled the field that people don't see.
    TRAPPED = "trapped"
    #: Too many from this network; kept nowhere, so that waiting helps.
    NETWORK = "network"
    #: Too many for this account; staff are told.
    ACCOUNT = "account"


@dataclass(frozen=True)
class Limits:
    """The most of each in its time; see ``subscribers.conf``."""

    network_hour: int
    network_day: int
    account_hour: int
    address_recent: int = 1
    address_day: int = ADDRESS_DAY


@dataclass(frozen=True)
class Seen:
    """What was counted before this request: mails to the mailbox within the wait and the day,
    requests from the network within the hour and the day, mails of the account's hour."""

    address_recent: int = 0
    address_day: int = 0
    network_hour: int = 0
    network_day: int = 0
    account_hour: int = 0


def limits() -> Limits:
    return Limits(
        network_hour=conf.SIGNUP_NETWORK_HOUR,
        network_day=conf.SIGNUP_NETWORK_DAY,
        account_hour=conf.SIGNUP_ACCOUNT_HOUR,
    )


def decide(seen: Seen, most: Limits, *, trapped: bool = False) -> Verdict:
    """Pure. What is answered openly comes first: it then says nothing about an address."""
    if seen.network_hour >= most.network_hour or seen.network_day >= most.network_day:
        return Verdict.NETWORK
    if trapped:
        return Verdict.TRAPPED
    if seen.account_hour >= most.account_hour:
        return Verdict.ACCOUNT
    if seen.address_recent >= most.address_recent or seen.address_day >= most.address_day:
        return Verdict.ADDRESS
    return Verdict.MAILED


def mailbox(email: str) -> str:
    """The mailbox behind an address as far as one can tell: without a ``+tag``, and without dots
    where the provider ignores them. For counting only; who is who is ``email_lower``."""
    local, _, domain = lower(email).rpartition("@")
    local = local.partition("+")[0] or local
    if domain in _DOTLESS:
        local, domain = local.replace(".", "") or local, "gmail.com"
    return f"{local}@{domain}"


def attempt(account: Account, email: str, network: str, *, trapped: bool = False) -> Verdict:
    """Count a request and say what becomes of it. Only inside a transaction, which keeps others
    of the same mailbox, network or account waiting until it ends."""
    # Counted under every key: a rotation gives nobody's mailbox away.
    boxes = erased_hashes(mailbox(email))
    box = boxes[0]
    _lock(f"address:{box}", f"network:{network}", f"account:{account.pk}")
    with connection.cursor() as cursor:
        cursor.execute(
            _COUNT,
            {
                "mailbox": boxes,
                "network": network,
                "account": account.pk,
                "wait": ADDRESS_WAIT_MINUTES,
            },
        )
        verdict = decide(Seen(*cursor.fetchone()), limits(), trapped=trapped)
    if verdict is not Verdict.NETWORK:
        SignupAttempt.objects.create(
            account=account, address_hash=box, network=network, outcome=verdict.value
        )
    return verdict


def _lock(*names: str) -> None:
    """Advisory locks of this transaction, in an order that all agree on."""
    keys = {
        int.from_bytes(hashlib.blake2b(name.encode(), digest_size=4).digest(), signed=True)
        for name in names
    }
    with connection.cursor() as cursor:
        for key in sorted(keys):
            cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [_NAMESPACE, key])
