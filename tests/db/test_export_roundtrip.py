"""What is exported is imported as it was, whatever people are called."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from subscribers.exporting import export_csv
from subscribers.importing import Options, import_file
from subscribers.models import AttributeDefinition, Segment, Subscriber
from tests.factories import AccountFactory, SegmentFactory

CHOICES = ["Gold", "-silver", "=x", "a;b", "1"]
DEFINITIONS = {
    "visits": ("number", []),
    "born": ("date", []),
    "vip": ("boolean", []),
    "plan": ("choice", CHOICES),
    "note": ("text", []),
}

#: What PostgreSQL can hold as text and import does not take for blanks around a value.
TEXTS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20),
    st.text(st.sampled_from("'\"=+-@;|,\t\r\n a\uff1d\u00a0"), max_size=8),
).map(str.strip)
ATTRIBUTES = st.fixed_dictionaries(
    {},
    optional={
        "visits": st.one_of(
            st.integers(-(10**18), 10**18),
            st.floats(allow_nan=False, allow_infinity=False, min_value=-1e15, max_value=1e15),
        ),
        "born": st.dates().map(lambda day: day.isoformat()),
        "vip": st.booleans(),
        "plan": st.sampled_from(CHOICES),
        "note": TEXTS.filter(bool),
        "other": TEXTS.filter(bool),
        "attribute:x": TEXTS.filter(bool),
    },
)
PEOPLE = st.lists(
    st.fixed_dictionaries(
        {
            "attributes": ATTRIBUTES,
            "status": st.sampled_from(Subscriber.Status.values),
            "locale": st.sampled_from(["", "fr", "pt-BR"]),
            "timezone": st.sampled_from(["", "Europe/Paris"]),
            "consent_source": TEXTS.filter(bool),
        }
    ),
    min_size=1,
    max_size=5,
)
SAME = ("email", "status", "attributes", "locale", "timezone", "consent_source")


def segment() -> Segment:
    made = SegmentFactory.create(account=AccountFactory.create())
    AttributeDefinition.objects.bulk_create(
        AttributeDefinition(account=made.account, key=key, kind=kind, choices=choices)
        for key, (kind, choices) in DEFINITIONS.items()
    )
    return made


def known(place: Segment) -> list[dict[str, Any]]:
    return list(Subscriber.objects.filter(account=place.account).order_by("email").values(*SAME))


@pytest.mark.django_db
@settings(
    deadline=None,
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(PEOPLE, st.sampled_from(["ymd", "dmy", "mdy"]))
def test_people_survive_export_and_import(people: list[dict[str, Any]], order: str) -> None:
    was, now = segment(), segment()
    Subscriber.objects.bulk_create(
        Subscriber(account=was.account, email=f"+p{number}@example.org", **person)
        for number, person in enumerate(people)
    )
    target = io.StringIO(newline="")
    export_csv(target, account=was.account)
    report = import_file(
        io.BytesIO(target.getvalue().encode()),
        account=now.account,
        segment=now,
        options=Options(confirmed=True, date_order=order),
    )
    assert (report.rejected, report.imported) == (0, len(people))
    assert known(now) == known(was)
