"""Agents that go on: tasks, threads, and what survives a restart.

``Agent``, ``Task``, ``run`` and ``stream`` are sync; ``AsyncAgent``, ``AsyncTask``, ``run_async`` and
``stream_async`` are the same for asyncio.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._sync.agents import Agent, Approver, Task, Verdict, run, stream
from .runtimes import CloudRuntime, LocalRuntime, Runtime
from .threads import (
    AgentContinuity,
    AgentEvent,
    AgentInfo,
    AgentResult,
    Approval,
    ApprovalWanted,
    Continued,
    Delta,
    DoneCall,
    Ended,
    Failure,
    Intent,
    OtherEvent,
    Outcome,
    Reply,
    Retry,
    RewoundAgent,
    Step,
    Summary,
    TaskBegun,
    TaskFailedError,
    TaskInfo,
    ToolCall,
    Usage,
)

if TYPE_CHECKING:
    from ._async.agents import AsyncAgent, AsyncTask
    from ._async.agents import run as run_async
    from ._async.agents import stream as stream_async

_LATER = {"AsyncAgent": "AsyncAgent", "AsyncTask": "AsyncTask", "run_async": "run", "stream_async": "stream"}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'sessile.agents' has no attribute {name!r}")
    from ._async import agents

    value = globals()[name] = getattr(agents, _LATER[name])
    return value


__all__ = [
    "Agent",
    "AgentContinuity",
    "AgentEvent",
    "AgentInfo",
    "AgentResult",
    "Approval",
    "ApprovalWanted",
    "Approver",
    "AsyncAgent",
    "AsyncTask",
    "CloudRuntime",
    "Continued",
    "Delta",
    "DoneCall",
    "Ended",
    "Failure",
    "Intent",
    "LocalRuntime",
    "OtherEvent",
    "Outcome",
    "Reply",
    "Retry",
    "RewoundAgent",
    "Runtime",
    "Step",
    "Summary",
    "Task",
    "TaskBegun",
    "TaskFailedError",
    "TaskInfo",
    "ToolCall",
    "Usage",
    "Verdict",
    "run",
    "run_async",
    "stream",
    "stream_async",
]
