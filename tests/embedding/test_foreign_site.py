"""A Django site that is not ours embeds the published wheel, as docs/embedding.md says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from email import message_from_binary_file
from email.policy import default
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from tests.crash.conftest import Sink

from .conftest import PROJECT, Commands, Run

HOST = "www.example.org"
#: What a mail program does with the link, and what the site then knows. By http, which the
#: site redirects elsewhere.
ONE_CLICK = f"""
import sys, django
django.setup()
from django.test import Client
from subscribers.models import Subscriber
path, email = sys.argv[1:]
client = Client(headers={{"host": "{HOST}"}})
page = client.get(path)
done = client.post(path, {{"List-Unsubscribe": "One-Click"}})
status = Subscriber.objects.get(email=email).status
print(client.get("/staff/").status_code, page.status_code, done.status_code, status)
"""
#: The staff of the site, whose users have no user name, look at what was sent.
STAFF = f"""
import sys, django
django.setup()
from django.contrib.admin import site
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import reverse
client = Client(headers={{"host": "{HOST}"}})
client.force_login(get_user_model().objects.get(badge="7"))
for model in site._registry:
    meta = model._meta
    if not meta.app_label.startswith("sendonce_"):
        continue
    name = f"admin:{{meta.app_label}}_{{meta.model_name}}"
    pages = [reverse(f"{{name}}_changelist")]
    if (one := model._default_manager.first()) is not None:
        pages.append(reverse(f"{{name}}_change", args=[one.pk]))
    for page in pages:
        print(client.get(page, secure=True).status_code, page)
"""


@pytest.fixture
def relay(tmp_path: Path) -> Iterator[Sink]:
    made = Sink(tmp_path / "sink.jsonl", [])
    made.start()
    yield made
    made.stop()


def tables(database_url: str) -> set[str]:
    with psycopg.connect(database_url) as connection:
        rows = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        return {name for (name,) in rows}


def test_the_apps_come_from_the_wheel(host: Run, site_packages: Path) -> None:
    names = ("subscribers", "campaigns", "sending", "shop")
    found = host("-c", f"import {', '.join(names)}\nfor m in {', '.join(names)}: print(m.__file__)")
    *ours, shop = map(Path, found.splitlines())
    assert [path.relative_to(site_packages).parts[0] for path in ours] == list(names[:-1])
    assert shop.is_relative_to(PROJECT)


def test_a_foreign_site_sends_a_campaign(
    host: Run, commands: Commands, relay: Sink, empty_database_url: str, tmp_path: Path
) -> None:
    """From an empty database to an unsubscription, and away again without a trace."""
    assert tables(empty_database_url) == set()
    host("-m", "django", "migrate", "--verbosity", "0")
    before = tables(empty_database_url)
    assert {"shop_clerk", "sendonce_sending_send"} <= before
    _, checked, first, second = commands(
        "makemigrations --check --dry-run",
        "check --fail-level WARNING --database default",
        "announce default ann@example.org bob@example.org",
        "announce files cid@example.org",
    )
    assert checked == "System check identified no issues (0 silenced).\n"

    _, told, status = commands(
        "run_sender --drain --lanes 2",
        "ledger --json",
        "sender_status --json",
        RELAY_PORT=str(relay.port),
    )
    assert sorted(e["recipient"] for e in relay.accepted()) == [
        "ann@example.org",
        "bob@example.org",
    ]
    assert [(c["campaign"], c["status"], c["sent"], c["holds"]) for c in json.loads(told)] == [
        (int(first), "sent", 2, True),
        (int(second), "sent", 1, True),
    ]
    json.loads(status)

    (mail,) = (tmp_path / "mail").iterdir()
    with mail.open("rb") as file:
        message = message_from_binary_file(file, policy=default)
    assert message["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    link = urlsplit(str(message["List-Unsubscribe"]).strip("<>"))
    assert (link.scheme, link.netloc) == ("https", HOST)
    assert link.path.startswith("/mail/u/")
    clicked = host("-c", ONE_CLICK, link.path, "cid@example.org")
    assert clicked == "301 200 200 unsubscribed\n"

    seen = host("-c", STAFF).splitlines()
    assert len(seen) >= 8
    assert [line for line in seen if not line.startswith("200 /staff/sendonce_")] == []

    commands(
        *(
            f"migrate sendonce_{app} zero --verbosity 0"
            for app in ("sending", "campaigns", "subscribers")
        )
    )
    left = tables(empty_database_url)
    assert left == {name for name in before if not name.startswith("sendonce_")}
    assert "shop_clerk" in left
