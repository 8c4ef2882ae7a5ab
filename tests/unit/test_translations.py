"""The words of the public pages and mails in each language, and which language somebody gets."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polib
import pytest
from django.conf import settings
from django.test import Client, RequestFactory, override_settings
from django.utils.translation.template import templatize

from campaigns import footers
from subscribers.languages import language_for, language_of, spoken
from tests.conftest import ROOT

LOCALES = ROOT / "subscribers" / "locale"
CATALOGUES = sorted(LOCALES.glob("*/LC_MESSAGES/django.po"))
TEMPLATES = sorted((ROOT / "subscribers/templates/sendonce_subscribers").rglob("*.html"))
CODE = [
    path for app in ("subscribers", "campaigns", "sending") for path in (ROOT / app).rglob("*.py")
]
#: The functions that mark words for translation, by their name; those that count take two texts.
MARKS = {
    "_": 1,
    "gettext": 1,
    "gettext_lazy": 1,
    "gettext_noop": 1,
    "ngettext": 2,
    "ngettext_lazy": 2,
}
FIELD = re.compile(r"%\(\w+\)[sd]|\{\{.*?\}\}")


def marked(source: str) -> Iterator[tuple[str, ...]]:
    """The texts that Python code marks: one of each, or the singular and the plural."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
            texts = [
                a.value for a in node.args[: MARKS.get(name, 0)] if isinstance(a, ast.Constant)
            ]
            if texts and all(isinstance(text, str) for text in texts):
                yield tuple(map(str, texts))


def in_template(path: Path) -> Iterator[tuple[str, ...]]:
    """As ``makemessages`` finds them: each mark of the template as a call in Python."""
    for call in re.finditer(
        r"""(?:_|n?gettext)\(((?:u?(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'),?\s*)+)""",
        templatize(path.read_text()),
    ):
        yield tuple(ast.literal_eval(f"({call[1]},)".replace(",,", ",").replace(", ,", ",")))


def all_texts() -> set[tuple[str, ...]]:
    found = {texts for path in CODE for texts in marked(path.read_text())}
    return found | {texts for path in TEMPLATES for texts in in_template(path)}


def test_the_texts_are_found() -> None:
    found = all_texts()
    assert len(found) > 60
    assert ("Unsubscribe?",) in found
    assert ("%(months)s month", "%(months)s months") in found


def test_there_are_french_and_spanish() -> None:
    assert {path.parts[-3] for path in CATALOGUES} >= {"fr", "es"}


@pytest.mark.parametrize("path", CATALOGUES, ids=lambda path: path.parts[-3])
def test_a_catalogue_is_complete(path: Path) -> None:
    catalogue = polib.pofile(str(path))
    texts = {
        (entry.msgid, entry.msgid_plural) if entry.msgid_plural else (entry.msgid,)
        for entry in catalogue
    }
    assert texts == all_texts()
    forms = int(re.findall(r"nplurals=(\d)", catalogue.metadata["Plural-Forms"])[0])
    for entry in catalogue:
        assert not entry.obsolete
        assert not entry.fuzzy, entry.msgid
        said = list(entry.msgstr_plural.values()) if entry.msgid_plural else [entry.msgstr]
        assert len(said) == (forms if entry.msgid_plural else 1)
        for text in said:
            assert text.strip(), entry.msgid
            assert sorted(FIELD.findall(text)) == sorted(FIELD.findall(entry.msgid)), entry.msgid
            assert text[-1:].isalnum() == entry.msgid[-1:].isalnum(), entry.msgid


@pytest.mark.parametrize("path", CATALOGUES, ids=lambda path: path.parts[-3])
def test_what_is_compiled_is_what_is_written(path: Path) -> None:
    written, compiled = polib.pofile(str(path)), polib.mofile(str(path.with_suffix(".mo")))
    assert compiled.metadata["Plural-Forms"] == written.metadata["Plural-Forms"]

    def said(entries: list[polib.POEntry]) -> dict[str, object]:
        return {one.msgid: (one.msgid_plural, one.msgstr, one.msgstr_plural) for one in entries}

    assert said(compiled) == said(written)


