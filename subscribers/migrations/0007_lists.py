"""Lists of the admin over millions of rows, latest first. Made beside who writes: a migration that
was interrupted leaves an invalid index, to be dropped by hand before it is run again."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from django.db.models import F, Q
from django.db.models.functions import Collate


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
        AddIndexConcurrently(
            model_name="suppression",
            index=models.Index(
                fields=["expires", "id"],
                condition=Q(expires__isnull=False),
                name="sendonce_suppression_expires",
            ),
        ),
        AddIndexConcurrently(
            model_name="suppression",
            index=models.Index(Collate("email_lower", "C"), name="sendonce_suppression_search"),
        ),
        AddIndexConcurrently(
            model_name="suppression",
            index=models.Index(
                fields=["email_hash"],
                condition=Q(email_hash__isnull=False),
                name="sendonce_suppression_erased",
            ),
        ),
        AddIndexConcurrently(
            model_name="subscriber",
            index=models.Index(Collate("email_lower", "C"), name="sendonce_subscriber_search"),
        ),
        AddIndexConcurrently(
            model_name="signup",
            index=models.Index(Collate("email_lower", "C"), name="sendonce_signup_search"),
        ),
        AddIndexConcurrently(
            model_name="signup",
            index=models.Index(
                fields=["-id"], condition=Q(kind="address"), name="sendonce_signup_changes"
            ),
        ),
        AddIndexConcurrently(
            model_name="membership",
            index=models.Index(
                fields=["-id"],
                condition=Q(left_at__isnull=False),
                name="sendonce_membership_left",
            ),
        ),
        AddIndexConcurrently(
            model_name="membershipchange",
            index=models.Index(fields=["kind", "-id"], name="sendonce_membershipchange_kind"),
        ),
        AddIndexConcurrently(
            model_name="auditevent",
            index=models.Index(fields=["at"], name="sendonce_audit_at"),
        ),
        AddIndexConcurrently(
            model_name="auditevent",
            index=models.Index(
                Collate("subject_lower", "C"), F("id").desc(), name="sendonce_audit_search"
            ),
        ),
        AddIndexConcurrently(
            model_name="auditevent",
            index=models.Index(
                fields=["subject_hash"],
                condition=~Q(subject_hash=""),
                name="sendonce_audit_erased",
            ),
        ),
    ]
