"""A real sender runs what was uploaded, beside its mail and to the end."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator

from subscribers.importing import jobs
from subscribers.models import Account, ImportJob, Segment, Subscriber
from subscribers.tabular import Options
from tests.crash.conftest import Senders, Sink, addresses, make_campaign, wait_until


def _queued(people: int, *, slug: str) -> ImportJob:
    account = Account.objects.create(name="People", slug=slug, from_email="news@example.org")
    segment = Segment.objects.create(account=account, name="All", slug="all")
    job = jobs.create(account, segment, file_name="people.csv", by_name="a test")

    def lines() -> Iterator[bytes]:
        yield b"email\n"
        for start in range(0, people, 1000):
            yield b"".join(
                b"person-%d@example.org\n" % n for n in range(start, min(start + 1000, people))
            )

    jobs.store(job, lines())
    jobs.examine(job)
    job.refresh_from_db()
    jobs.queue(job, Options.from_json(job.options))
    return job


def _status(job: ImportJob) -> str:
    job.refresh_from_db()
    return job.status


def test_an_uploaded_file_is_imported_while_mail_goes_on(
    sink: Callable[..., Sink], senders: Senders
) -> None:
    relay = sink("--delay", "0.01")
    make_campaign(addresses(120))
    job = _queued(3000, slug="people")
    mail = {"EMAIL_URL": f"smtp://127.0.0.1:{relay.port}"}
    process = senders.start("--lanes", "2", **mail)
    relay.wait_for(120)
    wait_until(lambda: _status(job) == "done", f"the import to be done ({job.error})")
    assert Subscriber.objects.filter(account=job.account).count() == 3000
    later = _queued(10, slug="later")
    wait_until(lambda: _status(later) == "done", "another import")
    process.terminate()
    assert process.wait(60) == 0, senders.log.read_text()
    assert "imports_failed" not in senders.log.read_text()


def test_a_sender_that_stops_takes_its_import_along_and_the_next_goes_on(
    senders: Senders,
) -> None:
    job = _queued(200_000, slug="many")
    process = senders.start("--lanes", "1")
    wait_until(lambda: _status(job) == "queued" and job.staged_line > 0, "some lines to be in")
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0, senders.log.read_text()
    assert _status(job) == "queued", "the file was too small to be caught in the middle"
    before = job.staged_line
    job.refresh_from_db()
    assert job.staged_line == before, "nobody works on it any more"
    # A child that was killed in its batch leaves its lease behind.
    ImportJob.objects.filter(pk=job.pk).update(runner=None, lease_until=None)
    again = senders.start("--lanes", "1")
    wait_until(lambda: _status(job) == "done", "the import to be done", 120)
    assert Subscriber.objects.filter(account=job.account).count() == 200_000
    again.terminate()
    assert again.wait(60) == 0
