"""The pictures of messages. Include them under any prefix; links follow it."""

from __future__ import annotations

from django.urls import path

from . import views

app_name = "sendonce_campaigns"

urlpatterns = [
    path("images/<uuid:key>.<slug:extension>", views.image, name="image"),
]
