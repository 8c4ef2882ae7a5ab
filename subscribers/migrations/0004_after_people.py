"""What the models can't say: a table without write-ahead log, and what is known already.

Attributes that people have are declared as texts; segments that were there before their members
could see them stay out of their sight until staff say otherwise; who has left them has a change.
"""

from __future__ import annotations

from django.db import migrations

from subscribers.models.attributes import KEY, RESERVED

_KEYS = """
SELECT DISTINCT s.account_id, k.key
FROM sendonce_subscribers_subscriber s
CROSS JOIN LATERAL jsonb_object_keys(
    CASE jsonb_typeof(s.attributes) WHEN 'object' THEN s.attributes ELSE '{}' END) AS k(key)
ORDER BY 1, 2"""


# Who left before changes were kept has one, so that the history of a segment begins with it.
_EARLIER_LEAVERS = """
INSERT INTO sendonce_subscribers_membershipchange (segment_id, subscriber_id, kind, at, source)
SELECT segment_id, subscriber_id, 'left', left_at, ''
FROM sendonce_subscribers_membership WHERE left_at IS NOT NULL"""


def declare(apps, schema_editor):
    definition = apps.get_model("sendonce_subscribers", "AttributeDefinition")
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(_KEYS)
        found = [
            (account_id, key)
            for account_id, key in cursor.fetchall()
            if KEY.match(key) and key.lower() not in RESERVED
        ]
    definition.objects.bulk_create(
        [definition(account_id=account_id, key=key) for account_id, key in found],
        ignore_conflicts=True,
        batch_size=1000,
    )
    apps.get_model("sendonce_subscribers", "Segment").objects.update(public=False)


class Migration(migrations.Migration):
    dependencies = [("sendonce_subscribers", "0003_people")]

    operations = [
        migrations.RunSQL(
            "ALTER TABLE sendonce_subscribers_importrow SET UNLOGGED",
            "ALTER TABLE sendonce_subscribers_importrow SET LOGGED",
        ),
        migrations.RunPython(declare, migrations.RunPython.noop),
        migrations.RunSQL(_EARLIER_LEAVERS, migrations.RunSQL.noop),
    ]
