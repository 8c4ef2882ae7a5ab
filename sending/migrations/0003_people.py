"""Indexes by which a person's sends and events are found, for their copy and their erasure."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("sendonce_campaigns", "0002_private_contents"),
        ("sendonce_sending", "0002_providers_and_limits"),
        ("sendonce_subscribers", "0003_people"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="providerevent",
            index=models.Index(
                models.Func("recipient", template='lower(%(expressions)s COLLATE "C")'),
                condition=models.Q(("recipient", ""), _negated=True),
                name="sendonce_provider_recipient",
            ),
        ),
        migrations.AddIndex(
            model_name="send",
            index=models.Index(
                condition=models.Q(("email_hash__isnull", False)),
                fields=["email_hash"],
                name="sendonce_send_erased",
            ),
        ),
        migrations.AddIndex(
            model_name="send",
            index=models.Index(
                condition=models.Q(("content__isnull", False)),
                fields=["content"],
                name="sendonce_send_content",
            ),
        ),
    ]
