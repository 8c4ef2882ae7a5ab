from __future__ import annotations

import csv
import io
import subprocess
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.utils import timezone

from subscribers import hooks, import_sql
from subscribers.consent import unsubscribe
from subscribers.importing import ImportRefused, ImportReport, import_csv
from subscribers.models import Account, Membership, Segment, Subscriber, Suppression
from subscribers.suppression import is_suppressed, suppress
from tests.db.racing import Race
from tests.factories import (
    AccountFactory,
    MembershipFactory,
    SegmentFactory,
    SubscriberFactory,
    SuppressionFactory,
)

pytestmark = pytest.mark.django_db

Status = Subscriber.Status


@pytest.fixture
def segment() -> Segment:
    return SegmentFactory.create()


@pytest.fixture
def account(segment: Segment) -> Account:
    return segment.account


def load(text: str | bytes, segment: Segment, **options: Any) -> ImportReport:
    data = text.encode() if isinstance(text, str) else text
    report = import_csv(io.BytesIO(data), account=segment.account, segment=segment, **options)
    assert report.rows == (
        report.imported
        + report.updated
        + report.unchanged
        + report.unsubscribed
        + report.duplicates
        + report.rejected
    )
    return report


def counts(report: ImportReport) -> dict[str, int]:
    return {k: v for k, v in vars(report).items() if type(v) is int and v and k != "rows"}


def members(segment: Segment) -> set[str]:
    return set(segment.memberships.filter(left_at=None).values_list("subscriber__email", flat=True))


# --- what goes in ----------------------------------------------------------------------------


def test_new_people_wait_for_their_confirmation(segment: Segment) -> None:
    report = load(
        "\ufeffE-Mail;First Name;Locale;Time zone\r\n"
        " Ann@EXAMPLE.org ;Zoë;fr;Europe/Paris\r\n"
        "bob@münchen.example;=1+1;;\r\n",
        segment,
    )
    assert counts(report) == {"imported": 2, "pending": 2}
    ann = Subscriber.objects.get(email_lower="ann@example.org")
    assert (ann.email, ann.status, ann.confirmed_at) == ("Ann@example.org", Status.PENDING, None)
    assert (ann.attributes, ann.locale, ann.timezone) == (
        {"first_name": "Zoë"},
        "fr",
        "Europe/Paris",
    )
    bob = Subscriber.objects.get(email="bob@xn--mnchen-3ya.example")
    assert bob.attributes == {"first_name": "=1+1"}
    assert members(segment) == {ann.email, bob.email}
    for person in (ann, bob):
        person.full_clean()


def test_confirmed_is_what_the_sender_vouches_for(segment: Segment) -> None:
    report = load(
        "email,status\na@example.org,\nb@example.org,confirmed\nc@example.org,pending\n"
        "d@example.org,unsubscribed\n",
        segment,
        confirmed=True,
        consent_source="fair 2026",
    )
    assert counts(report) == {"imported": 4, "pending": 1, "suppressed": 1}
    found = {s.email[0]: s for s in Subscriber.objects.all()}
    assert {k: s.status for k, s in found.items()} == {
        "a": Status.CONFIRMED,
        "b": Status.CONFIRMED,
        "c": Status.PENDING,
        "d": Status.UNSUBSCRIBED,
    }
    assert found["a"].confirmed_at is not None
    assert found["a"].consent_source == "fair 2026"
    assert found["c"].confirmed_at is None
    assert found["d"].unsubscribed_at is not None
    assert members(segment) == {"a@example.org", "b@example.org", "c@example.org"}
    assert is_suppressed(segment.account, "d@example.org")


def test_a_file_alone_confirms_nobody(segment: Segment) -> None:
    assert counts(load("email,status\na@example.org,confirmed\n", segment)) == {
        "imported": 1,
        "pending": 1,
    }


def test_the_same_file_again_changes_nothing(segment: Segment) -> None:
    text = "email,city,locale\nann@example.org,Paris,fr\nbob@example.org,,\n"
    load(text, segment, confirmed=True)
    before = list(Subscriber.objects.order_by("id").values())
    assert counts(load(text, segment, confirmed=True)) == {"unchanged": 2}
    assert list(Subscriber.objects.order_by("id").values()) == before
    assert Membership.objects.count() == 2


