"""When a request is sent again, and when not. Pure decisions."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Optional

from .requests import Repeat

KNOWN = 30.0
"""Seconds for which a server that has answered before is waited for: as long as a restart
or an upgrade takes."""

UNKNOWN = 1.0
"""The same for one that has never answered: most likely the address is wrong."""

FIRST_PAUSE = 0.02
LONGEST_PAUSE = 1.0


class Failure(enum.Enum):
    UNSENT = "unsent"
    """The server did not get the request."""
    LOST = "lost"
    """It may have got it; the answer did not come."""
    REFUSED = "refused"
    """It is there, and asks to be asked later."""


@dataclass(frozen=True)
class Attempts:
    """How it has gone so far. ``failed_for`` is since the first failure."""

    count: int
    failed_for: float
    is_known: bool


def pause(
    failure: Failure, repeat: Repeat, attempts: Attempts, retry_after: Optional[float] = None
) -> Optional[float]:
    """Seconds until the request is sent again, or None to give up.

    >>> pause(Failure.LOST, Repeat.UNSENT, Attempts(1, 0.0, True)) is None
    True
    >>> pause(Failure.LOST, Repeat.SAFE, Attempts(1, 0.0, True))
    0.02
    """
    if failure is Failure.LOST and repeat is Repeat.UNSENT:
        return None
    patience = KNOWN if attempts.is_known else UNKNOWN
    if attempts.failed_for >= patience:
        return None
    grown = FIRST_PAUSE * 2.0 ** min(attempts.count - 1, 10)
    asked = retry_after if failure is Failure.REFUSED and retry_after is not None else 0.0
    return min(max(grown, asked), LONGEST_PAUSE)


LATER = frozenset({"keeper_unavailable", "shutting_down", "too_many_connections", "queue_full"})
"""Refusals that pass by themselves, and before which nothing was begun."""
