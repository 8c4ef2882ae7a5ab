"""A transport's sessions are shared by the workers alive."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from sending import clock
from sending.limits.admission import Limits
from sending.models import Worker
from tests.factories import WorkerFactory

from .limited import configured

pytestmark = pytest.mark.django_db


def _worker(**fields: Any) -> Worker:
    fields = {"started": Now() - timedelta(minutes=5), "seen": Now(), **fields}
    made: Worker = WorkerFactory.create(**fields)
    return made


def test_sessions_are_shared_by_the_workers_alive() -> None:
    with configured(connections=5):
        first, second = _worker(), _worker()
        _worker(seen=Now() - timedelta(minutes=1))
        _worker(ended=Now())
        limits = Limits()
        assert limits.shares.may_hold("relay") == 0, "it does not know the others yet"
        limits.refresh(first.pk)
        assert (limits.shares.may_hold("relay"), limits.shares.may_hold("other")) == (3, None)
        limits.refresh(second.pk)
        assert limits.shares.may_hold("relay") == 2


def test_a_worker_opens_what_the_others_have_let_go_of() -> None:
    with configured(connections=4):
        old, young = _worker(), _worker(started=Now())
        mine, its = Limits(), Limits()
        mine.shares.held = lambda: {"relay": 4, "other": 0}
        mine.refresh(old.pk)
        old.refresh_from_db()
        assert old.sessions == {"relay": 4}
        assert mine.shares.keeps("relay") == 2
        its.refresh(young.pk)
        assert its.shares.may_hold("relay") == 0
        Worker.objects.filter(pk=young.pk).update(started=Now() - timedelta(seconds=4))
        its.refresh(young.pk)
        assert its.shares.may_hold("relay") == 0, "none was let go"
        mine.shares.held = lambda: {"relay": 2}
        mine.refresh(old.pk)
        its.refresh(young.pk)
        assert its.shares.may_hold("relay") == 2


def test_who_has_not_looked_for_long_opens_none(monkeypatch: pytest.MonkeyPatch) -> None:
    with configured(connections=4):
        limits = Limits()
        limits.refresh(_worker().pk)
        assert limits.shares.may_hold("relay") == 4
        later = clock.now() + 60
        monkeypatch.setattr(clock, "now", lambda: later)
        assert (limits.shares.may_hold("relay"), limits.shares.keeps("relay")) == (0, 4)
