"""What the server tells of sessions, runs, jobs, checkpoints and files."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any, Dict, List, Mapping, Optional, Tuple

from .results import CodeError

__all__ = [
    "Checkpoint",
    "FileInfo",
    "HistoryEntry",
    "Job",
    "JobPort",
    "LeftBehind",
    "Rewound",
    "RunInfo",
    "SavedSession",
    "SessionInfo",
    "State",
]


def moment(text: Optional[str]) -> Optional[datetime]:
    """A point in time of the server's.

    >>> moment("2026-01-31T12:00:00.000Z")
    datetime.datetime(2026, 1, 31, 12, 0, tzinfo=datetime.timezone.utc)
    """
    if not text:
        return None
    whole, _, fraction = text.rstrip("Z").partition(".")
    found = datetime.strptime(whole, "%Y-%m-%dT%H:%M:%S").replace(tzinfo=timezone.utc)
    return found + timedelta(seconds=float(f"0.{fraction}")) if fraction else found


@dataclass(frozen=True)
class LeftBehind:
    """Something that could not be carried, and why."""

    name: str
    reason: str
    language: Optional[str] = None


def _left(answer: Mapping[str, Any]) -> Tuple[LeftBehind, ...]:
    rows = answer.get("left") or ()
    return tuple(LeftBehind(row["name"], row["reason"], row.get("language")) for row in rows)


@dataclass(frozen=True)
class SessionInfo:
    """A session's own data. ``raw`` is all that the server says."""

    id: str
    status: str
    work_dir: str
    language: str
    command: str
    name: Optional[str] = None
    workspace: Optional[str] = None
    execution_count: int = 0
    created_at: Optional[datetime] = None
    ended_at: Optional[datetime] = None
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> SessionInfo:
        get = answer.get
        return cls(
            answer["session_id"],
            answer["status"],
            answer["work_dir"],
            answer["language"],
            answer["command"],
            get("name"),
            get("workspace"),
            get("execution_count", 0),
            moment(get("created_at")),
            moment(get("ended_at")),
            get("env") or {},
            answer,
        )


@dataclass(frozen=True)
class State:
    """What a session has in it, in the language that it was started with.

    ``kernels`` has the same for each language that it speaks, and ``raw`` everything.
    """

    working_dir: str
    # What is in an environment is not for logs.
    env_vars: Mapping[str, str] = field(repr=False)
    variables: Mapping[str, Any]
    functions: Tuple[Any, ...]
    imports: Tuple[str, ...]
    language: str
    kernels: Mapping[str, Mapping[str, Any]] = field(repr=False)
    raw: Mapping[str, Any] = field(repr=False)

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> State:
        get = answer.get
        return cls(
            get("working_dir") or "",
            get("env_vars") or {},
            get("variables") or {},
            tuple(get("functions") or ()),
            tuple(get("imports") or ()),
            get("language") or "",
            get("kernels") or {},
            answer,
        )


@dataclass(frozen=True)
class HistoryEntry:
    """A run of the past."""

    run: int
    command: str
    language: str
    exit_code: int
    duration: timedelta
    kernel: str
    timestamp: Optional[datetime] = None
    result: Optional[str] = None
    error: Optional[CodeError] = None
    timed_out: bool = False
    interrupted: bool = False
    event: Optional[str] = None
    notes: Tuple[str, ...] = ()

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> HistoryEntry:
        get = row.get
        value, error = get("result"), get("error")
        micros = get("duration_us")
        return cls(
            row["run"],
            row["command"],
            row["language"],
            row["exit_code"],
            timedelta(microseconds=micros if micros is not None else row["duration_ms"] * 1000),
            row["kernel"],
            moment(get("timestamp")),
            value["text"] if value else None,
            CodeError(error["type"], error["message"]) if error else None,
            get("timed_out", False),
            get("interrupted", False),
            get("event"),
            tuple(get("notes") or ()),
        )


@dataclass(frozen=True)
class RunInfo:
    """A run in a list. ``phase`` is queued, running, exited or closed."""

    run: int
    phase: str
    command: str
    language: str
    exit_code: Optional[int] = None
    waiting_for_input: bool = False

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> RunInfo:
        return cls(
            row["run"],
            row["phase"],
            row["command"],
            row["language"],
            row.get("exit_code"),
            row.get("waiting_for_input", False),
        )


@dataclass(frozen=True)
class JobPort:
    """A port that a job listens on."""

    port: int
    address: str
    protocol: str


@dataclass(frozen=True)
class Job:
    """A process that a run has left in the background, with all that descends from it."""

    pid: int
    command: str
    state: str
    run: Optional[int]
    processes: int
    memory_bytes: int
    ports: Tuple[JobPort, ...]

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Job:
        ports = tuple(JobPort(port["port"], port["address"], port["protocol"]) for port in row["ports"])
        return cls(
            row["pid"], row["command"], row["state"], row.get("run"), row["processes"], row["memory_bytes"], ports
        )


@dataclass(frozen=True)
class Checkpoint:
    """A point that a session can be rewound to."""

    name: str
    as_of_run: int
    auto: bool
    created_at: Optional[datetime]
    left: Tuple[LeftBehind, ...]
    raw: Mapping[str, Any] = field(repr=False)

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Checkpoint:
        return cls(row["name"], row["as_of_run"], row["auto"], moment(row["created_at"]), _left(row), row)


@dataclass(frozen=True)
class Rewound:
    """A session that was taken back: ``undone`` are the runs that no longer count."""

    checkpoint: str
    undone: Tuple[int, ...]
    run: int
    as_of_run: int
    left: Tuple[LeftBehind, ...]

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Rewound:
        return cls(row["checkpoint"], tuple(row["undone"]), row["run"], row["as_of_run"], _left(row))


@dataclass(frozen=True)
class SavedSession:
    """A session in a file. ``left`` counts what could not be carried."""

    path: str
    bytes: int
    as_of_run: int
    left: int


@dataclass(frozen=True)
class FileInfo:
    """A file or directory of a session."""

    path: str
    name: str
    is_dir: bool
    size: int
    modified_at: Optional[datetime] = None
    type: str = "file"
    mode: Optional[str] = None
    target: Optional[str] = None

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> FileInfo:
        return cls(
            row["path"],
            row["name"],
            row["type"] == "directory",
            row.get("size") or 0,
            moment(row.get("modified")),
            row["type"],
            row.get("mode"),
            row.get("target"),
        )

    def relative_to(self, directory: str) -> FileInfo:
        """The same, seen from a directory that it lies in."""
        return dataclasses.replace(self, path=self.path[len(directory) :].lstrip("/"))


def rows(answer: Any) -> List[Dict[str, Any]]:
    """A list of the server's, bare or under a name."""
    if isinstance(answer, dict):
        for value in answer.values():
            if isinstance(value, list):
                return value
        return []
    found: List[Dict[str, Any]] = answer
    return found
