"""Lists of the admin over millions of rows: partial indexes, which a sent message of a campaign is
in none of. Made beside the senders: a migration that was interrupted leaves an invalid index, to be
dropped by hand before it is run again."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("sendonce_sending", "0005_counters")]

    operations = [
        migrations.AddField(
            model_name="worker",
            name="only_campaign",
            field=models.BigIntegerField(blank=True, null=True),
        ),
        AddIndexConcurrently(
            model_name="send",
            index=models.Index(
                condition=Q(queue__gte=5),
                fields=["campaign", "queue", "id"],
                name="sendonce_send_ended",
            ),
        ),
        AddIndexConcurrently(
            model_name="send",
            index=models.Index(
                condition=Q(campaign__isnull=True),
                fields=["account", "id"],
                name="sendonce_send_single",
            ),
        ),
        AddIndexConcurrently(
            model_name="deliveryevent",
            index=models.Index(
                condition=Q(
                    kind__in=(
                        "bounced",
                        "failed",
                        "in_doubt",
                        "retry",
                        "hard_bounce",
                        "soft_bounce",
                        "rejected",
                        "deferred",
                    )
                ),
                fields=["account", "-id"],
                name="sendonce_event_trouble",
            ),
        ),
        AddIndexConcurrently(
            model_name="providerevent",
            index=models.Index(fields=["esp", "-id"], name="sendonce_provider_esp"),
        ),
        AddIndexConcurrently(
            model_name="providerevent",
            index=models.Index(
                condition=~Q(result__in=("", "applied")),
                fields=["result", "-id"],
                name="sendonce_provider_result",
            ),
        ),
    ]