def test_cells_that_are_not_empty_win_and_empty_ones_change_nothing(segment: Segment) -> None:
    SubscriberFactory.create(
        account=segment.account,
        email="Ann@example.org",
        attributes={"city": "Paris", "plan": "gold", "n": 3},
        locale="fr",
        timezone="Europe/Paris",
        consent_source="sign-up",
        segments=[segment],
    )
    report = load(
        "email,city,plan,pet,locale,timezone,consent source\n"
        "ANN@example.org,Lyon,,cat,de,,somewhere\n",
        segment,
    )
    assert counts(report) == {"updated": 1}
    ann = Subscriber.objects.get()
    assert ann.email == "Ann@example.org"
    assert ann.attributes == {"city": "Lyon", "plan": "gold", "n": 3, "pet": "cat"}
    assert (ann.locale, ann.timezone, ann.consent_source) == ("de", "Europe/Paris", "sign-up")
    assert ann.status == Status.CONFIRMED


def test_what_is_known_can_be_kept(segment: Segment) -> None:
    account = segment.account
    SubscriberFactory.create(account=account, email="a@example.org", attributes={"city": "Paris"})
    SubscriberFactory.create(account=account, email="b@example.org", pending=True)
    SubscriberFactory.create(account=account, email="c@example.org")
    report = load(
        "email,city,status\na@example.org,Lyon,\nb@example.org,Lyon,\n"
        "c@example.org,,unsubscribed\nd@example.org,Lyon,\n",
        segment,
        confirmed=True,
        existing="keep",
    )
    assert counts(report) == {"imported": 1, "updated": 3, "suppressed": 1}
    found = {s.email[0]: s for s in Subscriber.objects.all()}
    assert found["a"].attributes == {"city": "Paris"}
    assert found["b"].status == Status.PENDING
    assert found["c"].status == Status.UNSUBSCRIBED
    assert found["d"].attributes == {"city": "Lyon"}
    assert members(segment) == {"a@example.org", "b@example.org", "d@example.org"}


def test_confirming_stamps_the_consent_and_keeps_what_was_confirmed_before(
    segment: Segment,
) -> None:
    account = segment.account
    SubscriberFactory.create(account=account, email="new@example.org", pending=True)
    old = SubscriberFactory.create(account=account, email="old@example.org")
    report = load("email\nnew@example.org\nold@example.org\n", segment, confirmed=True)
    assert counts(report) == {"updated": 2}
    new = Subscriber.objects.get(email="new@example.org")
    assert (new.status, new.consent_source) == (Status.CONFIRMED, "import")
    assert new.confirmed_at is not None
    was, now = old.confirmed_at, Subscriber.objects.get(pk=old.pk).confirmed_at
    assert was == now
    # A confirmed person is not taken back to pending by a file.
    load("email,status\nnew@example.org,pending\n", segment)
    new.refresh_from_db()
    assert new.status == Status.CONFIRMED


def test_another_account_s_people_are_not_touched(segment: Segment) -> None:
    other = SubscriberFactory.create(email="ann@example.org", attributes={"city": "Paris"})
    load("email,city\nann@example.org,Lyon\n", segment)
    other.refresh_from_db()
    assert other.attributes == {"city": "Paris"}
    assert Subscriber.objects.count() == 2


def test_of_duplicates_the_last_counts_and_the_most_cautious_word_holds(segment: Segment) -> None:
    report = load(
        "email,city,status,suppressed\n"
        "Ann@example.org,Paris,,\nbob@example.org,Rome,unsubscribed,complaint\n"
        "ANN@example.org,Lyon,pending,\nann@EXAMPLE.ORG,Nice,,\nBob@example.org,Turin,,manual\n",
        segment,
        confirmed=True,
    )
    assert counts(report) == {"imported": 2, "duplicates": 3, "pending": 1, "suppressed": 1}
    found = {s.email_lower: s for s in Subscriber.objects.all()}
    assert found["ann@example.org"].attributes == {"city": "Nice"}
    assert found["ann@example.org"].status == Status.PENDING
    assert found["bob@example.org"].attributes == {"city": "Turin"}
    assert found["bob@example.org"].status == Status.UNSUBSCRIBED
    assert Suppression.objects.get().reason == Suppression.Reason.COMPLAINT


# --- nobody is brought back ------------------------------------------------------------------


