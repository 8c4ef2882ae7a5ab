"""Who refers to a row, whatever apps stand above."""

from __future__ import annotations

from typing import Any


def is_used(obj: Any, *, apart_from: set[Any]) -> bool:
    """Does any other table refer to ``obj``? Asked of the model, so that this app need not
    know which apps stand above it."""
    for relation in obj._meta.related_objects:
        through = getattr(relation, "through", None)
        if relation.related_model in apart_from or through in apart_from:
            continue
        found = relation.related_model._base_manager.filter(**{relation.field.name: obj})
        if found.exists():
            return True
    return False
