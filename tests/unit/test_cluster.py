"""What a sender thinks of a PostgreSQL server, from the facts alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sending.cluster import Cluster, ClusterRefused, judge

SOUND = Cluster(
    version=160004,
    fsync=True,
    full_page_writes=True,
    in_recovery=False,
    identity=("7300000000000000001", 1),
    asynchronous_standbys=0,
    synchronous_standby_names="",
)


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"version": 130022}, "PostgreSQL 14 or newer"),
        ({"version": 139999}, "PostgreSQL 14 or newer"),
        ({"fsync": False}, "set fsync = on"),
        ({"in_recovery": True}, "must name the primary"),
        ({"in_recovery": True, "identity": None}, "is a standby"),
        ({"fsync": False, "full_page_writes": False}, "fsync is off"),
    ],
)
def test_what_can_not_keep_the_promise_is_refused(facts: dict[str, Any], words: str) -> None:
    with pytest.raises(ClusterRefused, match=words) as caught:
        judge(replace(SOUND, **facts))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({}, []),
        ({"version": 140000}, []),
        ({"identity": None}, []),
        ({"full_page_writes": False}, ["full_page_writes"]),
        ({"asynchronous_standbys": 1}, ["asynchronous"]),
        ({"asynchronous_standbys": 2, "synchronous_standby_names": "ANY 1 (*)"}, []),
        ({"synchronous_standby_names": "ANY 1 (*)"}, []),
        (
            {"full_page_writes": False, "asynchronous_standbys": 1},
            ["full_page_writes", "asynchronous"],
        ),
    ],
)
def test_what_can_go_wrong_is_warned_of(facts: dict[str, Any], words: list[str]) -> None:
    warnings = judge(replace(SOUND, **facts))
    assert len(warnings) == len(words)
    assert all(word in warning for word, warning in zip(words, warnings, strict=True))
