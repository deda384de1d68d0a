"""Live shells, Python and Node for agents.

>>> from sessile import Session
>>> with Session() as session:
...     result = session.exec("cd /tmp; x=41")
...     print(session.exec("pwd; echo $((x+1))").stdout, end="")
/tmp
42
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._sync.client import Client
from ._sync.following import Feed, Stream
from ._sync.lowlevel import SandboxClient
from ._sync.ports import Port
from ._sync.run import Run
from ._sync.sandbox import Sandbox, SandboxSession
from ._sync.session import Session
from .codebases import Codebase, RuntimeType, SandboxInfo, SandboxStatus, SessionStatus, UploadResult
from ._version import __version__
from .errors import (
    AuthenticationError,
    BinaryNotFoundError,
    CheckpointError,
    CodebaseError,
    CodebaseNotFoundError,
    CommandExecutionError,
    CommandLimitError,
    CommandTimeoutError,
    ConflictError,
    ConnectionError,
    FileNotFoundError,
    InvalidConfigurationError,
    PermissionDeniedError,
    ResourceLimitExceededError,
    RunLostError,
    RunNotFoundError,
    SandboxError,
    SandboxNotFoundError,
    SandboxNotRunningError,
    SessileError,
    SessionBusyError,
    SessionClosedError,
    SessionError,
    SessionNotFoundError,
    StillRunningError,
    UnavailableError,
    UploadError,
)
from .events import Closed, Event, Exited, FileChanged, Other, Started, Stderr, Stdout
from .layers import LayerApplied, LayerChange, LayerDiff, LayerDiscarded
from .presets import (
    PRESET_AGENT_SAFE,
    PRESET_DEVELOPMENT,
    PRESET_FULL_ACCESS,
    PRESET_READ_ONLY,
    PRESET_VIEW_ONLY,
    extend_preset,
    get_preset,
    list_presets,
)
from .permissions import PatternType, Permission, PermissionRule, ResourceLimits
from .records import (
    Checkpoint,
    FileInfo,
    HistoryEntry,
    Job,
    JobPort,
    LeftBehind,
    Rewound,
    RunInfo,
    SavedSession,
    SessionInfo,
    State,
)
from .results import CodeError, Continuity, EndedJob, ExecResult, MetLimit, Output, Result, Screen

# The name that AgentFense has for it.
SessionWrapper = SandboxSession

if TYPE_CHECKING:
    from ._async.client import AsyncClient
    from ._async.following import AsyncFeed, AsyncStream
    from ._async.lowlevel import AsyncSandboxClient
    from ._async.ports import AsyncPort
    from ._async.run import AsyncRun
    from ._async.sandbox import AsyncSandbox, AsyncSandboxSession
    from ._async.session import AsyncSession

    AsyncSessionWrapper = AsyncSandboxSession

# asyncio takes as long to import as all the rest, and most programs need only one of the two.
_LATER = {
    "AsyncClient": "client",
    "AsyncPort": "ports",
    "AsyncRun": "run",
    "AsyncSandbox": "sandbox",
    "AsyncSandboxClient": "lowlevel",
    "AsyncSandboxSession": "sandbox",
    "AsyncSession": "session",
    "AsyncFeed": "following",
    "AsyncStream": "following",
}


def __getattr__(name: str) -> Any:
    name = {"AsyncSessionWrapper": "AsyncSandboxSession"}.get(name, name)
    module = _LATER.get(name)
    if module is None:
        raise AttributeError(f"module 'sessile' has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(f"._async.{module}", __name__), name)
    globals()[name] = value
    return value

__all__ = [
    "AsyncClient",
    "AsyncFeed",
    "AsyncPort",
    "AsyncRun",
    "AsyncSandbox",
    "AsyncSandboxClient",
    "AsyncSandboxSession",
    "AsyncSession",
    "AsyncSessionWrapper",
    "AsyncStream",
    "AuthenticationError",
    "BinaryNotFoundError",
    "Checkpoint",
    "CheckpointError",
    "Client",
    "Closed",
    "CodeError",
    "Codebase",
    "CodebaseError",
    "CodebaseNotFoundError",
    "CommandExecutionError",
    "CommandLimitError",
    "CommandTimeoutError",
    "ConflictError",
    "ConnectionError",
    "Continuity",
    "EndedJob",
    "Event",
    "ExecResult",
    "Exited",
    "Feed",
    "FileChanged",
    "FileInfo",
    "FileNotFoundError",
    "HistoryEntry",
    "InvalidConfigurationError",
    "Job",
    "JobPort",
    "LayerApplied",
    "LayerChange",
    "LayerDiff",
    "LayerDiscarded",
    "LeftBehind",
    "MetLimit",
    "Other",
    "Output",
    "PRESET_AGENT_SAFE",
    "PRESET_DEVELOPMENT",
    "PRESET_FULL_ACCESS",
    "PRESET_READ_ONLY",
    "PRESET_VIEW_ONLY",
    "PatternType",
    "Permission",
    "PermissionDeniedError",
    "PermissionRule",
    "Port",
    "ResourceLimitExceededError",
    "ResourceLimits",
    "Result",
    "Rewound",
    "Run",
    "RunInfo",
    "RunLostError",
    "RunNotFoundError",
    "RuntimeType",
    "Sandbox",
    "SandboxClient",
    "SandboxError",
    "SandboxInfo",
    "SandboxNotFoundError",
    "SandboxNotRunningError",
    "SandboxSession",
    "SandboxStatus",
    "SavedSession",
    "Screen",
    "SessileError",
    "Session",
    "SessionBusyError",
    "SessionClosedError",
    "SessionError",
    "SessionInfo",
    "SessionNotFoundError",
    "SessionStatus",
    "SessionWrapper",
    "Started",
    "State",
    "Stderr",
    "Stdout",
    "StillRunningError",
    "Stream",
    "UnavailableError",
    "UploadError",
    "UploadResult",
    "extend_preset",
    "get_preset",
    "list_presets",
    "__version__",
]


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext sessile``"""
    from . import magic

    magic.load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """``%unload_ext sessile``"""
    from . import magic

    magic.unload(shell)