def test_who_unsubscribed_stays_as_they_are(segment: Segment) -> None:
    person = SubscriberFactory.create(
        account=segment.account, email="ann@example.org", unsubscribed=True, attributes={"a": "b"}
    )
    before = Subscriber.objects.values().get()
    report = load("email,status,a\nann@example.org,confirmed,c\n", segment, confirmed=True)
    assert counts(report) == {"unsubscribed": 1}
    assert Subscriber.objects.values().get(pk=person.pk) == before
    assert not Membership.objects.exists()


def test_who_left_the_segment_has_left_it(segment: Segment) -> None:
    person = SubscriberFactory.create(account=segment.account, email="ann@example.org")
    place = MembershipFactory.create(segment=segment, subscriber=person, left=True)
    assert counts(load("email\nann@example.org\n", segment, confirmed=True)) == {"unchanged": 1}
    place.refresh_from_db()
    assert place.left_at is not None


@pytest.mark.parametrize("for_all", [False, True])
def test_a_suppression_stands_and_is_counted(segment: Segment, for_all: bool) -> None:
    account = None if for_all else segment.account
    suppress(account, "ann@example.org", "complaint")
    SuppressionFactory.create(email="bob@example.org")
    SuppressionFactory.create(
        account=account, email="cy@example.org", expires=timezone.now() - timedelta(days=1)
    )
    text = "email\nAnn@example.org\nbob@example.org\ncy@example.org\n"
    assert counts(load(text, segment, confirmed=True)) == {"imported": 3, "suppressed": 1}
    assert is_suppressed(segment.account, "ann@example.org")


def test_an_export_s_suppressions_come_along_and_never_weaken_one(segment: Segment) -> None:
    suppress(segment.account, "b@example.org", "complaint", evidence="reported")
    report = load(
        "email,suppressed\na@example.org,Hard_Bounce\nb@example.org,manual\nc@example.org,\n",
        segment,
    )
    assert counts(report) == {"imported": 3, "pending": 3, "suppressed": 2}
    found = {x.email: x for x in Suppression.objects.all()}
    assert {email: x.reason for email, x in found.items()} == {
        "a@example.org": "hard_bounce",
        "b@example.org": "complaint",
    }
    assert found["a@example.org"].expires is not None
    assert found["a@example.org"].evidence == "import"


@pytest.mark.parametrize("for_all", [False, True])
def test_an_erased_person_is_refused_without_a_trace(
    segment: Segment, tmp_path: Path, for_all: bool
) -> None:
    suppress(None if for_all else segment.account, "ann@example.org", "erased")
    rejects = tmp_path / "rejects.csv"
    report = load(
        "email,name\nbob@example.org,Bob\nANN@example.org,Ann Secret\nann@example.org,Again\n",
        segment,
        reject_file=rejects,
        confirmed=True,
    )
    assert counts(report) == {"imported": 1, "duplicates": 1, "rejected": 1}
    assert Subscriber.objects.get().email == "bob@example.org"
    text = rejects.read_text()
    assert "erased on request" in text
    assert "4," in text
    assert "ann" not in text.lower().replace("erased", "")


def test_an_erasure_in_another_account_does_not_matter_here(segment: Segment) -> None:
    suppress(AccountFactory.create(), "ann@example.org", "erased")
    assert counts(load("email\nann@example.org\n", segment)) == {"imported": 1, "pending": 1}


def test_who_a_file_unsubscribes_is_withdrawn_from_running_campaigns(
    segment: Segment,
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: Any,
) -> None:
    told: list[list[int]] = []

    def withdraw(ids: list[int]) -> int:
        told.append(ids)
        return 0

    monkeypatch.setattr(hooks.withdraw_leavers, "_filled", withdraw)
    ann = SubscriberFactory.create(account=segment.account, email="ann@example.org")
    text = "email,status\nann@example.org,unsubscribed\nbob@example.org,unsubscribed\n"
    with django_capture_on_commit_callbacks(execute=True):
        assert counts(load(text, segment)) == {"imported": 1, "updated": 1, "suppressed": 2}
    assert told == [[ann.pk]]
    ann.refresh_from_db()
    assert ann.status == Status.UNSUBSCRIBED
    assert ann.unsubscribed_at is not None


# --- while it runs ---------------------------------------------------------------------------


class AtEnd(io.BytesIO):
    """A file at whose end something happens on another connection, in the middle of the import."""

    def __init__(self, text: str, happens: Callable[[], object]) -> None:
        super().__init__(text.encode())
        self.happens: Callable[[], object] | None = happens

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(size)
        if not data and self.happens is not None:
            happens, self.happens = self.happens, None
            with Race() as race:
                race.start(happens).result()
        return data


