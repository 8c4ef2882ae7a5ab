"""Columns that are mapped by their names, as the command does it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..tabular import ImportRefused
from ..tabular.columns import Named, fold, meanings


def mapped(
    header: Sequence[str], columns: Mapping[str, str], definitions: Iterable[Named] = ()
) -> tuple[str, ...]:
    """A target for each column: what ``columns`` says of its name (whatever its case and accents),
    else what the name means. A column that another one replaces as a target is passed over.

    Raises ``ImportRefused``: there is no such column, or more than one.
    """
    targets = meanings(list(header), definitions)
    given: dict[int, str] = {}
    for name, target in columns.items():
        exact = [place for place, known in enumerate(header) if known.strip() == name.strip()]
        places = exact or [place for place, known in enumerate(header) if fold(known) == fold(name)]
        if not places:
            shown = ", ".join(known.strip()[:30] for known in header[:10])
            raise ImportRefused(f"There is no column {name!r:.60}; the file has {shown}.")
        if len(places) > 1:
            raise ImportRefused(f"There are {len(places)} columns {name!r:.60}.")
        given[places[0]] = target
    taken = {target for target in given.values() if target}
    return tuple(
        given.get(place, "" if target in taken else target) for place, target in enumerate(targets)
    )
