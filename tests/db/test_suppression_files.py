"""The suppression list from files: what is taken, what is refused, what stays stronger."""

from __future__ import annotations

import csv
import io
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from subscribers.models import Account, AuditEvent, Suppression
from subscribers.rights.acts import erase_person
from subscribers.suppressing.export import export_chunks
from subscribers.suppressing.files import (
    FileReport,
    Reject,
    effect,
    expiry_of,
    import_file,
    reason_of,
)
from subscribers.suppression import is_suppressed, suppress
from subscribers.tabular import ImportRefused, RowError
from tests.factories import AccountFactory, SubscriberFactory, SuppressionFactory

Reason = Suppression.Reason


def taken(account: Account | None, text: str, **given: Any) -> FileReport:
    return import_file(
        io.BytesIO(text.encode()),
        account=account,
        file_name="list.csv",
        **{"by_name": "Bea", **given},
    )


# --- pure ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "reason"),
    [("", Reason.MANUAL), ("complaint", Reason.COMPLAINT), ("Spam report", Reason.COMPLAINT),
     ("HARD_BOUNCE", Reason.HARD_BOUNCE), ("bounced", Reason.HARD_BOUNCE),
     ("Opt-out", Reason.UNSUBSCRIBED), ("added by staff", Reason.MANUAL)],
)  # fmt: skip
def test_reasons_by_their_names(cell: str, reason: Reason) -> None:
    assert reason_of(cell, Reason.MANUAL) is reason


@pytest.mark.parametrize("cell", ["erased", "because", "soft bounce"])
def test_what_is_no_reason(cell: str) -> None:
    with pytest.raises(RowError, match="is no reason"):
        reason_of(cell, Reason.MANUAL)


@pytest.mark.parametrize(
    ("cell", "moment"),
    [
        ("", None),
        ("2027-01-31", datetime(2027, 1, 30, 23, tzinfo=UTC)),
        ("2027-01-31T12:00", datetime(2027, 1, 31, 11, tzinfo=UTC)),
        ("2027-01-31 12:00:00+00:00", datetime(2027, 1, 31, 12, tzinfo=UTC)),
    ],
)
def test_expiries(cell: str, moment: datetime | None) -> None:
    assert expiry_of(cell, ZoneInfo("Europe/Zurich")) == moment


@pytest.mark.parametrize("cell", ["31.1.2027", "2027-02-30", "soon", "2027-13-01T00:00"])
def test_what_is_no_expiry(cell: str) -> None:
    with pytest.raises(RowError, match="is no day"):
        expiry_of(cell, ZoneInfo("UTC"))


@pytest.mark.parametrize(
    ("before", "given", "what"),
    [(None, "manual", "added"), ("manual", "complaint", "strengthened"),
     ("complaint", "manual", "known"), ("manual", "manual", "known")],
)  # fmt: skip
def test_effects(before: str | None, given: str, what: str) -> None:
    assert effect(before, Reason(given)) == what


# --- files ---------------------------------------------------------------------------------------

pytestmark = pytest.mark.django_db


def test_all_columns_are_read() -> None:
    account = AccountFactory.create(slug="mine")
    told = taken(
        account,
        "Email;Reason;Evidence;Expires;Account;Extra\n"
        " Ann@EXAMPLE.org ;manual;asked by phone;2999-01-31;mine;x\n"
        "bob@example.org;;;;;\n",
        reason="unsubscribed",
    )
    assert (told.added, told.rejected, told.passed_over) == (2, 0, ["Extra"])
    ann, bob = Suppression.objects.order_by("pk")
    assert (ann.email, ann.reason, ann.evidence) == ("Ann@example.org", "manual", "asked by phone")
    assert ann.expires == datetime(2999, 1, 31, tzinfo=UTC)
    assert (bob.reason, bob.evidence, bob.expires) == (
        "unsubscribed", "Imported from list.csv by Bea.", None,
    )  # fmt: skip
    event = AuditEvent.objects.get()
    assert (event.verb, event.subject, event.by_name) == ("suppression.import", "list.csv", "Bea")
    assert event.detail == {"rows": 2, "of": 2, "rejected": 0, "reason": "unsubscribed"}


def test_what_is_wrong_is_told_with_its_line() -> None:
    account = AccountFactory.create(slug="mine")
    told = taken(
        account,
        "email,reason,expires,account\n"
        "nobody,,,\n"
        "a@example.org,because,,\n"
        "b@example.org,complaint,2999-01-01,\n"
        "c@example.org,manual,2001-01-01,\n"
        "d@example.org,,,other\n"
        '"e@example.org\n',
    )
    assert (told.added, told.rejected) == (0, 6)
    assert [row.line for row in told.rejects] == [2, 3, 4, 5, 6, 7]
    whys = ("is no reason", "can't expire", "has expired already", "of the account")
    assert all(why in row.reason for why, row in zip(whys, told.rejects[1:5], strict=True))
    assert not Suppression.objects.exists()
    assert not AuditEvent.objects.exists()