@pytest.mark.django_db(transaction=True)
def test_who_unsubscribes_while_the_file_is_read_is_unsubscribed(segment: Segment) -> None:
    person = SubscriberFactory.create(account=segment.account, email="ann@example.org")
    file = AtEnd("email,city\nann@example.org,Lyon\n", lambda: unsubscribe(person, evidence="x"))
    report = import_csv(file, account=segment.account, segment=segment, confirmed=True)
    assert counts(report) == {"unsubscribed": 1, "suppressed": 1}
    person.refresh_from_db()
    assert person.status == Status.UNSUBSCRIBED
    assert not Membership.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_who_is_erased_while_the_file_is_read_is_refused(segment: Segment) -> None:
    file = AtEnd(
        "email\nann@example.org\n", lambda: suppress(segment.account, "ann@example.org", "erased")
    )
    report = import_csv(file, account=segment.account, segment=segment)
    assert counts(report) == {"rejected": 1}
    assert not Subscriber.objects.exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("for_all", [False, True])
def test_an_erasure_waits_for_the_import_and_then_sees_whom_it_brought(
    segment: Segment, for_all: bool
) -> None:
    def erase() -> int:
        with transaction.atomic():
            suppress(None if for_all else segment.account, "ann@example.org", "erased")
            return Subscriber.objects.filter(email_lower="ann@example.org").delete()[0]

    with Race() as race:
        with transaction.atomic():
            load("email\nann@example.org\n", segment)
            erasing = race.start(erase)
            erasing.wait_until_blocked()
        assert erasing.result()
    assert not Subscriber.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_two_imports_of_the_same_people_at_once_add_them_once(segment: Segment) -> None:
    text = "email\n" + "".join(f"p{i}@example.org\n" for i in range(500))
    backwards = "email\n" + "".join(f"p{i}@example.org\n" for i in reversed(range(500)))
    with Race() as race:
        with transaction.atomic():
            first = load(text, segment)
            other = race.start(lambda: load(backwards, segment))
            other.wait_until_blocked()
        assert counts(first) == {"imported": 500, "pending": 500}
        assert counts(other.result()) == {"unchanged": 500}
    assert Membership.objects.count() == 500


@pytest.mark.django_db(transaction=True)
def test_a_segment_that_goes_while_the_file_is_read_refuses_the_import(segment: Segment) -> None:
    file = AtEnd("email\nann@example.org\n", lambda: Segment.objects.all().delete())
    with pytest.raises(ImportRefused, match="segment was deleted"):
        import_csv(file, account=segment.account, segment=segment)
    assert not Subscriber.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_segment_does_not_go_under_an_import_that_is_being_written(segment: Segment) -> None:
    with Race() as race:
        with transaction.atomic():
            load("email\nann@example.org\n", segment)
            deleting = race.start(Segment.objects.filter(pk=segment.pk).delete)
            deleting.wait_until_blocked()
        # It did not see the new member; asked again, it does.
        with pytest.raises(IntegrityError):
            deleting.result()
    assert members(segment) == {"ann@example.org"}
    Segment.objects.filter(pk=segment.pk).delete()


# --- bad rows and bad files ------------------------------------------------------------------

BAD_ROWS = (
    "email,name\r\n"
    "good@example.org,Good\r\n"
    "not an address,Bad\r\n"
    ",Nobody\r\n"
    "few@example.org\r\n"
    "many@example.org,a,b\r\n"
    '"open@example.org,Bad\r\n'
    "nul@example.org,a\0b\r\n"
    "Bob <bob@example.org>,=HYPERLINK()\r\n" + "x" * 1_000_000 + "\r\n"
    "also-good@example.org,Good\r\n"
)


