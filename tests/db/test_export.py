from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from subscribers.exporting import count_people, export_csv
from subscribers.importing import Options, import_file
from subscribers.models import Account, Segment, Subscriber, Suppression
from subscribers.suppression import suppress
from tests.factories import (
    AccountFactory,
    AttributeDefinitionFactory,
    MembershipFactory,
    SegmentFactory,
    SubscriberFactory,
)

pytestmark = pytest.mark.django_db


def exported(account: Account, segment: Segment | None = None) -> list[list[str]]:
    target = io.StringIO(newline="")
    count = export_csv(target, account=account, segment=segment)
    header, *rows = csv.reader(io.StringIO(target.getvalue(), newline=""))
    assert len(rows) == count
    return [header, *rows]


def test_the_columns_are_the_system_s_and_every_attribute() -> None:
    account = AccountFactory.create()
    SubscriberFactory.create(
        account=account,
        email="Ann@example.org",
        attributes={"city": "Zürich, CH", "n": 3, "tags": ["a", "é"]},
        locale="de",
        timezone="Europe/Zurich",
    )
    SubscriberFactory.create(
        account=account, email="bob@example.org", attributes={"city": None}, unsubscribed=True
    )
    SubscriberFactory.create(email="stranger@example.org", attributes={"secret": "x"})
    header, ann, bob = exported(account)
    assert header[:6] == ["email", "status", "locale", "timezone", "consent_source", "suppressed"]
    assert header[6:] == ["city", "n", "tags"]
    assert ann[:6] == ["Ann@example.org", "confirmed", "de", "Europe/Zurich", "test", ""]
    assert ann[6:] == ["Zürich, CH", "3", '["a", "é"]']
    assert bob == ["bob@example.org", "unsubscribed", "", "", "test", "", "", "", ""]


def test_an_account_without_people_gives_a_header() -> None:
    assert exported(AccountFactory.create()) == [
        ["email", "status", "locale", "timezone", "consent_source", "suppressed"]
    ]


def test_a_segment_s_export_has_its_present_members() -> None:
    segment = SegmentFactory.create()
    account = segment.account
    SubscriberFactory.create(account=account, email="in@example.org", segments=[segment])
    left = SubscriberFactory.create(account=account, email="left@example.org")
    MembershipFactory.create(segment=segment, subscriber=left, left=True)
    SubscriberFactory.create(account=account, email="out@example.org", attributes={"x": "y"})
    header, *rows = exported(account, segment)
    assert [row[0] for row in rows] == ["in@example.org"]
    assert "x" not in header


def test_defined_attributes_come_first_whether_anybody_has_them_or_not() -> None:
    account = AccountFactory.create()
    for key, label in (("town", "City"), ("zip", ""), ("born", "")):
        AttributeDefinitionFactory.create(account=account, key=key, label=label)
    AttributeDefinitionFactory.create(key="stranger")
    SubscriberFactory.create(account=account, attributes={"zip": "01234", "city": "x", "b": "y"})
    header, row = exported(account)
    # A column named city would be read as the attribute that is labelled so.
    assert header[6:] == ["born", "town", "zip", "b", "attribute:city"]
    assert row[6:] == ["", "", "01234", "y", "x"]


def test_people_can_be_chosen_by_status_and_by_suppression() -> None:
    account = AccountFactory.create()
    SubscriberFactory.create(account=account, email="a@example.org")
    SubscriberFactory.create(account=account, email="b@example.org", pending=True)
    SubscriberFactory.create(account=account, email="c@example.org", unsubscribed=True)
    suppress(account, "a@example.org", "manual")
    suppress(None, "b@example.org", "complaint")
    suppress(AccountFactory.create(), "c@example.org", "complaint")
    for status, suppressed, names in (
        ("", None, "abc"),
        ("confirmed", None, "a"),
        ("", True, "ab"),
        ("", False, "c"),
        ("pending", False, ""),
    ):
        target = io.StringIO(newline="")
        chosen = {"account": account, "status": status, "suppressed": suppressed}
        count = export_csv(target, **chosen)
        rows = list(csv.reader(io.StringIO(target.getvalue(), newline="")))[1:]
        assert "".join(row[0][0] for row in rows) == names
        assert count == count_people(**chosen) == len(names)
    with pytest.raises(ValueError, match="no status 'gone'"):
        export_csv(io.StringIO(), account=account, status="gone")


def test_numbers_keep_their_minus_and_other_values_are_written_as_import_reads_them() -> None:
    account = AccountFactory.create()
    values = {
        "a": -5,
        "b": -1.5,
        "c": True,
        "d": False,
        "e": [1, "=2"],
        "f": {"g": None},
        "h": "-5",
    }
    SubscriberFactory.create(account=account, attributes=values)
    assert exported(account)[1][6:] == [
        "-5",
        "-1.5",
        "true",
        "false",
        '[1, "=2"]',
        '{"g": null}',
        "'-5",
    ]


