"""Codebases and sandboxes, as data."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any, Dict, List, Mapping, Optional, Sequence

from .errors import InvalidConfigurationError
from .permissions import PatternType, Permission, PermissionRule, ResourceLimits, Rules, rule_dicts
from .presets import get_preset, list_presets

__all__ = ["Codebase", "RuntimeType", "SandboxInfo", "SandboxStatus", "SessionStatus", "UploadResult"]

WORKSPACE = "/workspace"
"""Where a sandbox has its files."""

NOTE = "SESSILE_SANDBOX"
"""The variable of a sandbox's session that keeps what belongs to the sandbox: its labels."""


class SandboxStatus(str, Enum):
    PENDING = "pending"
    RUNNING = "running"
    STOPPED = "stopped"
    ERROR = "error"


class SessionStatus(str, Enum):
    """Of a session in a sandbox."""

    UNKNOWN = "unknown"
    ACTIVE = "active"
    CLOSED = "closed"


class RuntimeType(str, Enum):
    """How AgentFense isolates. Sessile has one way, its own, and takes either word for it."""

    BWRAP = "bwrap"
    DOCKER = "docker"


@dataclass(frozen=True)
class Codebase:
    """Files that are kept at the server, for sandboxes to be made from."""

    id: str
    name: str
    owner_id: str
    size: int = 0
    file_count: int = 0
    created_at: Optional[datetime] = None
    updated_at: Optional[datetime] = None


@dataclass(frozen=True)
class UploadResult:
    codebase_id: str
    file_path: str
    size: int
    checksum: str
    """SHA-256, in hex."""


@dataclass(frozen=True)
class SandboxInfo:
    id: str
    status: SandboxStatus
    codebase_id: Optional[str] = None
    labels: Mapping[str, str] = field(default_factory=dict)
    created_at: Optional[datetime] = None
    policy: Mapping[str, Any] = field(default_factory=dict)
    permissions: List[PermissionRule] = field(default_factory=list)
    """The preset's, and those that were added."""


def policy(
    preset: Optional[str],
    permissions: Optional[Rules],
    resources: Optional[ResourceLimits],
    ignored: Sequence[str],
    network: Any,
) -> Dict[str, Any]:
    """What a sandbox is asked for, as the server takes it.

    >>> policy(None, None, None, [], None)
    {'preset': 'development'}
    >>> policy("read-only", [{"pattern": "/out/**", "permission": "write"}], None, ["*.log"], "none")["network"]
    'none'
    """
    made: Dict[str, Any] = {"preset": preset or "development"}
    rules = rule_dicts(permissions) + [rule for pattern in ignored for rule in hidden(pattern)]
    if rules:
        made["permissions"] = rules
    limits = resources.to_policy() if resources else {}
    if limits:
        made["limits"] = limits
    if network is not None:
        made["network"] = network
    return made


def rules_of(policy: Mapping[str, Any]) -> List[PermissionRule]:
    """The rules that a policy comes to.

    >>> rules = rules_of({"preset": "read-only", "permissions": [{"pattern": "/out/**", "permission": "write"}]})
    >>> [(rule.pattern, rule.permission.value) for rule in rules]
    [('**/*', 'read'), ('/out/**', 'write')]
    """
    preset = policy.get("preset")
    rules = get_preset(preset) if preset in list_presets() else []
    own = rule_dicts(policy.get("permissions"))
    return rules + [
        PermissionRule(rule["pattern"], Permission(rule["permission"]), PatternType(rule["type"]), rule["priority"])
        for rule in own
    ]


IGNORED = 1000
"""The priority of what is ignored: above all rules that people write."""


def hidden(pattern: str) -> List[Dict[str, Any]]:
    """Rules for what is not to be there at all.

    >>> [rule["pattern"] for rule in hidden("node_modules")]
    ['**/node_modules', '**/node_modules/**']
    >>> [rule["pattern"] for rule in hidden("/build/")]
    ['/build', '/build/**']
    """
    bare = pattern.rstrip("/")
    if not bare:
        raise InvalidConfigurationError(f"{pattern!r} is not a pattern to ignore")
    rooted = bare if "/" in bare else f"**/{bare}"
    return [
        {"pattern": each, "permission": "none", "type": "glob", "priority": IGNORED}
        for each in (rooted, f"{rooted}/**")
    ]


def note(labels: Optional[Mapping[str, str]], codebase_id: Optional[str]) -> str:
    return json.dumps({"labels": dict(labels or {}), "codebase_id": codebase_id})


def read_note(env: Mapping[str, str]) -> Dict[str, Any]:
    try:
        found: Any = json.loads(env.get(NOTE, ""))
    except ValueError:
        found = {}
    return {"labels": found.get("labels", {}), "codebase_id": found.get("codebase_id")}


def inner_path(path: str) -> str:
    """A path as the server takes it: relative to the workspace.

    >>> inner_path("/workspace/a/b"), inner_path("/docs/x"), inner_path("y"), inner_path("/workspace")
    ('a/b', 'docs/x', 'y', '')
    """
    if path == WORKSPACE or path.startswith(WORKSPACE + "/"):
        path = path[len(WORKSPACE) :]
    return path.lstrip("/")