# --- which language somebody gets ------------------------------------------------------------


@pytest.mark.parametrize(
    ("locale", "cookie", "accepts", "language"),
    [
        ("", "", "", "en"),
        ("fr", "", "es", "fr"),
        ("fr_CA", "", "", "fr"),
        ("pt-BR", "", "es-MX, en;q=0.5", "es-mx"),
        ("", "", "fr-BE, fr;q=0.9, en;q=0.8", "fr"),
        ("", "es", "fr", "es"),
        ("", "nonsense", "fr", "fr"),
        # Django speaks German, our pages do not: no page may say that it is what it is not.
        ("de", "", "", "en"),
        ("de", "", "de-AT, fr;q=0.3", "fr"),
        ("en-GB", "", "fr", "en-gb"),
        ("tlh", "", "x-klingon, *", "en"),
        ("\0", "", "a" * 9000, "en"),
    ],
)
def test_the_language(locale: str, cookie: str, accepts: str, language: str) -> None:
    request = RequestFactory().get("/", headers={"accept-language": accepts})
    request.COOKIES[settings.LANGUAGE_COOKIE_NAME] = cookie
    assert language_of(request, locale) == language


@pytest.mark.parametrize(
    ("overridden", "locale", "language"),
    [
        ({"LANGUAGE_CODE": "fr"}, "de", "fr"),
        ({"LANGUAGE_CODE": "de"}, "", "en"),
        ({"LANGUAGES": [("es", "Spanish")], "LANGUAGE_CODE": "es"}, "fr", "es"),
        ({"USE_I18N": False}, "fr", "en"),
    ],
)
def test_the_language_of_a_mail(overridden: dict[str, object], locale: str, language: str) -> None:
    with override_settings(**overridden):
        assert language_for(locale) == language


@pytest.fixture
def arabic(tmp_path: Path) -> Iterator[None]:
    """A language that a host adds: a catalogue of its own, as the guide says."""
    folder = tmp_path / "ar" / "LC_MESSAGES"
    folder.mkdir(parents=True)
    catalogue = polib.POFile()
    catalogue.metadata = {"Content-Type": "text/plain; charset=UTF-8"}
    catalogue.append(polib.POEntry(msgid="You are unsubscribed", msgstr="تم إلغاء اشتراكك"))
    catalogue.append(polib.POEntry(msgid="This link is not valid", msgstr="هذا الرابط غير صالح"))
    catalogue.save_as_mofile(str(folder / "django.mo"))
    with override_settings(LOCALE_PATHS=[str(tmp_path)]):
        yield


def unknown(accepts: str) -> Any:
    return Client().get(f"/u/{'x' * 32}", headers={"accept-language": accepts})


def test_a_host_adds_a_language(arabic: None) -> None:
    assert spoken("ar") == "ar"
    answer = unknown("ar-EG")
    page = answer.content.decode()
    assert '<html lang="ar" dir="rtl">' in page
    assert "هذا الرابط غير صالح" in page
    assert answer.headers["Content-Language"] == "ar"


@pytest.mark.parametrize(
    ("accepts", "title"),
    [
        ("en", "This link is not valid"),
        ("fr", "Ce lien n’est pas valable"),
        ("es", "Este enlace no es válido"),
        ("ar", "This link is not valid"),
    ],
)
def test_the_page_says_so(accepts: str, title: str) -> None:
    page = unknown(accepts).content.decode()
    language = "en" if accepts == "ar" else accepts
    assert f'<html lang="{language}">' in page
    assert f"<title>{title}</title>" in page


@override_settings(LANGUAGE_CODE="fr")
def test_the_footer_of_a_campaign_is_translated_too() -> None:
    assert footers._footer_words() == "Se désabonner"