def test_bad_rows_are_told_with_line_and_reason_while_good_ones_go_in(
    segment: Segment, tmp_path: Path
) -> None:
    path = tmp_path / "people.csv"
    path.write_bytes(BAD_ROWS.encode())
    report = import_csv(path, account=segment.account, segment=segment, confirmed=True)
    assert counts(report) == {"imported": 2, "rejected": 8}
    assert members(segment) == {"good@example.org", "also-good@example.org"}
    assert report.reject_file == tmp_path / "people.csv.rejects.csv"
    with report.reject_file.open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["reject_line", "reject_reason", "email", "name"]
    told = {int(row[0]): row[1] for row in rows}
    assert list(told) == [3, 4, 5, 6, 7, 8, 9, 10]
    for line, why in {
        3: "@-sign",
        4: "empty",
        5: "1 cells, the header 2",
        6: "3 cells, the header 2",
        7: "quote",
        8: "NUL",
        9: "name beside",
        10: "too long",
    }.items():
        assert why in told[line], told[line]
    by_line = {int(row[0]): row[2:] for row in rows}
    assert by_line[9] == ["Bob <bob@example.org>", "'=HYPERLINK()"]
    assert len(by_line[10][0]) <= 200
    assert report.reject_file.stat().st_mode & 0o077 == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["people.csv", "people.csv.rejects.csv"]


def test_a_reject_file_is_mended_and_imported_as_it_is(segment: Segment, tmp_path: Path) -> None:
    rejects = tmp_path / "rejects.csv"
    load("email,name\nann.example.org,=Ann\n", segment, reject_file=rejects)
    rejects.write_text(rejects.read_text().replace("ann.example.org", "ann@example.org"))
    report = import_csv(rejects, account=segment.account, segment=segment)
    assert counts(report) == {"imported": 1, "pending": 1}
    assert report.ignored == ["reject_line", "reject_reason"]
    assert Subscriber.objects.get().attributes == {"name": "=Ann"}


def test_without_rejects_there_is_no_reject_file(segment: Segment, tmp_path: Path) -> None:
    report = load("email\nann@example.org\n", segment, reject_file=tmp_path / "rejects.csv")
    assert report.reject_file is None
    assert not list(tmp_path.iterdir())


def test_a_dry_run_tells_all_and_changes_nothing(segment: Segment, tmp_path: Path) -> None:
    rejects = tmp_path / "rejects.csv"
    text = "email,suppressed\nann@example.org,manual\nbad,\n"
    report = load(text, segment, dry_run=True, reject_file=rejects)
    assert counts(report) == {"imported": 1, "pending": 1, "rejected": 1, "suppressed": 1}
    assert rejects.exists()
    assert not Subscriber.objects.exists()
    assert not Suppression.objects.exists()
    assert counts(load(text, segment)) == counts(report)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "empty"),
        (b"name,phone\nAnn,1\n", "no e-mail column"),
        (b"ann@example.org,Ann\n", "no e-mail column"),
        ("email,name\nann@example.org,Zoë\n".encode("latin-1"), "Line 2 is not UTF-8"),
        ("email\nann@example.org\n".encode("utf-16-le"), "UTF-16"),
        (b"email,a\n" + b"ann@example.org,b\n" * 9000 + b"bob@example.org,\xff\n", "Line 9002"),
        (b"email,E-Mail\na@example.org,b@example.org\n", "Two columns"),
        (b"x" * 2_000_000, "first line is longer"),
    ],
)
@pytest.mark.django_db(transaction=True)
def test_a_file_that_is_no_good_is_refused_as_a_whole(
    segment: Segment, tmp_path: Path, data: bytes, why: str
) -> None:
    path = tmp_path / "people.csv"
    path.write_bytes(data)
    with pytest.raises(ImportRefused) as caught:
        import_csv(path, account=segment.account, segment=segment)
    assert why in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not Subscriber.objects.exists()
    assert [p.name for p in tmp_path.iterdir()] == ["people.csv"]


@pytest.mark.django_db(transaction=True)
def test_a_failure_at_the_end_leaves_nothing_half_written(
    segment: Segment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_sql, "COUNT", "SELECT 1/0")
    path = tmp_path / "people.csv"
    path.write_text("email,suppressed\nann@example.org,manual\nbad,\n")
    with pytest.raises(DatabaseError):
        import_csv(path, account=segment.account, segment=segment)
    assert not Subscriber.objects.exists()
    assert not Suppression.objects.exists()
    assert [p.name for p in tmp_path.iterdir()] == ["people.csv"]


def test_a_reject_file_that_can_t_be_written_refuses_the_import(
    segment: Segment, tmp_path: Path
) -> None:
    path = tmp_path / "people.csv"
    path.write_text("email\nann@example.org\nbad\n")
    for rejects in (tmp_path, path, tmp_path / "missing" / "rejects.csv"):
        with pytest.raises(ImportRefused):
            import_csv(path, account=segment.account, segment=segment, reject_file=rejects)
    assert path.read_text() == "email\nann@example.org\nbad\n"
    assert not Subscriber.objects.exists()


