"""Previews of a campaign: as one person will get it, as saved and as typed and not saved yet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, JsonResponse
from django.template.defaultfilters import filesizeformat
from django.urls import path, reverse
from django.utils.cache import add_never_cache_headers
from django.views.decorators.csrf import csrf_protect

from subscribers.models import Account
from subscribers.scoping import as_id, visible

from .. import hooks, previewing
from ..content import TEXTS, CompiledContent
from ..models import Campaign, Layout
from ..preview_people import EMPTY, Chosen, beginning_with, choose
from ..previewing import Preview
from .frames import framed
from .test_pages import TestPages

#: Values of a form that a preview carries along, beside the texts.
_CHOICES = ("account", "layout", "segments", "exclude_segments")

_FRAMES = (("desktop", "On a desktop"), ("phone", "On a phone"))


@dataclass(frozen=True)
class _Asked:
    """What a request wants to see. ``campaign`` is the saved one, ``None`` on the add page;
    ``is_typed``: shown is what the form holds."""

    account: Account
    campaign: Campaign | None
    chosen: Chosen
    shown: Preview
    is_typed: bool


class PreviewPages(TestPages):
    """Pages that show a campaign as one person will get it. Nothing here writes anything."""

    preview_template = "admin/sendonce_campaigns/campaign/preview.html"

    def get_urls(self) -> list[Any]:
        pages: list[tuple[str, Callable[..., HttpResponse], str]] = [
            ("preview/people/", self.preview_people_view, "preview_people"),
            ("preview/frame/", self.preview_frame_view, "preview_new_frame"),
            ("preview/check/", self.preview_check_view, "preview_new_check"),
            ("preview/", self.preview_view, "preview_new"),
            ("<path:object_id>/preview/frame/", self.preview_frame_view, "preview_frame"),
            ("<path:object_id>/preview/check/", self.preview_check_view, "preview_check"),
            ("<path:object_id>/preview/", self.preview_view, "preview"),
        ]
        return [
            path(
                route,
                self.admin_site.admin_view(csrf_protect(view)),
                name=f"{self.opts.app_label}_{self.opts.model_name}_{name}",
            )
            for route, view, name in pages
        ] + super().get_urls()

    # --- views -------------------------------------------------------------------------------

    def preview_view(self, request: HttpRequest, object_id: str | None = None) -> HttpResponse:
        """The whole page; a POST shows what was typed."""
        asked = self._asked(request, object_id)
        if isinstance(asked, HttpResponse):
            return asked
        campaign, shown = asked.campaign, asked.shown
        values = _carried(request) if asked.is_typed else []
        context: dict[str, Any] = {
            "account": asked.account,
            "chosen": asked.chosen,
            "shown": shown,
            "frames": _FRAMES,
            "nobody": EMPTY,
            "words": _words(request),
            "may_search": self._may_search(request),
            "is_typed": asked.is_typed,
            "values": values,
            "frame_url": self._preview_url("frame", campaign),
            "people_url": self._people_url(asked.account),
            "test_url": self._test_url(request, campaign),
            **self._source(asked),
        }
        page = campaign or Campaign(account=asked.account, name="New campaign")
        answer = self._page(request, page, self.preview_template, "Preview", context)
        if campaign is None and answer.context_data is not None:
            answer.context_data["original"] = None
        add_never_cache_headers(answer)
        return answer

    def preview_frame_view(
        self, request: HttpRequest, object_id: str | None = None
    ) -> HttpResponse:
        """The message alone: ``?as=<subscriber id>&part=html|text``; a POST shows what was
        typed."""
        asked = self._asked(request, object_id, alone=True)
        if isinstance(asked, HttpResponse):
            return asked
        return framed(asked.shown, _given(request, "part") or "html")

    def preview_check_view(
        self, request: HttpRequest, object_id: str | None = None
    ) -> HttpResponse:
        """For the script that follows the typing: what is wrong, whom it shows, and whether what
        the frame shows has changed (``html`` names it)."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        asked = self._asked(request, object_id, alone=True)
        if isinstance(asked, HttpResponse):
            return asked
        shown, rendered = asked.shown, asked.shown.rendered
        parts = (rendered.html, rendered.text) if rendered else ()
        answer = JsonResponse(
            {
                "problems": [str(problem) for problem in shown.problems],
                "subject": rendered.subject if rendered else "",
                "as": _label(asked.chosen),
                "said": asked.chosen.said,
                "missing": [str(missing) for missing in shown.missing],
                "size": filesizeformat(len(rendered.html.encode("utf-8", "replace")))
                if rendered and rendered.html
                else "",
                "html": sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()
                if rendered
                else "",
            }
        )
        add_never_cache_headers(answer)
        return answer

    def preview_people_view(self, request: HttpRequest) -> HttpResponse:
        """Addresses of an account that begin with ``q``, for the field's list."""
        if not (self._may_search(request) and self.has_view_or_change_permission(request)):
            raise PermissionDenied
        account = self._account(request, request.GET.get("account"))
        found = beginning_with(account.pk, request.GET.get("q", ""))
        answer = JsonResponse({"people": [reader.email for reader in found]})
        add_never_cache_headers(answer)
        return answer

    # --- the composing page ------------------------------------------------------------------

    def render_change_form(
        self,
        request: Any,
        context: Any,
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Any = None,
    ) -> HttpResponse:
        account = obj.account if obj is not None else self._account_of_form(context)
        may_change = (
            self.has_add_permission(request)
            if obj is None
            else self.has_change_permission(request, obj)
        )
        context["preview"] = {
            "is_typed": may_change and (obj is None or "body" in context["adminform"].form.fields),
            "url": self._preview_url("", obj),
            "check_url": self._preview_url("check", obj),
            "frame_url": self._preview_url("frame", obj),
            "people_url": self._people_url(account) if account is not None else "",
            "may_search": self._may_search(request),
            "test_url": self._test_url(request, obj),
            "nobody": EMPTY,
        }
        return super().render_change_form(request, context, add, change, form_url, obj)

    def _account_of_form(self, context: Any) -> Account | None:
        account: Account | None = getattr(context["adminform"].form, "account", None)
        return account

    # --- how ---------------------------------------------------------------------------------

    def _asked(
        self, request: HttpRequest, object_id: str | None, *, alone: bool = False
    ) -> _Asked | HttpResponse:
        """What is to be shown, or the answer for who may not see it. ``alone``: there is no page
        around it, so that what is not there is not found."""
        if request.method not in ("GET", "HEAD", "POST") or (
            object_id is None and request.method != "POST"
        ):
            return HttpResponseNotAllowed(["GET", "HEAD", "POST"] if object_id else ["POST"])
        campaign: Campaign | None = None
        if object_id is None:
            if not self.has_add_permission(request):
                raise PermissionDenied
            account = self._account(request, request.POST.get("account"))
        else:
            campaign = self.get_object(request, unquote(object_id))
            if not self.has_view_or_change_permission(request, campaign):
                raise PermissionDenied
            if campaign is None:
                if alone:
                    raise Http404
                return self._get_obj_does_not_exist_redirect(  # type: ignore[attr-defined]
                    request, self.opts, object_id
                )
            account = campaign.account
        is_typed = request.method == "POST" and (campaign is None or "body" in request.POST)
        draft = _typed(request, account) if is_typed or campaign is None else campaign
        include, exclude = _segments(request, campaign, is_typed)
        chosen = choose(
            account.pk,
            asked=_given(request, "as"),
            words=_words(request),
            may_search=self._may_search(request),
            include=include,
            exclude=exclude,
        )
        shown = previewing.preview(draft, chosen.reader)
        return _Asked(account, campaign, chosen, shown, is_typed)

    def _source(self, asked: _Asked) -> dict[str, Any]:
        """The message as it will leave, and its headers."""
        shown = asked.shown
        if shown.rendered is None or not isinstance(shown.content, CompiledContent):
            return {}
        try:
            source = hooks.message_source(
                asked.account,
                shown.content,
                shown.context,
                shown.reader.email,
                (asked.campaign.pk if asked.campaign else 0) or 0,
                shown.reader.pk,
            )
        except ValueError as error:
            return {"source_problem": str(error)}
        if source is None:
            return {"source_problem": "Nothing is installed here that sends."}
        text, is_cut = previewing.source_text(source)
        html = shown.rendered.html.encode("utf-8", "replace")
        return {
            "headers": previewing.header_lines(source),
            "source": text,
            "source_is_cut": is_cut,
            "source_size": len(source),
            "html_size": len(html),
        }

    def _account(self, request: HttpRequest, raw: Any) -> Account:
        """An account that this request may see. Raises ``Http404``."""
        found = as_id(raw)
        rows = visible(Account.objects.all(), request, "pk")
        account: Account | None = rows.filter(pk=found).first() if found is not None else None
        if account is None:
            raise Http404
        return account

    def _preview_url(self, page: str, campaign: Any) -> str:
        saved = campaign is not None and campaign.pk
        middle = "preview" if saved else "preview_new"
        name = f"{self.opts.app_label}_{self.opts.model_name}_{middle}"
        return reverse(
            f"admin:{name}_{page}" if page else f"admin:{name}",
            args=[quote(campaign.pk)] if saved else [],
            current_app=self.admin_site.name,
        )


