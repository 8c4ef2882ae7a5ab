from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True
    operations = [
        migrations.CreateModel(
            name="Group",
            fields=[("id", models.BigAutoField(primary_key=True))],
        ),
        migrations.CreateModel(
            name="Person",
            fields=[
                ("id", models.BigAutoField(primary_key=True)),
                ("email", models.EmailField(max_length=255)),
                ("subscriber_status", models.IntegerField()),
                ("first_name", models.CharField(max_length=100)),
                ("city", models.CharField(max_length=100)),
                ("unsubscribe_url", models.CharField(max_length=200)),
            ],
        ),
    ]