def test_the_stronger_reason_stays() -> None:
    account = AccountFactory.create()
    suppress(account, "strong@example.org", "complaint", evidence="ARF")
    suppress(account, "weak@example.org", "hard_bounce")
    told = taken(
        account,
        "email,reason\nSTRONG@example.org,manual\nweak@example.org,unsubscribed\n"
        "new@example.org,hard_bounce\nnew@example.org,complaint\nNEW@example.org,manual\n",
    )
    assert (told.added, told.strengthened, told.known, told.duplicates) == (1, 1, 1, 2)
    rows = dict(Suppression.objects.values_list("email_lower", "reason"))
    assert rows == {
        "strong@example.org": "complaint",
        "weak@example.org": "unsubscribed",
        "new@example.org": "complaint",
    }
    assert Suppression.objects.get(email_lower="strong@example.org").evidence == "ARF"


def test_again_it_changes_nothing() -> None:
    account = AccountFactory.create()
    text = "email\nann@example.org\nbob@example.org\n"
    taken(account, text)
    before = list(Suppression.objects.order_by("pk").values())
    told = taken(account, text)
    assert (told.added, told.known) == (0, 2)
    assert list(Suppression.objects.order_by("pk").values()) == before


def test_what_has_lapsed_is_new() -> None:
    row = SuppressionFactory.create(
        email="ann@example.org", expires=timezone.now() - timedelta(days=1), reason="complaint"
    )
    assert taken(row.account, "email\nann@example.org\n").added == 1
    assert Suppression.objects.get().reason == "manual"


def test_a_dry_run_tells_the_same_and_changes_nothing() -> None:
    account = AccountFactory.create()
    suppress(account, "known@example.org", "complaint")
    erase_person(account, "gone@example.org", by_name="Bea", reason="asked")
    before = AuditEvent.objects.count()
    text = "email,reason\nknown@example.org,\nnew@example.org,\ngone@example.org,complaint\nx,\n"
    dry = taken(account, text, dry_run=True)
    assert Suppression.objects.count() == 2
    assert AuditEvent.objects.count() == before
    wet = taken(account, text)
    assert (dry.added, dry.known, dry.erased, dry.rejected) == (1, 1, 1, 1)
    assert (wet.added, wet.known, wet.erased, wet.rejected) == (1, 1, 1, 1)


def test_an_erased_person_is_noted_and_not_written_down() -> None:
    account = AccountFactory.create()
    erase_person(account, "ann@example.org", by_name="Bea", reason="asked")
    text = "email,reason\nAnn@example.org,complaint\nann@example.org,manual\n"
    assert taken(account, text).erased == 2
    row = Suppression.objects.get()
    assert (row.email, row.reason, row.former_reason) == (None, "erased", "complaint")


def test_the_list_for_all_accounts() -> None:
    taken(None, "email,account\nann@example.org,all accounts\nbob@example.org,\n")
    rows = Suppression.objects.filter(account__isnull=True)
    assert set(rows.values_list("email", flat=True)) == {"ann@example.org", "bob@example.org"}
    assert is_suppressed(AccountFactory.create(), "ann@example.org")
    told = taken(None, "email,account\ncid@example.org,mine\n")
    assert told.rejected == 1


def test_who_was_saved_past_every_entrance_is_suppressed_as_stored() -> None:
    person = SubscriberFactory.create(email="Ann@münchen.example")
    taken(person.account, "email\nann@münchen.example\n")
    assert set(Suppression.objects.values_list("email", flat=True)) == {
        "ann@xn--mnchen-3ya.example", "Ann@münchen.example",
    }  # fmt: skip


def test_a_file_that_breaks_off_changes_nothing() -> None:
    text = b"email\n" + b"".join(b"p%d@example.org\n" % n for n in range(6000)) + b"\xff\xfe\x00"
    account = AccountFactory.create()
    told = None
    try:
        told = import_file(io.BytesIO(text), account=account, file_name="l.csv", by_name="Bea")
    except ImportRefused:
        assert not Suppression.objects.exists()
    else:
        # Read as a legacy encoding: the line with the strange bytes is refused, the rest taken.
        assert (told.added, told.rejected) == (6000, 1)