def test_suppressed_addresses_are_marked_with_the_strongest_reason() -> None:
    account = AccountFactory.create()
    for name in ("a", "b", "c"):
        SubscriberFactory.create(account=account, email=f"{name}@example.org")
    suppress(account, "A@example.org", "manual")
    suppress(None, "a@example.org", "complaint")
    suppress(None, "b@example.org", "hard_bounce")
    suppress(AccountFactory.create(), "c@example.org", "complaint")
    assert [row[5] for row in exported(account)[1:]] == ["complaint", "hard_bounce", ""]


@pytest.mark.parametrize("evil", ["=1+1", "+1", "-1", "@SUM(1)", "\t=1", "\r=1", " =1", "'=1"])
def test_no_cell_is_a_formula_in_a_spreadsheet(evil: str) -> None:
    account = AccountFactory.create()
    SubscriberFactory.create(
        account=account,
        email="+ann@example.org",
        attributes={"x": evil, f"attribute:{evil}": "y"},
        consent_source=evil,
    )
    for row in exported(account):
        for cell in row:
            assert not cell.startswith(("=", "+", "-", "@", "\t", "\r", " "))


def test_what_is_exported_and_imported_again_is_as_it_was() -> None:
    account = AccountFactory.create()
    strange = {
        "city": 'a,"b"\r\nc;d|e\tf',
        "formula": "=1+1",
        "apostrophe": "'=1",
        "quoted": "'x'",
        "name": "\u0627\u0644\u0639\u0631\u0628\u064a\u0629 山田 👩‍👩‍👧",
        "First Name": "exact",
        "email": "not the address",
        "status": "gold",
        "=1": "x",
    }
    for email, extra in (
        ("+ann@example.org", {"attributes": strange, "locale": "pt-BR"}),
        ('"a b"@example.org', {"attributes": {}, "timezone": "Asia/Tokyo"}),
        ("jos\u00e9@xn--mnchen-3ya.example", {"pending": True}),
        ("left@example.org", {"unsubscribed": True}),
    ):
        SubscriberFactory.create(account=account, email=email, **extra)
    suppress(account, "+ann@example.org", "complaint")
    target = io.StringIO(newline="")
    export_csv(target, account=account)

    segment = SegmentFactory.create()
    report = import_file(
        io.BytesIO(target.getvalue().encode()),
        account=segment.account,
        segment=segment,
        options=Options(confirmed=True),
    )
    assert (report.imported, report.rejected) == (4, 0)
    same = ("email", "status", "attributes", "locale", "timezone", "consent_source")
    was, now = (
        list(Subscriber.objects.filter(account=a).order_by("email_lower").values(*same))
        for a in (account, segment.account)
    )
    assert now == was
    assert (
        Suppression.objects.get(account=segment.account, email="+ann@example.org").reason
        == "complaint"
    )


def test_many_people_are_walked_to_the_end() -> None:
    account = AccountFactory.create()
    Subscriber.objects.bulk_create(
        Subscriber(account=account, email=f"p{i}@example.org") for i in range(4_001)
    )
    rows = exported(account)[1:]
    assert [row[0] for row in rows] == [f"p{i}@example.org" for i in range(4_001)]


@pytest.mark.django_db(transaction=True)
def test_an_export_outside_a_transaction_leaves_the_connection_writable() -> None:
    account = AccountFactory.create()
    SubscriberFactory.create(account=account)
    assert len(exported(account)) == 2
    SubscriberFactory.create(account=account)
    assert len(exported(account)) == 3


def test_another_account_s_segment_is_refused() -> None:
    with pytest.raises(ValueError, match="not one of the account"):
        export_csv(io.StringIO(), account=AccountFactory.create(), segment=SegmentFactory.create())


def test_the_command_writes_standard_output_or_a_whole_file(tmp_path: Path) -> None:
    segment = SegmentFactory.create()
    account = segment.account
    SubscriberFactory.create(
        account=account, email="ann@example.org", segments=[segment], attributes={"n": "Zoë"}
    )
    out = io.StringIO()
    call_command("export_subscribers", "--account", account.slug, stdout=out)
    assert "ann@example.org,confirmed,,,test,,Zoë\r\n" in out.getvalue()
    path = tmp_path / "people.csv"
    path.write_text("old")
    told = io.StringIO()
    where = ["--account", account.slug, "--segment", segment.slug, "--output", str(path)]
    call_command("export_subscribers", *where, stdout=told)
    assert told.getvalue() == f"exported 1 to {path}\n"
    assert path.read_bytes().decode() == out.getvalue()
    assert path.stat().st_mode & 0o077 == 0
    assert list(tmp_path.iterdir()) == [path]


def test_the_command_refuses_with_one_plain_line(tmp_path: Path) -> None:
    account = AccountFactory.create()
    missing = str(tmp_path / "missing" / "people.csv")
    for arguments, why in (
        (["--account", "nobody"], "no account 'nobody'"),
        (["--account", account.slug, "--segment", "nothing"], "no segment 'nothing'"),
        (["--account", account.slug, "--output", missing], "can't be written"),
        (["--account", account.slug, "--output", str(tmp_path)], "can't be written"),
    ):
        with pytest.raises(CommandError, match=why) as caught:
            call_command("export_subscribers", *arguments)
        assert caught.value.returncode == 2
    assert not list(tmp_path.iterdir())
