"""Link tokens: short, opaque, unforgeable, for ever."""

from __future__ import annotations

import hmac
import string
from base64 import urlsafe_b64decode, urlsafe_b64encode

import pytest
from django.test import override_settings
from hypothesis import given, settings
from hypothesis import strategies as st

from subscribers.macs import Mac
from subscribers.tokens import (
    Kind,
    Links,
    Token,
    make_token,
    preferences_url,
    read_token,
    unsubscribe_url,
    web_url,
)

SAFE = set(string.ascii_letters + string.digits + "-_")
IDS = st.integers(0, 2**42 - 1)


def keys(*secrets: str, **more: object) -> override_settings:
    return override_settings(SENDONCE={"SECRET_KEYS": secrets, **more})


@given(st.sampled_from(Kind), IDS, IDS.filter(bool) | st.none())
@settings(derandomize=True, max_examples=100, deadline=None)
def test_carries_what_it_was_made_with(kind: Kind, person: int, campaign: int | None) -> None:
    token = make_token(kind, person, campaign)
    assert len(token) == 32
    assert set(token) <= SAFE
    assert read_token(token) == Token(kind, person, campaign)
    assert make_token(kind, person, campaign) == token


def test_any_changed_character_is_a_forgery() -> None:
    token = make_token(Kind.UNSUBSCRIBE, 7, 9)
    for place, character in enumerate(token):
        for other in SAFE - {character}:
            assert read_token(token[:place] + other + token[place + 1 :]) is None


@pytest.mark.parametrize(
    "garbage", ["", "x", "A" * 31, "A" * 32, "A" * 33, "é" * 32, "A" * 31 + "=", "A" * 31 + "\n"]
)
def test_garbage_is_no_token(garbage: str) -> None:
    assert read_token(garbage) is None


def test_neighbours_have_nothing_in_common() -> None:
    tokens = [make_token(Kind.UNSUBSCRIBE, person, 1) for person in range(200)]
    assert len({token[2:8] for token in tokens}) == len(tokens)


def test_old_keys_read_and_the_newest_signs() -> None:
    with keys("old"):
        old = make_token(Kind.UNSUBSCRIBE, 1, 2)
    with keys("new", "old"):
        assert read_token(old) == Token(Kind.UNSUBSCRIBE, 1, 2)
        new = make_token(Kind.UNSUBSCRIBE, 1, 2)
        assert new != old
    with keys("new"):
        assert read_token(new) == Token(Kind.UNSUBSCRIBE, 1, 2)
        assert read_token(old) is None
    with keys("other"):
        assert read_token(new) is None


#: Links that are in mail already sent. They must be read, and written, for ever: a change that
#: breaks one of these breaks the unsubscribe link of every message there is.
SENT = [
    ("ED2vfCvv-_jxlsmAR52h8MUXIzz_Gltk", Kind.UNSUBSCRIBE, 12345, 678),
    ("EOk6laV3lW5gkQ2prCtvAC6nqu0hkV_J", Kind.UNSUBSCRIBE, 2**42 - 1, None),
    ("EBRgr3D0mzC3ciCYGl_V2FCgZtcJd-g9", Kind.PREFERENCES, 12345, 678),
    ("EPL7YLqlh2JJeuSLSDJFxCum1cdgfugd", Kind.PREFERENCES, 2**42 - 1, None),
    ("EJWutdQ_r_2zIEOcsGlotM_bMJhn1t0-", Kind.WEB, 12345, 678),
    ("EKIqU_OmJtucA4VB0X12K3zVHslSGtsV", Kind.WEB, 2**42 - 1, None),
    ("EFp5WYQ4ghQz2-_v4A3GLpFM5j7jW59D", Kind.CONFIRM, 12345, 678),
    ("EKSoF16GbyY7SzcT5qyNycTGFE4iMTFs", Kind.CONFIRM, 2**42 - 1, None),
]


@pytest.mark.parametrize(("token", "kind", "person", "campaign"), SENT)
def test_a_link_in_last_years_mail_still_works(
    token: str, kind: Kind, person: int, campaign: int | None
) -> None:
    with keys("a newer key", "a key that never changes"):
        assert read_token(token) == Token(kind, person, campaign)
    with keys("a key that never changes"):
        assert make_token(kind, person, campaign) == token


def test_there_is_such_a_link_of_every_kind() -> None:
    assert {kind for _, kind, _, _ in SENT} == set(Kind)


def test_who_knows_all_ids_but_no_key_forges_nothing() -> None:
    """All that a database holds are the ids. A token is theirs only with a key of the settings:
    neither one made with another key nor one whose kind or person is changed in place."""
    with keys("the attacker's"):
        forged = make_token(Kind.UNSUBSCRIBE, 12345, 678)
    known = urlsafe_b64decode(SENT[0][0])
    with keys("a key that never changes"):
        assert read_token(forged) is None
        for place in range(len(known)):
            for bit in range(8):
                changed = bytearray(known)
                changed[place] ^= 1 << bit
                assert read_token(urlsafe_b64encode(bytes(changed)).decode()) is None


@pytest.mark.parametrize("ids", [(-1, 1), (1, -1), (2**42, 1), (1, 2**42)])
def test_ids_that_do_not_fit_are_refused(ids: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="can't hold"):
        make_token(Kind.WEB, *ids)


def test_links_fit_the_header() -> None:
    with keys("k", BASE_URL="https://newsletter.example.org"):
        link = unsubscribe_url(2**42 - 1, 2**42 - 1)
        assert link.startswith("https://newsletter.example.org/u/")
        assert len(f"<{link}>") <= 76
        assert preferences_url(1, 1) != unsubscribe_url(1, 1)


@given(IDS, IDS.filter(bool) | st.none())
@settings(derandomize=True, max_examples=50, deadline=None)
def test_links_for_many_are_those_for_one(person: int, campaign: int | None) -> None:
    with keys("k", "older"):
        links = Links()
        assert links.unsubscribe(person, campaign) == unsubscribe_url(person, campaign)
        assert links.preferences(person, campaign) == preferences_url(person, campaign)
        assert links.web(person, campaign) == web_url(person, campaign)


@given(st.binary(max_size=150), st.binary(max_size=200))
@settings(derandomize=True, max_examples=50, deadline=None)
def test_the_mac_is_the_standard_one(key: bytes, message: bytes) -> None:
    assert Mac(key).digest(message) == hmac.digest(key, message, "sha256")
