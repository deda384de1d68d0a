"""What a sandbox may see, change and use."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

from .errors import InvalidConfigurationError

__all__ = [
    "PatternType",
    "Permission",
    "PermissionRule",
    "ResourceLimits",
    "SandboxSetting",
    "sandbox_setting",
]


class Permission(str, Enum):
    """What may be done with a file. Each level includes those before it."""

    NONE = "none"
    """It does not exist."""
    VIEW = "view"
    """Its name is seen."""
    READ = "read"
    WRITE = "write"


class PatternType(str, Enum):
    """How a rule's pattern is meant."""

    GLOB = "glob"
    DIRECTORY = "directory"
    FILE = "file"


@dataclass
class PermissionRule:
    """What may be done with the files that a pattern fits. Of several, the one with the highest
    priority holds.

    >>> PermissionRule("/docs/**", Permission.WRITE, priority=10).to_dict()
    {'pattern': '/docs/**', 'permission': 'write', 'type': 'glob', 'priority': 10}
    """

    pattern: str
    permission: Permission = Permission.READ
    type: PatternType = PatternType.GLOB
    priority: int = 0

    def to_dict(self) -> Dict[str, Any]:
        return {
            "pattern": self.pattern,
            "permission": Permission(self.permission).value,
            "type": PatternType(self.type).value,
            "priority": self.priority,
        }


@dataclass
class ResourceLimits:
    """How much a sandbox may use.

    Attributes:
        memory_bytes: memory.
        cpu_quota: microseconds of processor time in each 100 ms: 150000 is one and a half processors.
        cpu_shares: a relative weight; accepted, and of no effect here.
        pids_limit: processes and threads.
    """

    memory_bytes: Optional[int] = None
    cpu_quota: Optional[int] = None
    cpu_shares: Optional[int] = None
    pids_limit: Optional[int] = None

    def to_dict(self) -> Dict[str, int]:
        """
        >>> ResourceLimits(pids_limit=100).to_dict()
        {'pids_limit': 100}
        """
        return {name: value for name, value in vars(self).items() if value is not None}

    @classmethod
    def from_dict(cls, given: Mapping[str, Optional[int]]) -> ResourceLimits:
        """
        >>> ResourceLimits.from_dict({"memory_bytes": 1024})
        ResourceLimits(memory_bytes=1024, cpu_quota=None, cpu_shares=None, pids_limit=None)
        """
        unknown = sorted(set(given) - {"memory_bytes", "cpu_quota", "cpu_shares", "pids_limit"})
        if unknown:
            raise InvalidConfigurationError(f"there is no limit {unknown[0]!r}")
        return cls(**given)

    def to_policy(self) -> Dict[str, Any]:
        """
        >>> ResourceLimits(cpu_quota=150000, pids_limit=100).to_policy()
        {'cpus': 1.5, 'pids': 100}
        """
        limits: Dict[str, Any] = {}
        if self.memory_bytes is not None:
            limits["memory_bytes"] = self.memory_bytes
        if self.cpu_quota is not None:
            limits["cpus"] = self.cpu_quota / 100_000
        if self.pids_limit is not None:
            limits["pids"] = self.pids_limit
        return limits


Rules = Sequence[Union[PermissionRule, Mapping[str, Any]]]

SandboxSetting = Union[None, bool, str, Mapping[str, Any]]
"""None or False: no sandbox. True: the preset ``development``. A preset's name. Or a policy, as the
HTTP API has it: ``{"preset": "development", "network": ["*.example.org"], …}``."""


def sandbox_setting(setting: SandboxSetting) -> Union[None, bool, str, Dict[str, Any]]:
    """As the server takes it."""
    if setting is None or setting is False:
        return None
    if isinstance(setting, (bool, str)):
        return setting
    return dict(setting)


def rule_dicts(rules: Optional[Rules]) -> List[Dict[str, Any]]:
    """Rules, however they were written. One without a priority comes after those of the preset
    that is extended, in the order given.

    >>> rule_dicts([{"pattern": "/secrets/**", "permission": "none"}])
    [{'pattern': '/secrets/**', 'permission': 'none', 'type': 'glob', 'priority': 0}]
    """
    made: List[Dict[str, Any]] = []
    for rule in rules or ():
        if isinstance(rule, PermissionRule):
            made.append(rule.to_dict())
            continue
        unknown = set(rule) - {"pattern", "permission", "type", "priority"}
        if "pattern" not in rule or unknown:
            wrong = f"unknown {sorted(unknown)}" if unknown else "no pattern"
            raise InvalidConfigurationError(f"a permission rule has {wrong}: {dict(rule)!r}")
        try:
            parsed = PermissionRule(
                rule["pattern"],
                Permission(rule.get("permission", "read")),
                PatternType(rule.get("type", "glob")),
                int(rule.get("priority", 0)),
            )
        except ValueError as error:
            raise InvalidConfigurationError(f"in {dict(rule)!r}: {error}") from None
        made.append(parsed.to_dict())
    return made
