from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("sendonce_sending", "0007_sender")]

    operations = [
        migrations.AddField(
            model_name="worker",
            name="sessions_a_lane",
            field=models.PositiveSmallIntegerField(default=1, db_default=1),
        ),
    ]
