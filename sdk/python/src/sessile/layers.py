"""What a sandboxed session has changed, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Mapping, Optional, Tuple

__all__ = ["LayerApplied", "LayerChange", "LayerDiff", "LayerDiscarded", "SkippedChange"]


@dataclass(frozen=True)
class LayerChange:
    """A path that differs from the real workspace.

    Attributes:
        change: ``added``, ``modified``, ``deleted`` or ``renamed`` (``source`` says from where).
        conflict: what became of it in the real workspace meanwhile, if something did; ``apply``
            refuses it.
    """

    path: str
    change: str
    type: str
    insertions: int = 0
    deletions: int = 0
    binary: bool = False
    source: Optional[str] = None
    conflict: Optional[str] = None

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> LayerChange:
        get = row.get
        return cls(
            row["path"],
            row["change"],
            row["type"],
            get("insertions", 0),
            get("deletions", 0),
            get("binary", False),
            get("from"),
            get("conflict"),
        )


@dataclass(frozen=True)
class SkippedChange:
    """A path that was left alone, and why."""

    path: str
    reason: str


def _skipped(answer: Mapping[str, Any]) -> Tuple[SkippedChange, ...]:
    return tuple(SkippedChange(row["path"], row["reason"]) for row in answer.get("skipped") or ())


@dataclass(frozen=True)
class LayerDiff:
    """What a session has changed. ``truncated`` says that there is more text: ask for some paths."""

    diff: str
    changes: Tuple[LayerChange, ...]
    insertions: int
    deletions: int
    truncated: bool
    skipped: Tuple[SkippedChange, ...]

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> LayerDiff:
        changes = tuple(LayerChange.of(row) for row in answer["changes"])
        counts = answer["insertions"], answer["deletions"]
        return cls(answer["diff"], changes, *counts, answer["truncated"], _skipped(answer))


@dataclass(frozen=True)
class LayerApplied:
    """Changes that are in the real workspace now."""

    applied: Tuple[str, ...]
    skipped: Tuple[SkippedChange, ...]

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> LayerApplied:
        return cls(tuple(answer["applied"]), _skipped(answer))


@dataclass(frozen=True)
class LayerDiscarded:
    """Changes that were forgotten."""

    discarded: Tuple[str, ...]
    skipped: Tuple[SkippedChange, ...]

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> LayerDiscarded:
        return cls(tuple(answer["discarded"]), _skipped(answer))
