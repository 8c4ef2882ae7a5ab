"""The progress page of a campaign: the ledger as a bar and a table, the rate, and what is wrong."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.template.response import TemplateResponse
from django.urls import path

from campaigns.admin.verb_words import happens_next, is_waiting
from campaigns.models import Campaign
from subscribers.scoping import account_ids

from ..charts import stack
from ..plain_table import ago, due, duration
from ..progress_page import EVENTS, Progress, pause_title, progress
from ..status_limits import LimitFact
from ..watching_words import Rate, read_mark, share_words
from ..wording import answer_words, kind_words, rate_words, reason_words, remedy
from .watching import CampaignPages

Status = Campaign.Status

WHAT_HAPPENS = {
    Status.DRAFT: "Nothing has been sent: it is a draft.",
    Status.APPROVED: "Nothing has been sent yet. A sender starts it when its time has come.",
    Status.SENDING: "It is being sent.",
    Status.PAUSED: "Nothing is handed over until it is resumed.",
    Status.SENT: "Nothing of it is open any more.",
    Status.CANCELED: "What was not sent is not sent.",
}


class ProgressPages(CampaignPages):
    """``progress/<campaign>/`` and the part of it that a script asks for again and again."""

    progress_template = "admin/sendonce_sending/progress.html"
    progress_state_template = "admin/sendonce_sending/progress_state.html"

    def get_urls(self) -> list[Any]:
        protected = self.admin_site.admin_view
        return [
            path(
                "progress/<int:campaign_id>/",
                protected(self.progress_view),
                name=self._page_name("progress"),
            ),
            path(
                "progress/<int:campaign_id>/state/",
                protected(self.progress_state_view),
                name=self._page_name("progress_state"),
            ),
            *super().get_urls(),
        ]

    def progress_view(self, request: HttpRequest, campaign_id: int) -> HttpResponse:
        return self._progress_answer(request, campaign_id, self.progress_template)

    def progress_state_view(self, request: HttpRequest, campaign_id: int) -> HttpResponse:
        """The part of the page that changes."""
        return self._progress_answer(request, campaign_id, self.progress_state_template)

    def _progress_answer(
        self, request: HttpRequest, campaign_id: int, template: str
    ) -> HttpResponse:
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(["GET", "HEAD"])
        campaign = self.campaign_or_404(request, campaign_id)
        found = progress(campaign, mark=read_mark(request.GET.get("mark", "")))
        request.current_app = self.admin_site.name
        answer = TemplateResponse(
            request,
            template,
            {
                **self.campaign_context(request, campaign),
                "title": "Progress",
                "progress": found,
                "next": happens_next(
                    WHAT_HAPPENS,
                    campaign.status,
                    waits=found.waits,
                    in_doubt=found.counts["in_doubt"],
                ),
                "waits_now": is_waiting(campaign.status, found.waits),
                "verbs": self.verbs(request, campaign),
                # Senders serve all accounts: where they run, and what one waits for, is not told
                # to the staff of one.
                "sees_workers": account_ids(request) is None,
                "workers_url": self.url_if_any(f"{self.opts.app_label}_worker_changelist"),
                **in_words(found),
                "poll_url": self.url_if_any(self._page_name("progress_state"), campaign.pk)
                if found.moving
                else "",
            },
        )
        answer["Cache-Control"] = "no-store"
        return answer


def in_words(found: Progress) -> dict[str, Any]:
    """What the page tells, as its template reads it."""
    now = found.now
    handed = sum(worker.rate for worker in found.workers)
    return {
        "bar": stack([(line.status, line.number) for line in found.lines]),
        "lines": [(line, share_words(line.share)) for line in found.shown],
        "rate": _rate(found.rate),
        "rate_over": duration(max(1, found.rate.over)),
        "rate_lately": _rate(found.rate_lately) if found.rate_lately else "",
        "rate_lately_over": duration(found.rate_lately.over) if found.rate_lately else "",
        "done_share": share_words(100 * found.done / found.audience) if found.audience else "",
        "retry_last": found.retries.last,
        "doubts": [
            (doubt.why, doubt.becomes, doubt.number, ago(doubt.since, now))
            for doubt in found.doubts
        ],
        "errors": [
            (
                kind_words(one.kind, one.stage),
                reason_words(one.reason, known=one.known) or "-",
                answer_words(one.stage, one.code, one.enhanced, one.text),
                one.times,
                one.last,
            )
            for one in found.errors
        ],
        "pauses": [
            (
                pause_title(pause),
                f"The next try {due(pause.probe_at, now)}.",
                remedy(pause.stage, pause.code, said=pause.reason),
            )
            for pause in found.pauses
        ],
        "limits": [_limit(fact) for fact in found.limits],
        "looked_at": EVENTS,
        "alive": found.alive,
        "elsewhere": found.elsewhere,
        "workers_more": found.alive
        + found.elsewhere
        - sum(worker.state == "alive" for worker in found.workers),
        "senders_rate": _rate(Rate(handed, 1)) if handed else "",
        "workers": [
            (worker, ago(worker.seen, now), _rate(Rate(worker.rate, 1)) if worker.rate else "-")
            for worker in found.workers
        ],
    }


def _rate(rate: Rate) -> str:
    """Rounded, as it is an estimate: nobody wants "2,931.4 a second"."""
    per_second = rate.per_second
    return rate_words(round(per_second) if per_second >= 10 else round(per_second, 1))


def _limit(fact: LimitFact) -> tuple[str, str, str, Any]:
    """A limit, its rate now, its usual one, and since when it is slow."""
    usual = rate_words(fact.usual) if fact.usual is not None else "no limit"
    shut = fact.nothing_before is not None
    return fact.of, "nothing for now" if shut else rate_words(fact.rate), usual, fact.since
