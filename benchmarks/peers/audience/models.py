from __future__ import annotations

from typing import Any

from django.db import models
from nuntius.models import BaseSegment, BaseSubscriber


class Person(BaseSubscriber):
    first_name = models.CharField(max_length=100)
    city = models.CharField(max_length=100)
    unsubscribe_url = models.CharField(max_length=200)

    class Meta:
        app_label = "audience"

    def get_subscriber_data(self) -> dict[str, Any]:
        return {
            "email": self.email,
            "first_name": self.first_name,
            "city": self.city,
            "unsubscribe_url": self.unsubscribe_url,
        }


class Group(BaseSegment, models.Model):
    class Meta:
        app_label = "audience"

    def __str__(self) -> str:
        return "everybody"

    def get_subscribers_queryset(self) -> models.QuerySet[Person]:
        return Person.objects.all()
