"""For walks of hundreds of requests by the same person, whose rights do not change meanwhile."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from django.contrib.auth.backends import ModelBackend


class OnePerson(ModelBackend):
    """Reads a user, and so their rights, once: to read them for every request is half a walk."""

    known: ClassVar[dict[int, Any]] = {}

    def get_user(self, user_id: int) -> Any:
        if user_id not in self.known:
            self.known[user_id] = super().get_user(user_id)
        return self.known[user_id]


@pytest.fixture(autouse=True)
def one_person(settings: Any) -> None:
    """In a module that imports it: everybody is read once a test."""
    OnePerson.known.clear()
    settings.AUTHENTICATION_BACKENDS = [f"{__name__}.{OnePerson.__name__}"]
    settings.SESSION_ENGINE = "django.contrib.sessions.backends.signed_cookies"
