"""What comes of a run."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Dict, List, Mapping, Optional, Tuple

from .errors import CommandExecutionError, CommandLimitError, CommandTimeoutError

__all__ = ["CodeError", "Continuity", "EndedJob", "ExecResult", "MetLimit", "Output", "Result", "Screen"]


@dataclass(frozen=True)
class CodeError:
    """What the code raised."""

    type: str
    message: str


@dataclass(frozen=True)
class MetLimit:
    """A limit of a sandbox that a run has met."""

    resource: str
    """``memory``, ``pids`` or ``layer``: what the sandbox has changed in its files."""
    limit: int
    """Bytes, or processes and threads."""
    evidence: str = "counted"
    """``counted`` by the system, or ``guessed`` from how the run has ended."""


@dataclass(frozen=True)
class EndedJob:
    """A finished job of a shell."""

    pid: int
    run: int
    """The run that started it."""
    command: Optional[str] = None
    """Set if the run's text shows it."""
    exit_code: Optional[int] = None
    """None if the shell has forgotten it."""

    @property
    def failed(self) -> bool:
        """Whether it is known to have failed."""
        return self.exit_code not in (None, 0)


@dataclass(frozen=True)
class Continuity:
    """What happened to the session since it was last used.

    ``live``: everything is there. ``restored``: its processes had died; the state is the one
    after run ``as_of_run``, and how far ``lost_runs`` got is not known. ``fresh``: the same,
    but no state could be brought back.
    """

    status: str = "live"
    as_of_run: Optional[int] = None
    lost_runs: Tuple[int, ...] = ()

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> Continuity:
        found = answer.get("continuity")
        if not found or found["status"] == "live":
            return LIVE
        return cls(found["status"], found.get("as_of_run"), tuple(found.get("lost_runs", ())))


LIVE = Continuity()


def _stream(answer: Mapping[str, Any], name: str) -> Tuple[str, Optional[bytes]]:
    """A stream as text, and its bytes if they are not text."""
    text: str = answer.get(name, "")
    encoding = answer.get("encoding")
    if encoding and encoding.get(name) == "base64":
        data = base64.b64decode(text)
        return data.decode("utf-8", "replace"), data
    return text, None


