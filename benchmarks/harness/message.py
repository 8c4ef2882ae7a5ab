"""The message of all benchmarks: personalised, about 6 kB on the wire, text and HTML.

The same content is given to the peers, so nothing here needs more than Python's own library.
"""

from __future__ import annotations

PARAGRAPHS = 18
FROM = "news@example.org"
SUBJECT = "News for {{ first_name }}"

HTML = """<!doctype html><html lang="en"><body style="font-family:sans-serif">
<h1>Hello {{ first_name|default:"there" }}</h1>
<p>Your city, {{ city }}, and what is new there.</p>
PARAGRAPHS
<p><a href="{{ unsubscribe_url }}">Unsubscribe</a></p></body></html>
""".replace(
    "PARAGRAPHS",
    "\n".join(
        f'<p style="margin:0 0 12px">Paragraph {n}: the quick brown fox jumps over the lazy dog, '
        f'again and <a href="https://www.example.org/{n}">again</a>.</p>'
        for n in range(PARAGRAPHS)
    ),
)

#: About what Sendonce makes of the HTML by itself; peers are given it.
TEXT = """Hello {{ first_name|default:"there" }}

Your city, {{ city }}, and what is new there.

PARAGRAPHS

Unsubscribe: {{ unsubscribe_url }}
""".replace(
    "PARAGRAPHS",
    "\n\n".join(
        f"Paragraph {n}: the quick brown fox jumps over the lazy dog, again and again."
        for n in range(PARAGRAPHS)
    ),
)


def address(number: int) -> str:
    return f"person{number}@example.org"


def context(number: int) -> dict[str, str]:
    """The merge fields of recipient ``number``, as the subscribers of the benchmarks have them."""
    return {
        "email": address(number),
        "first_name": f"Zoë {number}",
        "city": "Łódź",
        "unsubscribe_url": f"https://www.example.org/u/{number:048d}",
    }
