"""What is looked at before a campaign is approved, by ``lifecycle.approve`` itself.

``run`` gathers facts (``gathering``) and hands them to checks that are pure functions of them
(``checklist`` names all). Errors keep from approval; warnings are for people to weigh.
"""

from .findings import Check, Finding, Report
from .running import run

__all__ = ["Check", "Finding", "Report", "run"]