@dataclass(frozen=True, repr=False)
class Result:
    """A run that has finished.

    >>> result = session.exec("echo hi; exit 3")
    >>> result.stdout, result.exit_code, result.success
    ('hi\\n', 3, False)

    Attributes:
        stdout, stderr: as text; what is not UTF-8 is replaced (``stdout_bytes`` has it).
        exit_code: as a shell has it; for Python and Node 0, or 1 when the code raised.
        duration: how long it took.
        command: what was run.
        result: the value of the last expression, in Python and Node.
        data: that value in other forms, by MIME type: a picture, a table. In a notebook the
            result shows as these.
        error: what the code raised, if it did.
        kernel: ``kept``, or that the interpreter is a new one: ``fresh``, ``restored``.
        notes: what else there is to know.
        timed_out, interrupted: whether it was made to end.
        truncated: for streams that were too long for the answer, what was left out.
        limits_met: limits of its sandbox that it has met.
        jobs_ended: jobs of a shell that have ended within this run, or since the one before.
    """

    stdout: str
    stderr: str
    exit_code: int
    duration: Optional[timedelta] = None
    command: Optional[str] = None
    result: Optional[str] = None
    data: Mapping[str, Any] = field(default_factory=dict)
    error: Optional[CodeError] = None
    kernel: str = "kept"
    language: str = "bash"
    run: int = 0
    notes: Tuple[str, ...] = ()
    timed_out: bool = False
    interrupted: bool = False
    repeated: bool = False
    truncated: Mapping[str, Any] = field(default_factory=dict)
    continuity: Continuity = LIVE
    session_id: str = ""
    raw_stdout: Optional[bytes] = field(default=None, repr=False)
    raw_stderr: Optional[bytes] = field(default=None, repr=False)
    limits_met: Tuple[MetLimit, ...] = ()
    jobs_ended: Tuple[EndedJob, ...] = ()

    @classmethod
    def of(cls, answer: Mapping[str, Any], command: Optional[str] = None, session_id: str = "") -> Result:
        stdout, raw_stdout = _stream(answer, "stdout")
        stderr, raw_stderr = _stream(answer, "stderr")
        get = answer.get
        error = get("error")
        return cls(
            stdout,
            stderr,
            answer["exit_code"],
            timedelta(milliseconds=answer["execution_time_ms"]),
            command,
            get("result"),
            get("data") or {},
            CodeError(error["type"], error["message"]) if error else None,
            get("kernel", "kept"),
            get("language", "bash"),
            get("run", 0),
            tuple(get("notes") or ()),
            get("timed_out", False),
            get("interrupted", False),
            get("repeated", False),
            get("truncated") or {},
            Continuity.of(answer),
            session_id,
            raw_stdout,
            raw_stderr,
            tuple(MetLimit(met["resource"], met["limit"], met["evidence"]) for met in get("limits_met") or ()),
            tuple(
                EndedJob(job["pid"], job["run"], job.get("command"), job.get("exit_code"))
                for job in get("jobs_ended") or ()
            ),
        )

    def __repr__(self) -> str:
        """What there is to say of it.

        >>> session.exec("echo hi; exit 3")
        Result(stdout='hi\\n', stderr='', exit_code=3, duration=...)
        """
        told = [f"stdout={self.stdout!r}", f"stderr={self.stderr!r}", f"exit_code={self.exit_code}"]
        if self.duration is not None:
            told.append(f"duration={self.duration}")
        for name in _REMARKABLE:
            value = getattr(self, name)
            if value and (name, value) != ("kernel", "kept"):
                told.append(f"{name}={value!r}")
        return f"Result({', '.join(told)})"

    @property
    def success(self) -> bool:
        """Whether it exited with 0."""
        return self.exit_code == 0

    @property
    def output(self) -> str:
        """Both streams: stdout, then stderr."""
        return "\n".join(part for part in (self.stdout, self.stderr) if part)

    @property
    def stdout_bytes(self) -> bytes:
        return self.stdout.encode() if self.raw_stdout is None else self.raw_stdout

    @property
    def stderr_bytes(self) -> bytes:
        return self.stderr.encode() if self.raw_stderr is None else self.raw_stderr

    def of_eval(self) -> Result:
        """The same with what a shell has printed as its value: it has no other."""
        if self.result is not None or self.language not in ("bash", "sh", "zsh"):
            return self
        return replace(self, result=self.stdout.rstrip("\n"))

    def check(self) -> Result:
        """Itself, if the run succeeded.

        >>> session.exec("exit 4").check()
        Traceback (most recent call last):
        sessile.errors.CommandExecutionError: Command failed with exit code 4: exit 4

        Raises:
            CommandTimeoutError: when it was interrupted because it took too long.
            CommandLimitError: when it failed and has met a limit of its sandbox. It is a
                ResourceLimitExceededError and a CommandExecutionError.
            CommandExecutionError: when it failed in another way.
        """
        command = self.command or ""
        if self.timed_out:
            took = self.duration.total_seconds() if self.duration else 0.0
            raise CommandTimeoutError(command, round(took, 3), result=self)
        if self.exit_code != 0 and self.limits_met:
            raise CommandLimitError(self)
        if self.exit_code != 0:
            raise CommandExecutionError(command, self.exit_code, self.stdout, self.stderr, self)
        return self

    raise_on_error = check

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Dict[str, Any]:
        """As a notebook shows it."""
        parts = [self.stdout, self.stderr, self.result or ""]
        text = "\n".join(part.rstrip("\n") for part in parts if part)
        if not self.success and not self.stderr:
            text += f"\n[exit code {self.exit_code}]"
        return {"text/plain": text, **self.data}


_REMARKABLE = (
    "result",
    "error",
    "kernel",
    "timed_out",
    "interrupted",
    "limits_met",
    "jobs_ended",
    "notes",
    "truncated",
)

ExecResult = Result


@dataclass(frozen=True)
class Output:
    """What a run has written from some ``cursor`` on. The next call begins at this one's ``cursor``."""

    stdout: str
    stderr: str
    cursor: str
    run: int
    running: bool
    phase: str = "running"
    waiting_for_input: bool = False
    notes: Tuple[str, ...] = ()

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> Output:
        return cls(
            _stream(answer, "stdout")[0],
            _stream(answer, "stderr")[0],
            answer["cursor"],
            answer["run"],
            answer["running"],
            answer.get("phase") or ("running" if answer["running"] else "closed"),
            answer.get("waiting_for_input", False),
            tuple(answer.get("notes") or ()),
        )


@dataclass(frozen=True)
class Screen:
    """What a terminal shows.

    ``wait`` says what became of waiting: ``matched``, ``settled``, ``ended`` or ``timed_out``.
    """

    text: str
    cursor: Optional[Tuple[int, int]]
    """Row and column, from zero; None when it is hidden."""
    title: str
    size: Tuple[int, int]
    """Rows and columns."""
    running: bool
    waiting_for_input: bool
    is_alternate: bool
    wait: Optional[str] = None

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> Screen:
        cursor, size = answer.get("cursor"), answer["size"]
        return cls(
            answer["text"],
            (cursor["row"], cursor["col"]) if cursor else None,
            answer["title"],
            (size["rows"], size["cols"]),
            answer["running"],
            answer["waiting_for_input"],
            answer["is_alternate"],
            answer.get("wait"),
        )

    def __str__(self) -> str:
        return self.text

    @property
    def lines(self) -> List[str]:
        return self.text.split("\n")
