"""Lists of the admin over millions of rows, latest first. Made beside who writes: a migration that
was interrupted leaves an invalid index, to be dropped by hand before it is run again."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("sendonce_subscribers", "0006_roles")]

    operations = [
        AddIndexConcurrently(
            model_name="auditevent",
            index=models.Index(fields=["verb", "-id"], name="sendonce_audit_verb"),
        ),
        AddIndexConcurrently(
            model_name="auditevent",
            index=models.Index(
                fields=["account", "verb", "-id"], name="sendonce_audit_account_verb"
            ),
        ),
        AddIndexConcurrently(
            model_name="signup",
            index=models.Index(fields=["account", "-id"], name="sendonce_signup_account"),
        ),
        AddIndexConcurrently(
            model_name="signupattempt",
            index=models.Index(fields=["account", "-id"], name="sendonce_attempt_account"),
        ),
        AddIndexConcurrently(
            model_name="signupattempt",
            index=models.Index(fields=["outcome", "-id"], name="sendonce_attempt_outcome"),
        ),
        AddIndexConcurrently(
            model_name="suppression",
            index=models.Index(fields=["account", "-id"], name="sendonce_suppression_list"),
        ),
        AddIndexConcurrently(
            model_name="suppression",
            index=models.Index(fields=["reason", "-id"], name="sendonce_suppression_reason"),
        ),
    ]
