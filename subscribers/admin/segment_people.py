"""Putting people into a segment and taking them out: pages of a segment, actions on people."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path, reverse

from ..forms.segments import ChooseSegmentForm, PeopleForm
from ..models import Membership, Segment, Subscriber
from ..scoping import visible
from ..segments.acts import add_people, remove_people
from ..segments.members import Done, SegmentGone, ids_of, in_chunks, members
from ..segments.numbers import present_in
from .confirming import NAMED

#: Lines of a report that name what was not understood.
LISTED = 50


def may_add(request: HttpRequest) -> bool:
    return request.user.has_perm(f"{Membership._meta.app_label}.add_membership")


def may_remove(request: HttpRequest) -> bool:
    return request.user.has_perm(f"{Membership._meta.app_label}.change_membership")


def in_words(done: Done) -> str:
    """What was done, as one line. Pure."""
    parts = [
        (done.added, "added"),
        (done.removed, "removed"),
        (done.already, "in it already"),
        (done.absent, "not in it"),
        (done.ended, "left it earlier and not brought back"),
        (done.unsubscribed, "unsubscribed and not brought back"),
        (done.strangers, "of another account and passed over"),
    ]
    return ", ".join(f"{number:,} {words}" for number, words in parts if number) or "nobody"


class SegmentPeople(admin.ModelAdmin):
    """For the segments' admin: ``add-people/`` and ``remove-people/``."""

    people_template = "admin/sendonce_subscribers/segment_people.html"
    removal_template = "admin/sendonce_subscribers/segment_removal.html"

    def get_urls(self) -> list[Any]:
        names = f"{self.opts.app_label}_{self.opts.model_name}"
        views = (("add", self.add_people_view), ("remove", self.remove_people_view))
        return [
            path(
                f"<path:object_id>/{verb}-people/",
                self.admin_site.admin_view(view),
                name=f"{names}_{verb}_people",
            )
            for verb, view in views
        ] + super().get_urls()

    def add_people_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        if not may_add(request):
            raise PermissionDenied
        segment = self._segment_found(request, object_id)
        if not isinstance(segment, Segment):
            return segment
        form = PeopleForm(request.POST or None, segment=segment)
        context: dict[str, Any] = {"title": "Add people", "form": form, "adds": True}
        if request.method == "POST" and form.is_valid():
            return self._segment_done(request, segment, form, add_people, context)
        return self._segment_page(request, segment, self.people_template, context)

    def remove_people_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        if not may_remove(request):
            raise PermissionDenied
        segment = self._segment_found(request, object_id)
        if not isinstance(segment, Segment):
            return segment
        form = PeopleForm(request.POST or None, segment=segment)
        context: dict[str, Any] = {"title": "Remove people", "form": form}
        if request.method == "POST" and form.is_valid():
            source = form.cleaned_data["source"]
            if "confirmed" not in request.POST:
                chosen = present_in([source.pk]).get(source.pk, 0) if source else None
                context |= {
                    "source": source,
                    "people": len(form.pasted.people) if chosen is None else chosen,
                    "pasted": form.pasted,
                }
                return self._segment_page(request, segment, self.removal_template, context)
            return self._segment_done(request, segment, form, remove_people, context)
        return self._segment_page(request, segment, self.people_template, context)

    # --- how ---------------------------------------------------------------------------------

    def _segment_done(
        self,
        request: HttpRequest,
        segment: Segment,
        form: PeopleForm,
        verb: Callable[..., Any],
        context: dict[str, Any],
    ) -> HttpResponse:
        """Does ``verb`` with the form's people, and the page that tells what became of them."""
        chunks = self._segment_chunks(form)
        act = partial(verb, segment, chunks, request=request, origin=form.origin())
        done = self._segment_act(request, segment, act)
        if done is None:
            return self._segment_list()
        context |= {"done": done[0], "complete": done[1], "pasted": form.pasted}
        if done[1]:
            context["form"] = PeopleForm(segment=segment)
        return self._segment_page(request, segment, self.people_template, context)

    def _segment_found(self, request: HttpRequest, object_id: str) -> Segment | HttpResponse:
        segment: Any = self.get_object(request, unquote(object_id))
        if segment is None:
            return self._get_obj_does_not_exist_redirect(request, self.opts, object_id)  # type: ignore[attr-defined]
        if not self.has_view_or_change_permission(request, segment):
            raise PermissionDenied
        assert isinstance(segment, Segment)
        return segment

    def _segment_chunks(self, form: PeopleForm) -> Iterable[list[int]]:
        source: Segment | None = form.cleaned_data["source"]
        return members(source) if source else in_chunks(form.pasted.people)

    def _segment_act(
        self, request: HttpRequest, segment: Segment, act: Callable[[], tuple[Done, bool]]
    ) -> tuple[Done, bool] | None:
        """What was done, logged; ``None`` when the segment was deleted meanwhile."""
        try:
            done, complete = act()
        except SegmentGone as error:
            self.message_user(request, str(error), messages.ERROR)
            return None
        self.log_change(request, segment, f"People: {in_words(done)}.")
        return done, complete

    def _segment_list(self) -> HttpResponseRedirect:
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_changelist"
        return HttpResponseRedirect(reverse(name, current_app=self.admin_site.name))

    def _segment_page(
        self, request: HttpRequest, segment: Segment, template: str, context: dict[str, Any]
    ) -> TemplateResponse:
        request.current_app = self.admin_site.name
        pasted = context.get("pasted")
        return TemplateResponse(
            request,
            template,
            {
                **self.admin_site.each_context(request),
                "subtitle": segment.name,
                "opts": self.opts,
                "original": segment,
                "media": self.media,
                "listed": LISTED,
                "unknown": pasted.unknown[:LISTED] if pasted else (),
                "bad": pasted.bad[:LISTED] if pasted else (),
                **context,
            },
        )


