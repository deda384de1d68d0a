"""The events of an agent's thread, and the result of a task."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, Dict, List, Mapping, Optional, Tuple, Union

from .errors import SandboxError

__all__ = [
    "AgentContinuity",
    "AgentEvent",
    "AgentInfo",
    "AgentResult",
    "Approval",
    "ApprovalWanted",
    "Continued",
    "Delta",
    "DoneCall",
    "Ended",
    "Failure",
    "Intent",
    "OtherEvent",
    "Outcome",
    "Reply",
    "Retry",
    "RewoundAgent",
    "Step",
    "Summary",
    "TaskBegun",
    "TaskFailedError",
    "TaskInfo",
    "ToolCall",
    "Usage",
]


@dataclass(frozen=True)
class ToolCall:
    """A call that the model wants to have carried out. ``malformed`` is what it gave in the place
    of arguments, if that is no JSON object."""

    id: str
    tool: str
    input: Mapping[str, Any] = field(default_factory=dict)
    malformed: Optional[str] = None


@dataclass(frozen=True)
class Usage:
    """Tokens to and from the model. Of the input, so many were in its cache."""

    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0

    @classmethod
    def of(cls, answer: Optional[Mapping[str, Any]]) -> Usage:
        get = (answer or {}).get
        return cls(get("input_tokens", 0), get("cached_tokens", 0), get("output_tokens", 0))


@dataclass(frozen=True)
class TaskBegun:
    entry: int
    at: datetime
    task: int
    text: str


@dataclass(frozen=True)
class Delta:
    """Words of the model as they come; the reply has them again as a whole."""

    text: str


@dataclass(frozen=True)
class Reply:
    """One answer of the model. ``step`` is its number among all steps of the thread, for
    ``Agent.rewind``."""

    entry: int
    at: datetime
    task: int
    step: int
    text: str
    calls: Tuple[ToolCall, ...]
    usage: Usage


@dataclass(frozen=True)
class ApprovalWanted:
    """A call waits for somebody's word: see ``Task.decide``."""

    call: ToolCall


@dataclass(frozen=True)
class Approval:
    """Somebody has said whether a call may be carried out."""

    entry: int
    at: datetime
    call: str
    allowed: bool
    reason: str


@dataclass(frozen=True)
class Intent:
    """A file is about to be changed. ``before`` and ``after`` are SHA-256 of what is in it and of
    what will be; ``before`` is None if there is none."""

    entry: int
    at: datetime
    call: str
    before: Optional[str]
    after: str


@dataclass(frozen=True)
class Outcome:
    """What came of a call, and which run of the session it led to."""

    entry: int
    at: datetime
    call: str
    text: str
    is_error: bool
    run: Optional[int]


@dataclass(frozen=True)
class Summary:
    """The conversation so far, summed up by the model."""

    entry: int
    at: datetime
    text: str


@dataclass(frozen=True)
class Continued:
    """The session was lost, and goes on: what could be brought back, and what could not."""

    entry: int
    at: datetime
    continuity: AgentContinuity


@dataclass(frozen=True)
class Retry:
    """The model has failed at this attempt (1, 2, …), and is asked once more ``after_ms``
    milliseconds later. Words since the last entry do not count."""

    attempt: int
    after_ms: int
    failure: Failure


@dataclass(frozen=True)
class Ended:
    """How the task ended: ``done``, ``limit``, ``cancelled``, ``refused`` or ``failed``."""

    entry: int
    at: datetime
    task: int
    ended: str


@dataclass(frozen=True)
class OtherEvent:
    """An event without a type of its own here."""

    name: str
    data: Mapping[str, Any]


AgentEvent = Union[
    TaskBegun,
    Delta,
    Reply,
    ApprovalWanted,
    Approval,
    Intent,
    Outcome,
    Summary,
    Continued,
    Retry,
    Ended,
    OtherEvent,
]


@dataclass(frozen=True)
class DoneCall:
    """A call, and what came of it."""

    call: ToolCall
    output: str = ""
    is_error: bool = False
    run: Optional[int] = None


