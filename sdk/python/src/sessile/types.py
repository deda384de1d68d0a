"""What calls take and give, under the names that AgentFense's users import it from.

``Sandbox`` is the data about a sandbox here, as it is there; what runs commands is
:class:`sessile.Sandbox`.
"""

from __future__ import annotations

from .codebases import Codebase, RuntimeType, SandboxInfo, SandboxStatus, SessionStatus, UploadResult
from .permissions import PatternType, Permission, PermissionRule, ResourceLimits
from .records import FileInfo
from .results import ExecResult

Sandbox = SandboxInfo

__all__ = [
    "Codebase",
    "ExecResult",
    "FileInfo",
    "PatternType",
    "Permission",
    "PermissionRule",
    "ResourceLimits",
    "RuntimeType",
    "Sandbox",
    "SandboxInfo",
    "SandboxStatus",
    "SessionStatus",
    "UploadResult",
]
