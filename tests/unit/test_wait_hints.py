"""The wait that a relay asks for in words."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sending.replies.wait_hints import LONGEST, SHORTEST, wait_hint


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        # greylisting servers
        ("4.7.1 Greylisting in action, please come back in 00:04:59", 299),
        ("4.7.1 Greylisted for 00:05:00 (see http://milter.example.org/)", 300),
        ("4.7.1 Greylisted, please try again in 256 seconds", 256),
        ("Greylisted, please try again in 300 seconds", 300),
        ("4.2.0 <a@example.org>: Greylisted, try again in 60s", 60),
        ("4.7.1 Please try again in 5 minutes (greylisting)", 300),
        ("greylisted, retry in 5 min", 300),
        ("Delayed: greylisted for 29 min and 30 s", 1770),
        ("Greylisted. Please wait at least 10 minutes before you retry", 600),
        ("This server greylists. In 5 minutes try again.", 300),
        ("come back in 00:02:00", 120),
        ("come back in 04:59", 299),
        # throttles
        ("4.7.0 Too many messages, try again after 1 hour", 3600),
        ("Please retry in 300 seconds", 300),
        ("rate limited, retry after 2 hours 30 minutes", 9000),
        ("4.4.5 Server busy, retry in 1.5 min", 90),
        ("Retry-After: 120", 120),
        ("too many requests, retry after 30", 30),
        ("Limit of 100 messages in 60 minutes reached, try again in 15 minutes", 900),
        ("Message deferred for 1 day", 86400),
        # other languages
        ("Bitte in 5 Minuten erneut versuchen", 300),
        ("Bitte versuchen Sie es in 30 Sekunden wieder", 30),
        ("Veuillez réessayer dans 5 minutes", 300),
        ("Vuelva a intentarlo en 10 minutos", 600),
        ("请在5分钟后重试", 300),
        ("请稍后 30 秒", 30),
        ("Повторите попытку через 10 минут", 600),
        ("Повторите через 1 час", 3600),
        # bounds
        ("try again in 0 seconds", SHORTEST),
        ("come back in 00:00:00", SHORTEST),
        ("try again in 0.2 s", SHORTEST),
        ("try again in 30 days", LONGEST),
        ("try again in 999999999 hours", LONGEST),
        # nothing is asked for
        ("4.2.0 Greylisted, see http://postgrey.example.org/help/example.org.html", None),
        ("4.7.1 Greylisted, please try again later", None),
        ("Only 100 messages in 60 minutes are taken", None),
        ("4.7.650 rate limited (S775)", None),
        ("User is over quota. 5 minutes were not enough", None),
        ("192.0.2.1 10:45:12 try again", None),
        ("try again in 5", None),
        ("try again in 5 moons", None),
        ("try again in -5 minutes", None),
        ("try again in 5minutes30", None),
        ("", None),
        (None, None),
        (b"Greylisted, please try again in 300 seconds", 300),
        ("请在5分钟后重试".encode("gb18030"), 300),
        (b"\xff\x00 retry in 7 seconds\r\n", 7),
        ("x" * 100_000 + " retry in 7 seconds", None),
    ],
)
def test_hint(text: Any, seconds: float | None) -> None:
    assert wait_hint(text) == seconds


@given(st.one_of(st.text(max_size=300), st.binary(max_size=300)))
def test_garbage_gives_none_or_a_bounded_wait(text: str | bytes) -> None:
    found = wait_hint(text)
    assert found is None or SHORTEST <= found <= LONGEST


@given(st.integers(0, 10**9), st.sampled_from(["s", "seconds", "min", "minutes", "hours", "days"]))
def test_any_number_is_bounded(number: int, unit: str) -> None:
    found = wait_hint(f"Greylisted, try again in {number} {unit}")
    assert found is None or SHORTEST <= found <= LONGEST
    assert (found is None) == (number >= 10**9)
