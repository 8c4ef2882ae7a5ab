"""The page for whoever has unsubscribed from everything."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from ..models import SignupForm, Subscriber
from ..pages import about


def farewell(request: HttpRequest, person: Subscriber) -> HttpResponse:
    """What holds now, and the account's oldest open sign-up form: only a new sign-up of theirs
    brings somebody back who pressed by mistake."""
    form = SignupForm.objects.filter(account=person.account, is_open=True).order_by("pk").first()
    link = form and reverse("sendonce:signup", args=[person.account.slug, form.slug])
    context = {"signup": form, "signup_link": link}
    return about(request, "unsubscribed.html", person, context=context)