@pytest.mark.parametrize("text", ["", "name\nann\n", "<html><body>no</body></html>"])
def test_what_is_no_list_is_refused(text: str) -> None:
    with pytest.raises(ImportRefused):
        taken(AccountFactory.create(), text)


def test_a_file_can_not_erase() -> None:
    with pytest.raises(ValueError, match="erase"):
        taken(AccountFactory.create(), "email\n", reason="erased")


def test_statements_do_not_grow_with_the_rows_of_a_chunk() -> None:
    account = AccountFactory.create()

    def statements(count: int) -> int:
        text = "email\n" + "".join(f"p{n}@example.org\n" for n in range(count))
        with CaptureQueriesContext(
            connection,
        ) as queries:
            taken(account, text)
        return len(queries)

    assert statements(10) == statements(2000)


def test_rejects_are_named_up_to_a_number_and_told_one_by_one() -> None:
    kept: list[Reject] = []
    text = "email\n" + "nobody\n" * 300
    told = taken(AccountFactory.create(), text, on_reject=kept.append)
    assert (told.rejected, len(told.rejects), len(kept)) == (300, 200, 300)


# --- commands ------------------------------------------------------------------------------------


def run(*arguments: str) -> str:
    out = io.StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue()


def test_what_the_command_exports_it_imports(tmp_path: Path) -> None:
    account = AccountFactory.create(slug="mine")
    suppress(account, "ann@example.org", "complaint", evidence="=cmd()")
    suppress(account, "bob@example.org", "hard_bounce", evidence="two\nlines, and \u201cé\u201d")
    suppress(None, "all@example.org", "manual")
    path = tmp_path / "list.csv"
    assert "exported 2" in run("export_suppressions", "--account", "mine", "--output", str(path))
    assert path.stat().st_mode & 0o777 == 0o600
    before = list(
        Suppression.objects.filter(account=account)
        .order_by("email")
        .values("email", "reason", "evidence", "expires")
    )
    Suppression.objects.all().delete()
    assert "added 2," in run("import_suppressions", str(path), "--account", "mine")
    after = list(
        Suppression.objects.order_by("email").values("email", "reason", "evidence", "expires")
    )
    assert after == before
    verbs = list(AuditEvent.objects.order_by("pk").values_list("verb", flat=True))
    assert verbs == ["suppression.export", "suppression.import"]


def test_the_command_reads_excel(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["email", "reason"], ["ann@example.org", "complaint"]):
        book.active.append(row)
    path = tmp_path / "list.xlsx"
    book.save(path)
    assert "added 1," in run("import_suppressions", str(path), "--all-accounts")
    assert Suppression.objects.get().account is None


def test_the_command_names_rejected_rows_and_writes_them(tmp_path: Path) -> None:
    AccountFactory.create(slug="mine")
    path, rejects = tmp_path / "list.csv", tmp_path / "rejects.csv"
    path.write_text("email\nann@example.org\n" + "=nobody\n" * 25)
    out = run(
        "import_suppressions", str(path), "--account", "mine", "--reject-file", str(rejects),
        "--dry-run",
    )  # fmt: skip
    assert "rejected 25" in out
    assert "line 3: " in out
    assert "and 5 more" in out
    assert "nothing was changed" in out
    rows = list(csv.reader(io.StringIO(rejects.read_text())))
    assert len(rows) == 26
    assert rows[1][2] == "'=nobody"
    assert not Suppression.objects.exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["--account", "nobody"],
        ["--account", "mine", "--all-accounts"],
        [],
        ["--account", "mine", "--reason", "erased"],
    ],
)
def test_a_wrong_call_changes_nothing(tmp_path: Path, arguments: list[str]) -> None:
    AccountFactory.create(slug="mine")
    path = tmp_path / "list.csv"
    path.write_text("email\nann@example.org\n")
    with pytest.raises(CommandError):
        run("import_suppressions", str(path), *arguments)
    assert not Suppression.objects.exists()


def test_a_file_that_is_not_there_is_one_line() -> None:
    AccountFactory.create(slug="mine")
    with pytest.raises(CommandError, match="can't be read") as caught:
        run("import_suppressions", f"{os.sep}nowhere.csv", "--account", "mine")
    assert caught.value.returncode == 2
    with pytest.raises(CommandError, match="can't be written"):
        run("export_suppressions", "--output", f"{os.sep}nowhere{os.sep}list.csv")


def test_export_leaves_out_what_has_expired() -> None:
    SuppressionFactory.create(expires=timezone.now() - timedelta(days=1), email="old@example.org")
    everything = "".join(export_chunks(Suppression.objects.all()))
    assert "old@example.org" in everything
