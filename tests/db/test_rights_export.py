"""What is told to a person who asks what is known of them."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from subscribers import hooks
from subscribers.audit import record
from subscribers.models import AuditEvent, ImportReject, Subscriber, Suppression
from subscribers.rights.acts import erase_person, export_person
from subscribers.suppression import is_suppressed, suppress
from tests.factories import (
    AccountFactory,
    ImportJobFactory,
    ImportRejectFactory,
    MembershipChangeFactory,
    SegmentFactory,
    SendFactory,
    SignupFactory,
    SubscriberFactory,
)

pytestmark = pytest.mark.django_db

ANN = "Ann@example.org"


def test_all_that_is_known() -> None:
    account = AccountFactory.create(slug="mine")
    segment = SegmentFactory.create(account=account, name="News")
    person = SubscriberFactory.create(
        account=account, email=ANN, segments=[segment], attributes={"city": "Ulm"}, locale="de"
    )
    MembershipChangeFactory.create(segment=segment, subscriber=person, source="their page")
    SignupFactory.create(account=account, email=ANN, confirmed=True, subscriber=person)
    suppress(account, ANN, "manual", evidence="by phone")
    suppress(None, ANN, "hard_bounce")
    ImportRejectFactory.create(
        job=ImportJobFactory.create(account=account), line=7, cells=[ANN, "Ulm"], reason="late"
    )
    record(account, "suppression.add", by_name="Bea", subject=ANN, reason="by phone")

    told = export_person(account, " mailto:ann@EXAMPLE.org ")

    assert told["account"] == {"name": account.name, "slug": "mine"}
    assert told["address"] == "ann@example.org"
    (known,) = told["subscriber"]
    assert (known["email"], known["attributes"], known["locale"]) == (ANN, {"city": "Ulm"}, "de")
    (place,) = known["segments"]
    assert place["segment"] == "News"
    assert [change["source"] for change in place["history"]] == ["their page"]
    (signup,) = told["sign_ups"]
    assert signup["agreed_to"].startswith("Send me")
    assert (signup["requested_from"], signup["confirmed_from"]) == ("192.0.2.1", "192.0.2.2")
    assert [(row["for"], row["reason"]) for row in told["suppressions"]] == [
        ("this account", "manual"), ("all accounts", "hard_bounce"),
    ]  # fmt: skip
    assert told["rejected_rows_of_imports"] == [
        {"file": "people.csv", "line": 7, "reason": "late", "cells": [ANN, "Ulm"]}
    ]
    assert [act["what"] for act in told["acts_of_staff"]] == ["suppression.add"]
    # Who of the staff it was is not the person's to know.
    assert "Bea" not in json.dumps(told["acts_of_staff"])


def test_nothing_of_others() -> None:
    account = AccountFactory.create()
    other = SubscriberFactory.create(email=ANN, attributes={"secret": "x"})
    SignupFactory.create(account=other.account, email=ANN)
    suppress(other.account, ANN, "manual")
    record(other.account, "test.act", subject=ANN)
    SubscriberFactory.create(account=account, email="joann@example.org")
    ImportRejectFactory.create(
        job=ImportJobFactory.create(account=account), cells=["joann@example.org"]
    )
    told = export_person(account, ANN)
    assert all(value == [] for value in told.values() if isinstance(value, list))
    assert "secret" not in json.dumps(told)


def test_the_apps_above_add_what_they_know(monkeypatch: pytest.MonkeyPatch) -> None:
    person = SubscriberFactory.create(email=ANN)
    asked: list[Any] = []

    def known(*given: Any) -> dict[str, Any]:
        asked.append(given)
        return {"messages": [{"subject": "Hello"}]}

    monkeypatch.setattr(hooks.personal_data, "_filled", known)
    assert export_person(person.account, ANN)["messages"] == [{"subject": "Hello"}]
    assert asked == [(person.account_id, person.pk, ANN)]


def test_sends_are_told() -> None:
    send = SendFactory.create(sent=True)
    told = export_person(send.account, send.email)
    assert send.campaign.name in json.dumps(told)
    # Tokens would let somebody else act for the person.
    assert str(send.claim_token) not in json.dumps(told)


def test_somebody_who_is_gone() -> None:
    account = AccountFactory.create()
    SubscriberFactory.create(account=account, email=ANN)
    erase_person(account, ANN, by_name="Bea", reason="asked")
    told = export_person(account, ANN)
    assert told["subscriber"] == []
    (row,) = told["suppressions"]
    assert (row["email"], row["reason"]) == (None, "erased")
    assert [act["what"] for act in told["acts_of_staff"]] == ["person.erase"]


# --- commands ------------------------------------------------------------------------------------


def run(*arguments: str) -> str:
    out = io.StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue()


def test_the_command_writes_a_file_of_its_owner_s_and_is_on_record(tmp_path: Path) -> None:
    account = AccountFactory.create(slug="mine")
    SubscriberFactory.create(account=account, email=ANN, attributes={"name": "Änn"})
    path = tmp_path / "ann.json"
    run("export_person", ANN, "--account", "mine", "--output", str(path))
    assert json.loads(path.read_text())["subscriber"][0]["attributes"] == {"name": "Änn"}
    assert path.stat().st_mode & 0o777 == 0o600
    event = AuditEvent.objects.get()
    assert (event.verb, event.subject) == ("person.export", ANN)
    assert event.by_name.endswith("(command line)")


def test_the_command_writes_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    account = AccountFactory.create(slug="mine")
    for _ in range(2):  # that somebody asked before is nothing that is known
        call_command("export_person", ANN, "--account", "mine")
        told = capsys.readouterr()
        assert json.loads(told.out)["address"] == ANN
        assert told.err.strip() == f"Nothing is known of {ANN} in mine."
    SubscriberFactory.create(account=account, email=ANN)
    call_command("export_person", ANN, "--account", "mine")
    assert capsys.readouterr().err == ""


def test_the_command_erases_when_it_was_confirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    account = AccountFactory.create(slug="mine")
    SubscriberFactory.create(account=account, email=ANN)
    call = ("erase_person", ANN, "--account", "mine", "--reason", "asked")
    for typed in ("", "bob@example.org"):
        monkeypatch.setattr("builtins.input", lambda _, typed=typed: typed)
        with pytest.raises(CommandError, match="not confirmed") as caught:
            run(*call)
        assert caught.value.returncode == 2
        assert Subscriber.objects.exists()
    monkeypatch.setattr("builtins.input", lambda _: "ann@EXAMPLE.org")
    assert run(*call).startswith("erased; ")
    assert not Subscriber.objects.exists()
    assert is_suppressed(account, ANN)
    assert run(*call, "--yes") == "erased; nothing was left\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("export_person", ANN, "--account", "nobody"),
        ("export_person", " ", "--account", "mine"),
        ("erase_person", " ", "--account", "mine", "--reason", "asked", "--yes"),
        ("erase_person", ANN, "--account", "mine", "--reason", " ", "--yes"),
        ("erase_person", ANN, "--account", "nobody", "--reason", "asked", "--yes"),
    ],
)
def test_a_wrong_call_is_one_line_and_changes_nothing(arguments: tuple[str, ...]) -> None:
    AccountFactory.create(slug="mine")
    with pytest.raises(CommandError) as caught:
        run(*arguments)
    assert caught.value.returncode == 2
    assert not AuditEvent.objects.exists()
    assert not Suppression.objects.exists()


def test_a_file_can_not_bring_an_erased_person_back(tmp_path: Path) -> None:
    account = AccountFactory.create(slug="mine")
    SegmentFactory.create(account=account, slug="news")
    erase_person(account, ANN, by_name="Bea", reason="asked")
    path = tmp_path / "people.csv"
    path.write_text("email,city,suppressed\nann@EXAMPLE.org,Ulm,complaint\nbob@example.org,Bonn,\n")
    run("import_subscribers", str(path), "--account", "mine", "--segment", "news", "--confirmed")
    assert list(Subscriber.objects.values_list("email", flat=True)) == ["bob@example.org"]
    assert is_suppressed(account, ANN)
    assert not Suppression.objects.filter(email__isnull=False).exists()
    assert "Ulm" not in str(list(ImportReject.objects.values_list("cells", flat=True)))
