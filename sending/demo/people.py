"""Invented subscribers: names in many scripts, addresses in the example domains (RFC 2606)."""

from __future__ import annotations

import csv
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

DOMAINS = ("example.org", "example.net", "example.com")
CITIES = ("Bergen", "Łódź", "Αθήνα", "Қазан", "القاهرة", "חיפה", "पुणे", "京都", "부산", "เชียงใหม่")
COLUMNS = ("email", "first_name", "last_name", "city", "locale")

#: Per script: locale, given names, family names, each with what stands for it in an address.
SCRIPTS: tuple[tuple[str, tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]], ...] = (
    (
        "en",
        (("Alice", "alice"), ("Noah", "noah"), ("Mary-Jane", "mary-jane"), ("Seán", "sean")),
        (("O'Connor", "oconnor"), ("Smith", "smith"), ('"Ace" Miller', "miller"), ("Li", "li")),
    ),
    (
        "de",
        (("Jürgen", "juergen"), ("Zoë", "zoe"), ("Björn", "bjoern"), ("Änne", "aenne")),
        (("Müller", "mueller"), ("Groß", "gross"), ("Yılmaz", "yilmaz"), ("von Öhsen", "oehsen")),
    ),
    (
        "pl",
        (
            ("Łukasz", "lukasz"),
            ("Świętosława", "swietoslawa"),
            ("Jiří", "jiri"),
            ("Žofia", "zofia"),
        ),
        (("Dvořák", "dvorak"), ("Wójcik", "wojcik"), ("Nguyễn", "nguyen"), ("Ştefănescu", "stef")),
    ),
    (
        "el",
        (("Αλέξανδρος", "alexandros"), ("Ελένη", "eleni"), ("Σοφία", "sofia")),
        (("Παπαδόπουλος", "papadopoulos"), ("Νικολάου", "nikolaou"), ("Βλάχος", "vlachos")),
    ),
    (
        "uk",
        (("Олена", "olena"), ("Дмитро", "dmytro"), ("Їжак", "yizhak"), ("Ксенія", "kseniia")),
        (("Шевченко", "shevchenko"), ("Ковальчук", "kovalchuk"), ("Щербина", "shcherbyna")),
    ),
    (
        "ar",
        (("فاطمة", "fatima"), ("محمد", "muhammad"), ("ليلى", "layla")),
        (("الخوري", "khoury"), ("حداد", "haddad"), ("المصري", "masri")),
    ),
    (
        "he",
        (("נועה", "noa"), ("יוסף", "yosef"), ("תמר", "tamar")),
        (("כהן", "cohen"), ("בן־דוד", "ben-david"), ("מזרחי", "mizrahi")),
    ),
    (
        "hi",
        (("अनन्या", "ananya"), ("अर्जुन", "arjun"), ("श्रेया", "shreya")),
        (("शर्मा", "sharma"), ("पटेल", "patel"), ("द्विवेदी", "dwivedi")),
    ),
    (
        "zh",
        (("小明", "xiaoming"), ("雅婷", "yating"), ("𠮷田", "jitian")),
        (("王", "wang"), ("李", "li"), ("歐陽", "ouyang")),
    ),
    (
        "ja",
        (("さくら", "sakura"), ("健太", "kenta"), ("ユミ", "yumi")),
        (("佐藤", "sato"), ("髙橋", "takahashi"), ("渡邉", "watanabe")),
    ),
    (
        "ko",
        (("지우", "jiwoo"), ("민준", "minjun"), ("서연", "seoyeon")),
        (("김", "kim"), ("박", "park"), ("남궁", "namgung")),
    ),
    (
        "th",
        (("สมชาย", "somchai"), ("น้ำผึ้ง", "namphueng"), ("กิตติ", "kitti")),
        (("ใจดี", "jaidee"), ("ศรีสุข", "srisuk"), ("วงศ์ใหญ่", "wongyai")),
    ),
    (
        "en",
        (("Robin 🦊", "robin"), ("🌸 Mei", "mei"), ("Sam 👩‍🚀", "sam")),
        (("Sunshine ☀️", "sunshine"), ("Fox", "fox"), ("🎈", "balloon")),
    ),
)


@dataclass(frozen=True, slots=True)
class Person:
    """One invented subscriber; ``locale`` is a BCP 47 language."""

    email: str
    first_name: str
    last_name: str
    city: str
    locale: str


def generate(count: int, seed: int) -> Iterator[Person]:
    """``count`` people, the same ones for the same seed; no two share an address."""
    chance = random.Random(seed)
    for number in range(1, count + 1):
        # In turn, so that a small audience has every script too.
        locale, given, family = SCRIPTS[number % len(SCRIPTS)]
        (first, first_latin), (last, last_latin) = chance.choice(given), chance.choice(family)
        local = f"{first_latin}.{last_latin}.{number}"
        if number % 11 == 0:
            local = f"{first_latin}+news{number}"
        if number % 17 == 0:
            local = local.title()
        yield Person(
            email=f"{local}@{chance.choice(DOMAINS)}",
            first_name=first,
            last_name=last,
            city=chance.choice(CITIES),
            locale=locale,
        )


def write_csv(people: Iterator[Person], file: IO[str]) -> int:
    """Write a file as ``import_subscribers`` reads it; returns the rows."""
    writer = csv.writer(file)
    writer.writerow(COLUMNS)
    rows = 0
    for person in people:
        writer.writerow(getattr(person, name) for name in COLUMNS)
        rows += 1
    return rows
