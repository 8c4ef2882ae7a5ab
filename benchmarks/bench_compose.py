"""What it costs to build one person's message, beside Django's building of the same one.

    python -m benchmarks.bench_compose --messages 2000 --rounds 5

From a claimed row to the bytes that go on the wire: links signed, templates rendered, text
encoded, headers written. Django (``EmailMultiAlternatives(...).message().as_bytes()``) is given
the rendered subject, text and HTML and the same headers. Rounds of both in turn, CPU time of this
process, medians. Bodies beside the usual one: the same without line ends, as MJML makes it; most
of it inside an ``{% if %}``; one in which every fifth letter is not ASCII; one in Cyrillic, which
goes out in base64, of which nothing is encoded ahead. No database, no network.
"""

from __future__ import annotations

import cProfile
import os
import pstats
import time
from collections.abc import Callable, Iterator
from statistics import median
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

from .harness import command_line, figures, message, table

if TYPE_CHECKING:
    from campaigns.models import Content
    from sending.queue import Claimed

FOX = "the quick brown fox jumps over the lazy dog, again"


def bodies() -> Iterator[tuple[str, str]]:
    html = message.HTML
    yield "usual", html
    yield "one line", html.replace("\n", "")
    yield (
        "inside an if",
        html.replace("<h1>", "{% if city %}<h1>").replace(
            '<p><a href="{{', '{% endif %}<p><a href="{{'
        ),
    )
    yield "accents", html.replace(FOX, "zażółć gęślą jaźń, a potem jeszcze raz to samo, znów")
    yield "Cyrillic", html.replace(FOX, "съешь ещё этих мягких французских булок, да выпей чаю")


def main() -> None:
    parser = command_line.parser(__doc__)
    parser.add_argument("--messages", type=command_line.count, default=2_000)
    parser.add_argument("--rounds", type=command_line.count, default=5)
    parser.add_argument("--profile", action="store_true", help="where the time of the usual goes")
    options = command_line.parse(parser, messages=200, rounds=3)
    os.environ.update(SECRET_KEY="for-the-benchmark-only", DJANGO_SETTINGS_MODULE="config.settings")
    import django

    django.setup()
    from django.conf import settings

    settings.SENDONCE["NAMESPACE"] = str(UUID(int=1))
    rows = [row(number) for number in range(1, options.messages + 1)]
    for name, body in bodies():
        made = content(body)
        ours, size = composing(made, rows)
        if options.profile:
            profile = cProfile.Profile()
            profile.runcall(ours)
            pstats.Stats(profile).sort_stats("tottime").print_stats(25)
            return
        fewer = rows[: max(len(rows) // 5, 1)]
        theirs = django_alone(made, fewer)
        rounds = [
            (seconds(ours) / len(rows), seconds(theirs) / len(fewer)) for _ in range(options.rounds)
        ]
        each = median(mine for mine, _ in rounds) * 1e6
        ratio = median(mine / other for mine, other in rounds)
        print(
            f"{name:<13} {size:>6} bytes  {each:7.1f} us of CPU a message  {ratio:.3f} of Django's"
        )
        key = "compose" if name == "usual" else f"compose_{name.replace(' ', '_').lower()}"
        figures.tell(
            key,
            ratio,
            f"of Django's building; {each:.0f} us a message",
            table.Extent(options.rounds, f"{options.messages:,} messages"),
        )


def content(body: str) -> Content:
    """As it is frozen at approval."""
    from campaigns.content import as_content, compile_content
    from campaigns.models import Campaign
    from subscribers.models import Account

    account = Account(
        pk=1, name="Bench", slug="bench", from_email=message.FROM, postal_address="1 Example Street"
    )
    draft = Campaign(account=account, name="Bench", subject=message.SUBJECT, body=body)
    made = as_content(compile_content(draft), account.pk)
    made.pk, made.account = 1, account
    return made


def row(number: int) -> Claimed:
    from sending.queue import Claimed

    fields = message.context(number)
    return Claimed(
        id=number,
        token=uuid4(),
        account_id=1,
        campaign_id=1,
        subscriber_id=number,
        email=fields["email"],
        email_lower=fields["email"],
        job_id=f"campaign:1:{number}",
        content_id=1,
        context=None,
        attributes={"first_name": fields["first_name"], "city": fields["city"]},
        alias="default",
        trusted_until=float("inf"),
    )


def composing(made: Content, rows: list[Claimed]) -> tuple[Callable[[], None], int]:
    """What composes all rows as a lane does, and the size of a message in bytes."""
    from campaigns.rendering import Renderer
    from sending.compose import Composer, Loaded
    from sending.transports import transport

    composer, over = Composer(), transport("default")
    composer.load(set())  # the namespace only, which the settings give
    loaded = {1: Loaded(made, Renderer(made))}

    def run() -> None:
        for row in rows:
            composer.compose(row, loaded, over=over)

    return run, len(composer.compose(rows[-1], loaded, over=over).data)


def django_alone(made: Content, rows: list[Claimed]) -> Callable[[], None]:
    """What builds the rendered messages of these rows with Django."""
    from django.core.mail import EmailMultiAlternatives
    from django.utils import timezone

    from campaigns.rendering import Renderer
    from sending.messages import Envelope, build_message

    renderer, arguments = Renderer(made), []
    for row in rows:
        fields: dict[str, Any] = {**message.context(row.id), "account": made.account_fields}
        words = renderer.render(fields)
        envelope = Envelope(
            to=row.email,
            from_email=made.from_email,
            from_name=made.from_name,
            reply_to=made.reply_to,
            job_id=row.job_id,
            namespace=UUID(int=1),
            date=timezone.now(),
            account_slug=made.account.slug,
            account_name=made.account.name,
            campaign_id=1,
            unsubscribe_url=fields["unsubscribe_url"],
        )
        arguments.append((words, row.email, build_message(envelope, words).extra_headers))

    def run() -> None:
        for words, to, headers in arguments:
            EmailMultiAlternatives(
                words.subject,
                words.text,
                made.from_email,
                [to],
                headers=headers,
                alternatives=[(words.html, "text/html")],
            ).message().as_bytes()

    return run


def seconds(work: Callable[[], None]) -> float:
    """Processor seconds of this process."""
    started = time.process_time()
    work()
    return time.process_time() - started


if __name__ == "__main__":
    main()
