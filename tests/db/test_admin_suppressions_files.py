"""The suppression list in and out of the admin as files."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from subscribers.models import AuditEvent, Suppression
from subscribers.rights.acts import erase_person
from subscribers.suppression import suppress
from tests.db.admin_pages import member_client, url
from tests.factories import AccountFactory, SuppressionFactory

pytestmark = pytest.mark.django_db

ANN = "Ann@example.org"

# --- files ---------------------------------------------------------------------------------------


def uploaded(client: Client, scope: Any, text: str, **more: Any) -> Any:
    file = SimpleUploadedFile("list.csv", text.encode())
    data = {"file": file, "scope": scope, "reason": "manual", **more}
    return client.post(url(Suppression, "import"), data)


def test_a_file_is_checked_and_imported(superuser_client: Client) -> None:
    account = AccountFactory.create()
    text = "email,reason\nann@example.org,complaint\nnobody,\n"
    answer = uploaded(superuser_client, account.pk, text, check="yes")
    assert (answer.context["report"].added, answer.context["report"].rejected) == (1, 1)
    assert "Nothing was changed" in answer.content.decode()
    assert not Suppression.objects.exists()
    answer = uploaded(superuser_client, account.pk, text)
    assert answer.context["report"].added == 1
    assert "nobody" in answer.content.decode()
    assert Suppression.objects.get().reason == "complaint"


def test_staff_import_for_their_accounts_only() -> None:
    mine, other = AccountFactory.create(), AccountFactory.create()
    client, _ = member_client(mine)
    for scope in (other.pk, "all", ""):
        answer = uploaded(client, scope, "email\nann@example.org\n")
        assert "scope" in answer.context["form"].errors
    assert other.name not in client.get(url(Suppression, "import")).content.decode()
    assert not Suppression.objects.exists()
    uploaded(client, mine.pk, "email\nann@example.org\n")
    assert Suppression.objects.get().account == mine


def test_superusers_import_for_all(superuser_client: Client) -> None:
    uploaded(superuser_client, "all", "email\nann@example.org\n")
    assert Suppression.objects.get().account is None


@pytest.mark.parametrize("text", ["", "name,city\nAnn,Ulm\n", "\x00\x01\x02"])
def test_a_file_that_is_none_is_the_fields_error(superuser_client: Client, text: str) -> None:
    answer = uploaded(superuser_client, AccountFactory.create().pk, text)
    assert "file" in answer.context["form"].errors
    assert not AuditEvent.objects.exists()


def download(client: Client, **data: Any) -> str:
    answer: Any = client.post(
        url(Suppression, "export"), {"scope": "", "reason": "", "state": "", **data}
    )
    assert answer["Content-Type"].startswith("text/csv")
    return b"".join(answer.streaming_content).decode()


def test_the_download_holds_what_was_chosen_and_is_on_record(superuser_client: Client) -> None:
    account = AccountFactory.create(slug="mine")
    suppress(account, ANN, "complaint", evidence="=1+1")
    suppress(account, "bob@example.org", "manual")
    suppress(None, "cid@example.org", "manual")
    erase_person(account, "dan@example.org", by_name="Bea", reason="asked")
    lines = download(superuser_client).splitlines()
    assert lines[0] == "email,reason,evidence,expires,created,account"
    assert [line.split(",")[0] for line in lines[1:]] == [
        ANN, "bob@example.org", "cid@example.org",
    ]  # fmt: skip
    assert "'=1+1" in lines[1]
    assert lines[1].endswith(",mine")
    assert "bob" not in download(superuser_client, reason="complaint")
    assert "cid" not in download(superuser_client, scope=account.pk)
    assert "bob" not in download(superuser_client, scope="all")
    event = AuditEvent.objects.filter(verb="suppression.export").latest("pk")
    assert event.detail["entries"] == 1


def test_staff_export_their_own_and_with_a_permission() -> None:
    account = AccountFactory.create()
    suppress(account, ANN, "manual")
    SuppressionFactory.create(email="other@example.org")
    SuppressionFactory.create(account=None, email="all@example.org")
    client, user = member_client(account)
    assert [line.split(",")[0] for line in download(client, scope=account.pk).splitlines()] == [
        "email", ANN,
    ]  # fmt: skip
    user.user_permissions.set(
        Permission.objects.exclude(codename__in=["export_suppression", "import_suppression"])
    )
    for page in ("export", "import"):
        assert client.get(url(Suppression, page)).status_code == 403
        assert client.post(url(Suppression, page)).status_code == 403
        assert f"{page}/" not in client.get(url(Suppression, "changelist")).content.decode()
