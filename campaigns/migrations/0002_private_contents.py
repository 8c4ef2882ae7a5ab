"""Contents that came with one message, and may be about its recipient."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("sendonce_campaigns", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="content",
            name="private",
            field=models.BooleanField(db_default=False, default=False, editable=False),
        ),
    ]
