"""Imports in the admin: hostile files and names, and whose imports one reaches."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from subscribers.models import (
    Account,
    ImportChunk,
    ImportJob,
    Segment,
    Subscriber,
)
from tests.db.admin_pages import grant_all, member_client, url
from tests.db.import_pages import press, upload, upload_form
from tests.factories import AccountFactory, SegmentFactory, StaffFactory

pytestmark = pytest.mark.django_db(transaction=True)

Status = ImportJob.Status


@pytest.fixture
def segment() -> Any:
    return SegmentFactory.create(name="Readers")


# --- hostile -------------------------------------------------------------------------------------

HTML = '<img src=x onerror="alert(1)">'


def test_names_and_cells_are_shown_as_text(superuser_client: Client, segment: Any) -> None:
    data = f"email,{HTML.replace(chr(34), '')}\nann@example.org,{HTML.replace(chr(34), '')}\n"
    job = upload(superuser_client, segment, data + "<b>no</b>,x\n", name="<b>people<b>.csv")
    pages = [superuser_client.get(url(ImportJob, "mapping", job.pk))]
    pages.append(press(superuser_client, job, "try", **{"target-1": "new:text", "key-1": "n"}))
    press(superuser_client, job, "import", **{"target-1": "new:text", "key-1": "n"})
    pages.append(superuser_client.get(url(ImportJob, "change", job.pk)))
    pages.append(superuser_client.get(url(ImportJob, "changelist")))
    for page in pages:
        assert "<img src=x" not in page.content.decode()
        assert "<b>people" not in page.content.decode()
        assert "<b>no" not in page.content.decode()


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"", "empty"),
        (b"GIF89a\x01\x00\x01\x00", "picture"),
        (b"PK\x03\x04 but no workbook", "xlsx"),
        (b'{"email": 1}', "JSON"),
        (b"\0" * 5000, ""),
        (b"just some words\nand more of them\n", None),
    ],
    ids=["empty", "gif", "zip", "json", "nul", "text"],
)
def test_a_file_that_is_no_table_is_refused_with_the_reason(
    superuser_client: Client, segment: Any, data: bytes, word: str | None
) -> None:
    answer = superuser_client.post(url(Subscriber, "import"), upload_form(segment, data))
    if word is None:  # a table of one column without addresses: the mapping page says so
        assert answer.status_code == 302
        job = ImportJob.objects.get()
        page = press(superuser_client, job, "import")
        assert "no e-mail column" in page.context["first"].error
    else:
        assert word in str(answer.context["form"].errors["file"])
        assert not ImportJob.objects.exists()
    assert not Subscriber.objects.exists()


def test_a_workbook_that_unpacks_without_end_is_refused(
    superuser_client: Client, segment: Any
) -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as book:
        book.writestr("[Content_Types].xml", "<Types/>")
        with book.open("xl/worksheets/sheet1.xml", "w", force_zip64=True) as sheet:
            for _ in range(300):
                sheet.write(b" " * (1 << 20))
    answer = superuser_client.post(
        url(Subscriber, "import"), upload_form(segment, data.getvalue(), name="bomb.xlsx")
    )
    assert answer.context["form"].errors["file"]
    assert not ImportJob.objects.exists()


# --- whose ---------------------------------------------------------------------------------------


@pytest.fixture
def foreign(superuser_client: Client) -> Any:
    """A draft of another account."""
    segment = SegmentFactory.create(name="secretname", account__name="secretname account")
    return upload(superuser_client, segment, name="secretname.csv")


def test_another_accounts_imports_are_not_there(foreign: Any) -> None:
    client, _ = member_client(AccountFactory.create())
    for page in ("mapping", "state", "cancel", "rejects", "change", "go_on"):
        for answer in (
            client.get(url(ImportJob, page, foreign.pk)),
            client.post(url(ImportJob, page, foreign.pk), {"import": "yes"}),
        ):
            assert answer.status_code in (302, 403, 405), page
            assert (
                "secretname"
                not in (b"".join(answer) if answer.streaming else answer.content).decode()
            )
            assert "mapping" not in answer.get("Location", ""), page
    assert "secretname" not in client.get(url(ImportJob, "changelist")).content.decode()
    foreign.refresh_from_db()
    assert foreign.status == Status.DRAFT
    assert ImportChunk.objects.exists()


def test_a_forged_upload_names_nothing_of_another_account(foreign: Any) -> None:
    mine = AccountFactory.create()
    client, _ = member_client(mine)
    before = ImportJob.objects.count()
    form = upload_form(foreign.segment)
    assert client.post(url(Subscriber, "import"), form).status_code == 403
    answer = client.post(
        url(Subscriber, "import"), {**upload_form(foreign.segment), "account": mine.pk}
    )
    assert list(answer.context["form"].errors) == ["segment"]
    page = client.get(url(Subscriber, "import"), {"segment": foreign.segment_id})
    assert "secretname" not in page.content.decode()
    assert client.get(url(Subscriber, "import"), {"account": foreign.account_id}).status_code == 403
    assert ImportJob.objects.count() == before


def test_a_member_of_two_accounts_chooses_first() -> None:
    accounts = [AccountFactory.create(), AccountFactory.create()]
    AccountFactory.create(name="secretname")
    client, _ = member_client(*accounts)
    page = client.get(url(Subscriber, "import"))
    assert set(page.context["accounts"]) == set(accounts)
    page = client.get(url(Subscriber, "import"), {"account": accounts[1].pk})
    assert page.context["account"] == accounts[1]


def without(account: Account, *names: str) -> Client:
    user = StaffFactory.create()
    grant_all(user)
    user.user_permissions.remove(*user.user_permissions.filter(codename__in=names))
    account.members.add(user)
    client = Client()
    client.force_login(user)
    return client


def test_importing_needs_its_permission(superuser_client: Client, segment: Any) -> None:
    job = upload(superuser_client, segment)
    client = without(segment.account, "import_subscriber")
    assert client.get(url(Subscriber, "import")).status_code == 403
    assert client.post(url(Subscriber, "import"), upload_form(segment)).status_code == 403
    assert client.post(url(ImportJob, "mapping", job.pk), {"import": "yes"}).status_code == 403
    assert client.post(url(ImportJob, "cancel", job.pk)).status_code == 403
    assert client.post(url(ImportJob, "go_on", job.pk)).status_code == 403
    listed = client.get(url(Subscriber, "changelist")).content.decode()
    assert url(Subscriber, "import") not in listed
    assert url(Subscriber, "export") in listed
    # Who may view imports still sees them.
    assert client.get(url(ImportJob, "change", job.pk)).status_code == 200
    nobody = without(segment.account, "import_subscriber", "view_importjob", "change_importjob")
    assert nobody.get(url(ImportJob, "change", job.pk)).status_code == 403
    assert nobody.get(url(ImportJob, "rejects", job.pk)).status_code == 403


def test_a_new_segment_needs_its_permission(segment: Any) -> None:
    client = without(segment.account, "add_segment")
    assert "new_segment" not in client.get(url(Subscriber, "import")).context["form"].fields
    form = upload_form(segment, segment="", new_segment="Mine")
    answer = client.post(url(Subscriber, "import"), form)
    assert list(answer.context["form"].errors) == ["segment"]
    assert Segment.objects.count() == 1


def test_the_names_are_those_of_django_import_export() -> None:
    base = "admin:sendonce_subscribers_subscriber"
    changelist = reverse(f"{base}_changelist")
    assert reverse(f"{base}_import") == f"{changelist}import/"
    assert reverse(f"{base}_export") == f"{changelist}export/"


@pytest.mark.parametrize("method", ["put", "delete", "patch"])
def test_other_methods_do_nothing(superuser_client: Client, segment: Any, method: str) -> None:
    job = upload(superuser_client, segment)
    for page in ("mapping", "cancel", "go_on", "change"):
        getattr(superuser_client, method)(url(ImportJob, page, job.pk))
    assert ImportJob.objects.get().status == Status.DRAFT
