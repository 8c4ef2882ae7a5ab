"""The installation's namespace, and the cluster it saw last."""

from __future__ import annotations

import uuid

from subscribers.conf import conf

from .models import Installation
from .providers.table import installation_tag


def installation() -> Installation:
    """The one row, made when first asked for; two processes at once get the same one."""
    found, _ = Installation.objects.get_or_create(pk=1, defaults={"namespace": uuid.uuid4()})
    return found


def namespace() -> uuid.UUID:
    """What Message-IDs and deduplication keys derive from; never changes, unless
    ``SENDONCE["NAMESPACE"]`` says so."""
    return uuid.UUID(conf.NAMESPACE) if conf.NAMESPACE else installation().namespace


def tag() -> str:
    """What tells this installation's messages from another's in a provider's tracking events;
    sent along as metadata beside the job id."""
    return installation_tag(namespace())