@dataclass(frozen=True)
class Step:
    """One answer of the model, and what it led to. ``number`` is its number among all steps of the
    thread, for ``Agent.rewind``; ``entry`` is where it is in the thread."""

    number: int
    entry: int
    text: str
    calls: Tuple[DoneCall, ...]
    usage: Usage


@dataclass(frozen=True)
class Failure:
    """Why the model could not be had: a stable word, and what to do."""

    fault: str
    message: str


@dataclass(frozen=True)
class AgentContinuity:
    """What happened to the session before or during the task.

    ``live``: everything was there. ``restored``: it was brought back as of run ``as_of_run``, and
    ``lost`` names what was not. ``fresh``: nothing could be brought back.
    """

    status: str = "live"
    as_of_run: Optional[int] = None
    lost: Tuple[str, ...] = ()

    @classmethod
    def of(cls, answer: Optional[Mapping[str, Any]]) -> AgentContinuity:
        get = (answer or {}).get
        return cls(get("status", "live"), get("as_of_run"), tuple(get("lost") or ()))


@dataclass(frozen=True)
class TaskInfo:
    """A task, as the server tells of it. ``ended`` is None while it goes on."""

    task: int
    text: str
    running: bool
    ended: Optional[str]
    output: str
    usage: Usage
    cost: float
    taken_back: bool

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> TaskInfo:
        spent = answer.get("spent") or {}
        return cls(
            answer["task"],
            answer.get("text", ""),
            answer["running"],
            answer.get("ended"),
            answer.get("output") or "",
            Usage.of(spent),
            spent.get("cost", 0.0),
            bool(answer.get("taken_back")),
        )


@dataclass(frozen=True)
class RewoundAgent:
    """What was taken back: ``steps`` and ``tasks`` of the thread, and what the session says."""

    step: int
    steps: Tuple[int, ...]
    tasks: Tuple[int, ...]
    session: Optional[Mapping[str, Any]] = None

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> RewoundAgent:
        return cls(answer["step"], tuple(answer["steps"]), tuple(answer["tasks"]), answer.get("session"))


@dataclass(frozen=True)
class AgentResult:
    """A task that is over.

    Attributes:
        output: what the model said in the end; empty if it was not heard to the end.
        ended: ``done``, ``limit`` (``limit`` says which), ``cancelled``, ``refused`` or ``failed``.
        usage, cost: tokens, and what they cost in the currency of the model's prices.
        steps: what was done, in its order.
        continuity: what became of the session since it was last used.
    """

    session_id: str
    thread_id: str
    task: int
    output: str
    ended: str
    steps: Tuple[Step, ...]
    usage: Usage
    cost: float
    continuity: AgentContinuity
    limit: Optional[str] = None
    failure: Optional[Failure] = None
    is_cut_off: bool = False

    @classmethod
    def of(cls, answer: Mapping[str, Any], steps: Tuple[Step, ...]) -> AgentResult:
        failure, spent = answer.get("failure"), answer.get("spent") or {}
        return cls(
            answer["session_id"],
            answer["thread_id"],
            answer["task"],
            answer.get("output") or "",
            answer.get("ended") or "done",
            steps,
            Usage.of(spent),
            spent.get("cost", 0.0),
            AgentContinuity.of(answer.get("continuity")),
            answer.get("limit"),
            Failure(failure["fault"], failure["message"]) if failure else None,
            bool(answer.get("is_cut_off")),
        )

    @property
    def success(self) -> bool:
        """Whether the model did what it was asked, by its own word."""
        return self.ended == "done"

    def check(self) -> AgentResult:
        """Itself, if the model could be had.

        Raises:
            TaskFailedError: when it could not.
        """
        if self.ended == "failed":
            raise TaskFailedError(self)
        return self


