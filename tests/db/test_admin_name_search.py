"""Lists and autocompletes search the beginning of a name, words and all."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from campaigns.models import Campaign, Content, Image, Layout
from sending.models import Send
from subscribers.models import (
    Account,
    AttributeDefinition,
    ImportJob,
    Segment,
    SignupForm,
    Subscriber,
)
from tests.db.admin_pages import member_client, url
from tests.factories import (
    AccountFactory,
    AttributeDefinitionFactory,
    CampaignFactory,
    ContentFactory,
    ImageFactory,
    ImportJobFactory,
    LayoutFactory,
    SegmentFactory,
    SendFactory,
    SignupFormFactory,
    SubscriberFactory,
)

pytestmark = pytest.mark.django_db

MADE: dict[type[Any], tuple[Any, str]] = {
    Account: (AccountFactory, "name"),
    Campaign: (CampaignFactory, "name"),
    Layout: (LayoutFactory, "name"),
    Image: (ImageFactory, "name"),
    Content: (ContentFactory, "subject"),
    Segment: (SegmentFactory, "name"),
    SignupForm: (SignupFormFactory, "name"),
    ImportJob: (ImportJobFactory, "file_name"),
    AttributeDefinition: (AttributeDefinitionFactory, "label"),
}
#: What is typed, and the names that it finds.
TYPED = [
    ("Spring sale", ["Spring sale 2030"]),
    ("spring SALE 2", ["Spring sale 2030"]),
    ("   Spring sale  ", ["Spring sale 2030"]),
    ('"Spring sale"', ["Spring sale 2030"]),
    ("'Spring sale 2030'", ["Spring sale 2030"]),
    ('"Quoted" it', ['"Quoted" it is']),
    ('"Quoted"', ['"Quoted" it is']),
    ("100%", ["100% wool"]),
    ("100% w", ["100% wool"]),
    ("a_", ["a_b c"]),
    ("sale", []),
    ("Spring 2030", []),
    ("%", []),
    ("_", []),
    ('"', ['"Quoted" it is']),
    ("\\", []),
]
NAMES = [
    "Spring sale 2030",
    "Springs",
    '"Quoted" it is',
    "100% wool",
    "1000 wools",
    "a_b c",
    "axb c",
]


@pytest.fixture(autouse=True)
def media(settings: Any, tmp_path: Any) -> None:
    settings.MEDIA_ROOT = tmp_path


def fill(model: type[Any]) -> None:
    factory, field = MADE[model]
    for name in NAMES:
        factory.create(**{field: name})


def found_by(client: Client, model: type[Any], typed: str) -> list[str]:
    answer = client.get(url(model, "changelist"), {"q": typed})
    assert answer.status_code == 200
    return [getattr(row, MADE[model][1]) for row in answer.context["cl"].result_list]


@pytest.mark.parametrize("model", MADE, ids=lambda model: model.__name__)
def test_a_list_is_searched_by_the_beginning_of_a_name(
    superuser_client: Client, model: type[Any]
) -> None:
    fill(model)
    for typed, names in TYPED:
        assert found_by(superuser_client, model, typed) == names, typed
    assert len(found_by(superuser_client, model, "  ")) >= len(NAMES)


@pytest.mark.parametrize(("typed", "names"), TYPED)
def test_an_autocomplete_is_searched_alike(
    superuser_client: Client, typed: str, names: list[str]
) -> None:
    fill(Account)
    answer = superuser_client.get(
        reverse("admin:autocomplete"),
        {
            "app_label": "sendonce_subscribers",
            "model_name": "segment",
            "field_name": "account",
            "term": typed,
        },
    )
    assert [row["text"] for row in answer.json()["results"]] == names


def test_the_other_field_is_searched_too(superuser_client: Client) -> None:
    CampaignFactory.create(name="One", subject="Two words here")
    assert found_by(superuser_client, Campaign, "two words") == ["One"]
    SegmentFactory.create(name="Readers", slug="two-words")
    assert found_by(superuser_client, Segment, "two-w") == ["Readers"]


def test_only_own_rows_are_found() -> None:
    CampaignFactory.create(name="Spring sale of others")
    mine = CampaignFactory.create(name="Spring sale of mine")
    client, _ = member_client(mine.account)
    assert found_by(client, Campaign, "Spring sale") == ["Spring sale of mine"]


def test_the_database_is_asked_for_one_beginning(superuser_client: Client) -> None:
    with CaptureQueriesContext(
        connection,
    ) as caught:
        found_by(superuser_client, Layout, "Spring sale")
    asked = [query["sql"] for query in caught if "LIKE" in query["sql"]]
    assert asked
    for sql in asked:
        assert sql.count("LIKE") == 1
        assert "LIKE UPPER('Spring sale%')" in sql


def test_addresses_and_job_ids_are_searched_as_before(superuser_client: Client) -> None:
    SubscriberFactory.create(email="ann@example.org")
    send = SendFactory.create(email="bob@example.org")
    for model, typed, number in (
        (Subscriber, " ANN@ex ", 1),
        (Subscriber, '"ann@example.org"', 1),
        (Subscriber, "nn@example.org", 0),
        (Send, "bob@", 1),
        (Send, send.job_id, 1),
        (Send, send.job_id[:-1] + "x", 0),
    ):
        answer = superuser_client.get(url(model, "changelist"), {"q": typed})
        assert len(answer.context["cl"].result_list) == number, typed
