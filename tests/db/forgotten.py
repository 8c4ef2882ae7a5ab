"""A person made to forget by the ledger, and a search of the whole database for what stays."""

from __future__ import annotations

from django.db import connection, transaction

from sending.erasure import erase_personal_data
from subscribers.addresses import erased_hashes
from subscribers.models import Subscriber
from subscribers.suppression import suppress


def forget(person: Subscriber) -> dict[str, int]:
    """What the apps below do around the ledger's part, in its order."""
    with transaction.atomic():
        suppress(person.account_id, person.email, "erased")
        digest = erased_hashes(person.email)[0]
        counts = erase_personal_data(person.account_id, person.pk, person.email, digest)
        Subscriber.objects.filter(pk=person.pk).delete()
    return counts


def places_of(text: str) -> list[str]:
    """The columns, of any table and any kind, where ``text`` stands in any case."""
    found = []
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name, column_name FROM information_schema.columns"
            " WHERE table_schema = 'public' ORDER BY 1, 2"
        )
        for table, column in cursor.fetchall():
            cursor.execute(
                f'SELECT EXISTS (SELECT 1 FROM "{table}"'
                f' WHERE position(lower(%s) IN lower("{column}"::text)) > 0)',
                [text],
            )
            if cursor.fetchone()[0]:
                found.append(f"{table}.{column}")
    return found
