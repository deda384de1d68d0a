"""Lengths of time, as people and the server write them."""

from __future__ import annotations

from datetime import timedelta
from typing import Optional, Union

Span = Union[float, int, str, timedelta]
"""Seconds, ``"500ms"``, ``"2h"``, or a timedelta."""


def wire(span: Optional[Span]) -> "Union[float, int, str, None]":
    """As the server takes it."""
    return span.total_seconds() if isinstance(span, timedelta) else span


_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def seconds(span: Span) -> float:
    """
    >>> seconds("500ms"), seconds("2h"), seconds(timedelta(minutes=1)), seconds(3)
    (0.5, 7200.0, 60.0, 3.0)
    """
    if isinstance(span, timedelta):
        return span.total_seconds()
    if not isinstance(span, str):
        return float(span)
    number = span.rstrip("abcdefghijklmnopqrstuvwxyz ")
    unit = span[len(number) :].strip() or "s"
    try:
        return float(number) * _UNITS[unit]
    except (ValueError, KeyError):
        raise ValueError(f"{span!r} is not a length of time; write 30, '30s', '500ms' or '2h'") from None
