"""``import_subscribers``, as it is typed."""

from __future__ import annotations

import io
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from subscribers.importing import Step, showing
from subscribers.importing.applying import Applying
from subscribers.models import AuditEvent, ImportJob, Segment, Subscriber
from tests.factories import AccountFactory, SegmentFactory

from . import imports

pytestmark = pytest.mark.django_db

segment = imports.segment


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
        "1 x An email address must have an @-sign.",
        "1 of the new ones get no campaign until they confirm "
        "(--confirmed: you have their consent).",
        "Columns passed over: column 2.",
        f"Rejected rows, with the reasons: {path}.rejects-dry-run.csv",
        "Dry run: nothing was changed.",
    ]
    rejects = path.with_name("people.csv.rejects.csv")
    assert not rejects.exists()
    assert command(str(path), *where, "--confirmed").startswith("imported 1,")
    assert rejects.exists()
    assert Subscriber.objects.get().consent_source == "import of people.csv"


def test_the_command_refuses_with_one_plain_line(segment: Segment, tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("email\nann@example.org\n")
    account = ["--account", segment.account.slug]
    for arguments, why in (
        (["--account", "nobody", "--segment", segment.slug], "no account 'nobody'"),
        ([*account, "--segment", "nothing"], f"no segment 'nothing'. It has {segment.slug}."),
        ([*account, "--segment", SegmentFactory.create().slug], "has no segment"),
    ):
        with pytest.raises(CommandError, match=why) as caught:
            command(str(path), *arguments)
        assert caught.value.returncode == 2
    with pytest.raises(CommandError, match=r"^No such file: .*missing.csv$") as caught:
        command(str(tmp_path / "missing.csv"), *account, "--segment", segment.slug)
    assert caught.value.returncode == 2
    with pytest.raises(CommandError, match="Is a directory") as caught:
        command(str(tmp_path), *account, "--segment", segment.slug)
    assert caught.value.returncode == 2
    assert not Subscriber.objects.exists()


def test_at_most_ten_segments_are_offered(segment: Segment, tmp_path: Path) -> None:
    for n in range(10, 21):
        SegmentFactory.create(account=segment.account, slug=f"a{n}")
    with pytest.raises(CommandError, match=r"It has a10, a11, .*, a19, \.\.\.\.$"):
        command("x.csv", "--account", segment.account.slug, "--segment", "neu")
    empty = AccountFactory.create()
    with pytest.raises(CommandError, match="It has none yet"):
        command("x.csv", "--account", empty.slug, "--segment", "neu")


def test_the_commonest_reasons_are_told_with_their_cures(segment: Segment, tmp_path: Path) -> None:
    for key, kind in (("size", "number"), ("born", "date")):
        segment.account.attribute_definitions.create(key=key, kind=kind)
    path = tmp_path / "people.csv"
    rows = [f"s{n}@example.org;{n},5;" for n in range(4)]
    rows += [f"t{n}@example.org;{n},125;" for n in range(3)]
    rows += ["b1@example.org;;1.2.2000", "b2@example.org;;2.3.2000", "it's one;;", "it's two;;"]
    rows += ["c1@example.org;;nie", "d1@example.org;nie;", "ann@example.org;1;"]
    path.write_text("email;size;born\n" + "\n".join(rows) + "\n")
    where = ["--account", segment.account.slug, "--segment", segment.slug]
    for more in (["--dry-run"], []):
        lines = command(str(path), *where, *more).splitlines()
        assert "rejected 13;" in lines[0]
        assert lines[1:6] == [
            "4 x size: \u2026 is not a number with a decimal point. (--decimal)",
            "3 x size: \u2026 could be two numbers; write it in one way. (--decimal)",
            "2 x An email address must have an @-sign.",
            "2 x born: \u2026 could be two days; write it like 2026-11-30, or say whether the "
            "day or the month comes first. (--date-order)",
            "1 x born: \u2026 is not a date; write it like 2026-11-30.",
        ]
        assert " x " not in lines[6]


def test_a_file_whose_encoding_is_not_known_names_the_option(
    segment: Segment, tmp_path: Path
) -> None:
    path = tmp_path / "people.csv"
    row = "a@example.org,\u65e5\u672c\u8a9e\n".encode("shift_jis")
    path.write_bytes(b"email,name\n" + row * 20)
    where = ["--account", segment.account.slug, "--segment", segment.slug]
    with pytest.raises(CommandError, match=r"The option is --encoding\.$"):
        command(str(path), *where)


def test_new_attributes_are_labelled_as_their_columns(segment: Segment, tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("email,First  Name,city\nann@example.org,Ann,Graz\n")
    where = ["--account", segment.account.slug, "--segment", segment.slug]
    command(str(path), *where)
    made = segment.account.attribute_definitions.values_list("key", "label")
    assert dict(made) == {"first_name": "First Name", "city": ""}


def test_columns_are_mapped_by_their_names(segment: Segment, tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("E-Mail;Wohnort;Notiz;Größe\nann@example.org;Graz;secret;1,5\n")
    segment.account.attribute_definitions.create(key="size", kind="number")
    where = ["--account", segment.account.slug, "--segment", segment.slug]
    out = command(
        str(path),
        *where,
        "--map",
        "wohnort=attribute:city",
        "--map",
        "Notiz=",
        "--map=GROSSE=attribute:size",
        "--decimal=,",
    )
    assert "Columns passed over: Notiz." in out
    assert Subscriber.objects.get().attributes == {"city": "Graz", "size": 1.5}
    with pytest.raises(CommandError, match="no column 'Stadt'; the file has E-Mail, Wohnort"):
        command(str(path), *where, "--map", "Stadt=attribute:city")
    with pytest.raises(CommandError, match="not of the form"):
        command(str(path), *where, "--map", "Stadt")
    with pytest.raises(CommandError, match="can't mean"):
        command(str(path), *where, "--map", "Notiz=nonsense")


def test_a_file_without_names(segment: Segment, tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("ann@example.org\tAnn\nbob@example.org\tBob\n")
    where = ["--account", segment.account.slug, "--segment", segment.slug]
    out = command(
        str(path),
        *where,
        "--no-header",
        "--delimiter=tab",
        "--map=column 1=email",
        "--map=column 2=attribute:name",
    )
    assert out.startswith("imported 2,")
    assert Subscriber.objects.get(email="bob@example.org").attributes == {"name": "Bob"}
    assert segment.account.attribute_definitions.get().label == ""


def test_it_is_recorded_who_ran_it(segment: Segment, tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("email\nann@example.org\n")
    where = ["--account", segment.account.slug, "--segment", segment.slug]
    command(str(path), *where, "--atomic")
    event = AuditEvent.objects.get()
    assert (event.verb, event.by, event.subject) == ("import.done", None, "people.csv")
    assert event.by_name
    job = ImportJob.objects.get()
    assert (job.by_name, job.options["atomic"], job.runner) == (event.by_name, True, None)


def test_elsewhere_than_on_a_terminal_long_imports_tell_lines(
    segment: Segment, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = io.StringIO()
    monkeypatch.setattr(showing, "_EVERY", 0)
    with showing.shown(out) as progress:
        progress(Step("reading", 50, 200, 7))
        progress(Step("reading", 50, 0, 8))
        progress(Step("writing", 3, 9, 10))
    assert out.getvalue().splitlines() == [
        "read 7 rows, 25 % of the file",
        "read 8 rows",
        "written 3 of 9 rows",
    ]
    out.truncate(0)
    monkeypatch.setattr(showing, "_EVERY", 10)
    with showing.shown(out) as progress:
        progress(Step("writing", 3, 9, 10))
    assert not out.getvalue()


def test_ctrl_c_gives_the_import_back_and_says_how_to_go_on(
    segment: Segment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    path = tmp_path / "people.csv"
    path.write_text("email\nann@example.org\n")
    where = ["--account", segment.account.slug, "--segment", segment.slug]
    with monkeypatch.context() as stopped:
        stopped.setattr(Applying, "_chunk", interrupt)
        with pytest.raises(CommandError, match="same command goes on") as caught:
            command(str(path), *where)
    assert caught.value.returncode == 130
    assert ImportJob.objects.get().lease_until is None
    assert command(str(path), *where).startswith("imported 1,")
    assert ImportJob.objects.count() == 1


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