def _typed(request: HttpRequest, account: Account) -> Campaign:
    """The campaign that the form's values would make; checked by nothing but its account."""
    layout_id = as_id(request.POST.get("layout"))
    layout = None
    if layout_id is not None:
        layout = Layout.objects.filter(account=account, pk=layout_id).first()
    return previewing.typed(request.POST, account, layout)


def _segments(
    request: HttpRequest, campaign: Campaign | None, is_typed: bool
) -> tuple[list[int], list[int]]:
    """The segments of the audience, included and excluded; of whatever account, which is looked
    at when people are."""
    if is_typed or campaign is None:
        names = ("segments", "exclude_segments")
        given = [[as_id(raw) for raw in request.POST.getlist(name)[:200]] for name in names]
        include, exclude = ([pk for pk in ids if pk is not None] for ids in given)
        return include, exclude
    return (
        list(campaign.segments.order_by("name", "pk").values_list("pk", flat=True)),
        list(campaign.exclude_segments.values_list("pk", flat=True)),
    )


def _given(request: HttpRequest, name: str) -> str:
    """``?as=`` and ``?part=``; in a form, beside the campaign's own fields, ``preview_as``."""
    return request.POST.get(f"preview_{name}") or request.GET.get(name) or ""


def _words(request: HttpRequest) -> str:
    return _given(request, "q")


def _carried(request: HttpRequest) -> list[tuple[str, str]]:
    """The form's values that make the message, for the next look at it."""
    return [
        (name, value) for name in (*TEXTS, *_CHOICES) for value in request.POST.getlist(name)[:200]
    ]


def _label(chosen: Chosen) -> str:
    return chosen.reader.email if chosen.reader.pk else "nobody in particular"
