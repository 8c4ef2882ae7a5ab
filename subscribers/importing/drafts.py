"""An import before it is queued: the file comes in, is looked at, and its columns get a meaning."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.db import transaction
from django.http import HttpRequest

from ..addresses import AddressError
from ..attributes.fit import IS, count_misfits_of_each
from ..audit import record
from ..models import Account, AttributeDefinition, ImportJob, Segment
from ..segments.creating import create_segment
from ..tabular import ImportRefused, Options, Plan, RowError, detect
from ..tabular.options import EXACTLY
from . import jobs, sources

Kind = AttributeDefinition.Kind


def begin(
    account: Account,
    segment: Segment | str,
    chunks: Iterable[bytes],
    *,
    file_name: str,
    choices: Mapping[str, Any],
    request: HttpRequest,
) -> ImportJob:
    """Store and examine an uploaded file. A text names a segment that is made for it;
    ``choices`` are those of ``Options`` that the file does not tell.

    Raises ``ImportRefused`` for a file that is no table; nothing is stored then.
    """
    user = request.user
    made = {}
    with transaction.atomic():
        if isinstance(segment, str):
            segment = create_segment(account, segment)
            # If the draft is given up, so is what was made for it.
            made = {"new_segment": segment.name}
            record(account, "segment.create", subject=segment.name, request=request)
        job = jobs.create(
            account, segment, file_name=file_name, by=user, by_name=user.get_username()
        )
        jobs.store(job, chunks)
        jobs.examine(job)
        _keep(job, replace(Options.from_json(job.options), **choices), {**job.preview, **made})
    return job


def read_again(job: ImportJob, options: Options, *, header: bool | None) -> bool:
    """Look at the file anew, as ``options`` say; does it still have the same columns?

    Raises ``ImportRefused``: it can't be read like that, and the draft is as it was.
    """
    before = Options.from_json(job.options)
    same = all(
        getattr(before, name) == getattr(options, name)
        for name in ("encoding", "delimiter", "sheet", "header")
    )
    if not same:
        # Names and places may be others now: what was said of the old ones is not meant.
        options = replace(options, mapping=())
    with sources.uploaded(job.pk) as file:
        definitions = AttributeDefinition.objects.filter(account_id=job.account_id)
        found = detect(file, job.file_name, options, header=header, definitions=definitions)
    preview = found.preview()
    if "new_segment" in job.preview:
        preview["new_segment"] = job.preview["new_segment"]
    if same:
        preview["new"] = job.preview.get("new", {})
    # What was answered stands, where detection only guesses.
    kept = replace(found.options, decimal=options.decimal, date_order=options.date_order)
    _keep(job, kept, preview)
    return same


def keep(job: ImportJob, options: Options, new: Mapping[str, str]) -> None:
    """Store what was answered, so that the page shows it again. Not once the job is queued."""
    _keep(job, options, {**job.preview, "new": dict(new)})


def _keep(job: ImportJob, options: Options, preview: dict[str, Any]) -> None:
    job.options, job.preview = options.to_json(), preview
    ImportJob.objects.filter(pk=job.pk, status=ImportJob.Status.DRAFT).update(
        options=job.options, preview=preview
    )


# --- the first rows ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FirstRow:
    number: int
    #: As they would be stored; as they are in the file where there is an ``error``.
    cells: list[str]
    error: str = ""


@dataclass(frozen=True, slots=True)
class FirstRows:
    """The first rows as they would be stored. ``error``: the columns don't go together."""

    names: list[str]
    rows: list[FirstRow]
    error: str = ""


def first_rows(
    job: ImportJob, options: Options, definitions: Iterable[AttributeDefinition]
) -> FirstRows:
    """Of the rows that were kept for the page; ``definitions`` hold the new ones, too."""
    known = list(definitions)
    try:
        plan = Plan.understand(job.preview.get("header", []), options, known)
    except ImportRefused as error:
        return FirstRows([], [], str(error))
    system = [target for target in plan.targets if target and not target.startswith(EXACTLY)]
    shown = {
        "email": "Email address",
        "status": "Status",
        "locale": "Language",
        "timezone": "Time zone",
        "consent_source": "Source of the consent",
        "suppressed": "Suppressed",
    }
    names = [label for target, label in shown.items() if target in system] + plan.attributes
    places = [plan.targets.index(target) for target in shown if target in system]
    places += [plan.targets.index(f"{EXACTLY}{key}") for key in plan.attributes]
    rows = []
    for number, cells in enumerate(job.preview.get("rows", []), 2 if options.header else 1):
        try:
            row = plan.read(list(cells))
        except (RowError, AddressError) as error:
            rows.append(FirstRow(number, [cells[place] for place in places], str(error)))
            continue
        values = json.loads(row.attributes)
        found = [getattr(row, target) for target in shown if target in system]
        rows.append(FirstRow(number, found + [_shown(values.get(k)) for k in plan.attributes]))
    return FirstRows(names, rows)


def _shown(value: Any) -> str:
    if value is None:
        return ""
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


# --- new attributes ------------------------------------------------------------------------------


def misfits(account: Account, new: Mapping[str, str]) -> dict[str, str]:
    """Why a new attribute can't be of its kind: people have values that are not, by its key."""
    # Texts are taken as they are, here as by the command.
    typed = {key: kind for key, kind in new.items() if kind != Kind.TEXT}
    return {
        key: f"{people:,} {'person has' if people == 1 else 'people have'} a value of {key} "
        f"already that is not {IS[Kind(typed[key])]}."
        for key, people in count_misfits_of_each(account, typed).items()
    }


def declare(
    account: Account, new: Mapping[str, str], request: HttpRequest, *, labels: Mapping[str, str]
) -> None:
    """Define the new attributes, in the caller's transaction; ``labels`` by their keys.

    Raises ``ImportRefused`` where somebody has defined one of another kind meanwhile.
    """
    AttributeDefinition.objects.bulk_create(
        [
            AttributeDefinition(account=account, key=key, kind=kind, label=labels.get(key, ""))
            for key, kind in new.items()
        ],
        ignore_conflicts=True,
    )
    for definition in AttributeDefinition.objects.filter(account=account, key__in=list(new)):
        if definition.kind != new[definition.key]:
            raise ImportRefused(
                f"{definition.key} was defined meanwhile, as {definition.get_kind_display()}."
            )
        record(
            account,
            "attribute.define",
            subject=definition.key,
            detail={"kind": definition.kind},
            request=request,
        )