def test_another_account_s_segment_is_refused(segment: Segment) -> None:
    with pytest.raises(ImportRefused, match="not one of the account"):
        import_csv(io.BytesIO(b"email\n"), account=AccountFactory.create(), segment=segment)


def test_many_rows_go_in_with_few_statements(
    segment: Segment, django_assert_max_num_queries: Any
) -> None:
    suppress(segment.account, "p7@example.org", "erased")
    text = "email,n\n" + "".join(f"p{i}@example.org,{i}\n" for i in range(20_000))
    progress: list[tuple[int, int]] = []
    with django_assert_max_num_queries(40):
        report = load(text, segment, progress=lambda *told: progress.append(told))
    assert counts(report) == {"imported": 19_999, "rejected": 1, "pending": 19_999}
    assert progress[-1] == (len(text), 20_000)
    assert progress == sorted(progress)


# --- the command -----------------------------------------------------------------------------


def command(*arguments: str) -> str:
    out = io.StringIO()
    call_command("import_subscribers", *arguments, stdout=out)
    return out.getvalue()


def test_the_command_reports_in_words(segment: Segment, tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("email,\nann@example.org,\nbad,\n")
    where = ["--account", segment.account.slug, "--segment", segment.slug]
    assert command(str(path), *where, "--dry-run").splitlines() == [
        "imported 1, updated 0, unchanged 0, unsubscribed 0, duplicates 0, rejected 1; "
        "suppressed 0",
        "1 of the new ones get no campaign until they confirm "
        "(--confirmed: you have their consent).",
        "Columns passed over: column 2.",
        f"Rejected rows, with the reasons: {path}.rejects.csv",
        "Dry run: nothing was changed.",
    ]
    assert command(str(path), *where, "--confirmed").startswith("imported 1,")
    assert Subscriber.objects.get().consent_source == "import of people.csv"


def test_the_command_refuses_with_one_plain_line(segment: Segment, tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("email\nann@example.org\n")
    account = ["--account", segment.account.slug]
    for arguments, why in (
        (["--account", "nobody", "--segment", segment.slug], "no account 'nobody'"),
        ([*account, "--segment", "nothing"], "no segment 'nothing'"),
        ([*account, "--segment", SegmentFactory.create().slug], "has no segment"),
    ):
        with pytest.raises(CommandError, match=why) as caught:
            command(str(path), *arguments)
        assert caught.value.returncode == 2
    with pytest.raises(CommandError, match="No such file") as caught:
        command(str(tmp_path / "missing.csv"), *account, "--segment", segment.slug)
    assert caught.value.returncode == 2
    with pytest.raises(CommandError, match="Is a directory") as caught:
        command(str(tmp_path), *account, "--segment", segment.slug)
    assert caught.value.returncode == 2
    assert not Subscriber.objects.exists()


def test_the_command_as_it_is_run(
    manage: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    path = tmp_path / "people.csv"
    path.write_text("name\nAnn\n")
    made = manage(
        "shell",
        "-v0",
        "-c",
        "from tests.factories import SegmentFactory, AccountFactory\n"
        "SegmentFactory(slug='news', account=AccountFactory(slug='acme'))",
    )
    assert made.returncode == 0, made.stderr
    where = ("--account", "acme", "--segment", "news")
    refused = manage("import_subscribers", str(path), *where)
    assert refused.returncode == 2
    assert refused.stdout == ""
    assert len(refused.stderr.splitlines()) == 1
    assert "no e-mail column" in refused.stderr
    path.write_text("email,name\nann@example.org,Zoë\n", encoding="utf-8")
    done = manage("import_subscribers", str(path), *where, "--confirmed")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("imported 1,")
    exported = manage("export_subscribers", "--account", "acme")
    assert (exported.returncode, exported.stderr) == (0, "")
    assert "ann@example.org,confirmed,,,import of people.csv,,Zoë" in exported.stdout


def test_the_transaction_s_tables_are_gone_with_it(segment: Segment) -> None:
    # Two in one transaction of the caller's: the second finds the first one's tables.
    load("email\nann@example.org\n", segment)
    load("email\nbob@example.org\n", segment)
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM sendonce_staged")
        assert cursor.fetchone()[0] == 1