class SegmentActions(admin.ModelAdmin):
    """For the subscribers' admin: a selection into a segment, or out of it."""

    segment_template = "admin/sendonce_subscribers/segment_choose.html"

    def has_join_permission(self, request: HttpRequest) -> bool:
        return may_add(request)

    def has_leave_permission(self, request: HttpRequest) -> bool:
        return may_remove(request)

    @admin.action(permissions=["join"], description="Add to a segment")
    def add_to_segment(
        self, request: HttpRequest, queryset: QuerySet[Subscriber]
    ) -> HttpResponse | None:
        return self._segment_action(
            request,
            queryset,
            add_people,
            "Add to a segment",
            "Whoever unsubscribed, or left the segment earlier, is not brought back. People of "
            "another account are passed over.",
            "Add",
        )

    @admin.action(permissions=["leave"], description="Remove from a segment")
    def remove_from_segment(
        self, request: HttpRequest, queryset: QuerySet[Subscriber]
    ) -> HttpResponse | None:
        return self._segment_action(
            request,
            queryset,
            remove_people,
            "Remove from a segment",
            "These people leave the segment, and only they themselves can come back to it. "
            "Messages of running campaigns that reach them through it alone are not sent any more.",
            "Remove",
        )

    def _segment_action(
        self,
        request: HttpRequest,
        queryset: QuerySet[Subscriber],
        act: Callable[..., tuple[Done, bool]],
        title: str,
        warning: str,
        button: str,
    ) -> HttpResponse | None:
        segments = visible(Segment.objects.all(), request, "account_id")
        answered = "confirmed" in request.POST
        form = ChooseSegmentForm(request.POST if answered else None, segments=segments)
        if answered and form.is_valid():
            segment: Segment = form.cleaned_data["segment"]
            try:
                done, complete = act(
                    segment, ids_of(queryset), request=request, origin="the list of people"
                )
            except SegmentGone as error:
                self.message_user(request, str(error), messages.ERROR)
                return None
            self.message_user(
                request,
                f"{segment.name}: {in_words(done)}."
                + ("" if complete else " The time of one request is over: do it again to go on."),
                messages.SUCCESS if complete else messages.WARNING,
            )
            return None
        request.current_app = self.admin_site.name
        rows = list(queryset[: NAMED + 1])
        return TemplateResponse(
            request,
            self.segment_template,
            {
                **self.admin_site.each_context(request),
                "title": title,
                "opts": self.opts,
                "media": self.media,
                "form": form,
                "warning": warning,
                "button": button,
                "rows": rows[:NAMED],
                "more": len(rows) > NAMED,
                "checkbox_name": ACTION_CHECKBOX_NAME,
                "selected": request.POST.getlist(ACTION_CHECKBOX_NAME),
                "action": request.POST.get("action", ""),
                "select_across": request.POST.get("select_across", "0"),
            },
        )


def page_of(site: admin.AdminSite, segment: Segment, verb: str) -> str:
    """The address of a page of the segment: ``change``, ``add_people``, ``remove_people``."""
    opts = Segment._meta
    name = f"admin:{opts.app_label}_{opts.model_name}_{verb}"
    return reverse(name, args=[quote(segment.pk)], current_app=site.name)
