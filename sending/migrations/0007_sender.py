"""What staff read of a worker is "sender"; the database stays as it is."""

from django.db import migrations, models
from django.db.models.deletion import SET_NULL


class Migration(migrations.Migration):
    dependencies = [("sendonce_sending", "0006_lists")]

    operations = [
        migrations.AlterModelOptions(
            name="worker",
            options={"ordering": ["-id"], "verbose_name": "sender"},
        ),
        migrations.AlterField(
            model_name="send",
            name="worker",
            field=models.ForeignKey(
                blank=True,
                db_constraint=False,
                db_index=False,
                null=True,
                on_delete=SET_NULL,
                related_name="sends",
                to="sendonce_sending.worker",
                verbose_name="sender",
            ),
        ),
    ]
