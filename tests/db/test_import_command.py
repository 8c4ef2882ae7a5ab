"""``import_subscribers``, as it is typed."""

from __future__ import annotations

import io
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from subscribers.models import Segment, Subscriber
from tests.factories import SegmentFactory

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
