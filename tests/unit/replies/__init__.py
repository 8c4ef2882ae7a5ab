"""What hundreds of real replies mean, by the house that gives them.

Written from the senders' public documentation and the servers' sources; ``meanings.Row`` says what
the columns are. Every row is classified by one test; to teach the rules a reply, add it here first.
"""

from __future__ import annotations

from .apis import API_REPLIES
from .big_houses import BIG_HOUSES
from .ends import ENDS
from .languages import LANGUAGES
from .meanings import Row
from .other_houses import OTHER_HOUSES
from .servers import SERVERS
from .traps import TRAPS
from .unread import UNREAD

#: Of these the rules are sure.
KNOWN: list[Row] = [*BIG_HOUSES, *OTHER_HOUSES, *SERVERS, *LANGUAGES, *TRAPS, *ENDS]
#: All that come over SMTP.
REPLIES: list[Row] = [*KNOWN, *UNREAD]

__all__ = ["API_REPLIES", "KNOWN", "REPLIES", "UNREAD", "Row"]