class TaskFailedError(SandboxError):
    """The model could not be had: a wrong key, an unknown model, a server that does not answer.
    ``code`` is the fault."""

    def __init__(self, result: AgentResult) -> None:
        failure = result.failure or Failure("failed", "the task has failed")
        hint = "the agent is as it was before the failed step; the next task goes on from there"
        super().__init__(failure.message, code=failure.fault, hint=hint)
        self.result = result


@dataclass(frozen=True)
class AgentInfo:
    """An agent, as the server tells of it. ``status`` is idle, running,
    waiting_for_approval, moved or ended."""

    session_id: str
    thread_id: str
    model: str
    status: str
    task_count: int
    entries: int
    created: datetime
    last_activity: datetime
    waiting_for: Optional[str] = None

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> AgentInfo:
        return cls(
            answer["session_id"],
            answer["thread_id"],
            answer["model"],
            answer["status"],
            answer["task_count"],
            answer["entries"],
            _time(answer["created_ms"]),
            _time(answer["last_activity_ms"]),
            answer.get("waiting_for"),
        )


def _time(ms: Optional[int]) -> datetime:
    return datetime.fromtimestamp((ms or 0) / 1000, timezone.utc)


class Reader:
    """Events as they come, in our words, and the steps that they make. A call that waits is told
    by its id alone; the reply that it stands in came before."""

    def __init__(self) -> None:
        self._calls: Dict[str, ToolCall] = {}
        self._replies: List[Reply] = []
        self._outcomes: Dict[str, Outcome] = {}

    def read(self, name: str, text: str) -> AgentEvent:
        data = json.loads(text)
        get = data.get
        entry, at = get("entry", 0), _time(get("at_ms"))
        if name == "delta":
            return Delta(data["text"])
        if name == "task":
            return TaskBegun(entry, at, data["task"], data["text"])
        if name == "reply":
            reply = self._reply(entry, at, data)
            self._replies.append(reply)
            return reply
        if name == "approve":
            id = data["call"]
            return ApprovalWanted(self._calls.get(id) or ToolCall(id, ""))
        if name == "approval":
            verdict = get("verdict")
            reason = "" if verdict == "allowed" else str((verdict or {}).get("denied", ""))
            return Approval(entry, at, data["call"], verdict == "allowed", reason)
        if name == "intent":
            return Intent(entry, at, data["call"], get("before"), data["after"])
        if name == "outcome":
            outcome = Outcome(entry, at, data["call"], data["text"], get("is_error", False), get("run"))
            self._outcomes[outcome.call] = outcome
            return outcome
        if name == "summary":
            return Summary(entry, at, data["text"])
        if name == "continued":
            return Continued(entry, at, AgentContinuity.of(data))
        if name == "retry":
            failure = Failure(data["failure"]["fault"], data["failure"]["message"])
            return Retry(data["attempt"], data["after_ms"], failure)
        if name == "ended":
            return Ended(entry, at, data["task"], data["ended"])
        return OtherEvent(name, data)

    def _reply(self, entry: int, at: datetime, data: Mapping[str, Any]) -> Reply:
        blocks = data["blocks"]
        calls = tuple(_call(block) for block in blocks if block["type"] == "call")
        self._calls.update((call.id, call) for call in calls)
        text = "\n".join(block["text"] for block in blocks if block["type"] == "text")
        return Reply(entry, at, data["task"], data.get("step", 0), text, calls, Usage.of(data.get("usage")))

    def steps(self) -> Tuple[Step, ...]:
        return tuple(
            Step(reply.step, reply.entry, reply.text, tuple(map(self._done, reply.calls)), reply.usage)
            for reply in self._replies
        )

    def _done(self, call: ToolCall) -> DoneCall:
        outcome = self._outcomes.get(call.id)
        return DoneCall(call, outcome.text, outcome.is_error, outcome.run) if outcome else DoneCall(call)


def _call(block: Mapping[str, Any]) -> ToolCall:
    given = block.get("input") or {}
    return ToolCall(block["id"], block["tool"], given.get("json") or {}, given.get("malformed"))
