"""Presets of rules, by name, for those who want to see or extend them. The server has the same, and
is asked for them by name; a test compares."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from .errors import InvalidConfigurationError
from .permissions import PatternType, Permission, PermissionRule, Rules, rule_dicts

__all__ = [
    "PRESET_AGENT_SAFE",
    "PRESET_DEVELOPMENT",
    "PRESET_FULL_ACCESS",
    "PRESET_READ_ONLY",
    "PRESET_VIEW_ONLY",
    "extend_preset",
    "get_preset",
    "list_presets",
]

PRESET_AGENT_SAFE = "agent-safe"
PRESET_DEVELOPMENT = "development"
PRESET_FULL_ACCESS = "full-access"
PRESET_READ_ONLY = "read-only"
PRESET_VIEW_ONLY = "view-only"

_SECRETS = [(pattern, "none", 100) for pattern in ("**/.env*", "**/secrets/**", "**/*.key", "**/*.pem")]

_RULES = {
    PRESET_AGENT_SAFE: [
        ("**/*", "read", 0),
        ("/output/**", "write", 10),
        ("/tmp/**", "write", 10),
        ("**/.git/**", "none", 50),
        *_SECRETS,
        ("**/credentials*", "none", 100),
    ],
    PRESET_DEVELOPMENT: [("**/*", "write", 0), *_SECRETS],
    PRESET_FULL_ACCESS: [("**/*", "write", 0)],
    PRESET_READ_ONLY: [("**/*", "read", 0)],
    PRESET_VIEW_ONLY: [("**/*", "view", 0)],
}


def list_presets() -> List[str]:
    """
    >>> list_presets()
    ['agent-safe', 'development', 'full-access', 'read-only', 'view-only']
    """
    return sorted(_RULES)


def get_preset(name: str) -> List[PermissionRule]:
    """The rules of a preset.

    >>> get_preset("read-only")[0].permission.value
    'read'
    """
    if name not in _RULES:
        raise InvalidConfigurationError(
            f"there is no preset {name!r}", hint=f"there are {', '.join(list_presets())}"
        )
    return [PermissionRule(pattern, Permission(level), priority=at) for pattern, level, at in _RULES[name]]


def extend_preset(
    base: str, additions: Optional[Rules] = None, overrides: Optional[Rules] = None
) -> List[PermissionRule]:
    """A preset's rules and further ones: ``additions`` with the priorities that they have, ``overrides``
    above all others. They are what ``permissions`` takes; pass ``preset=base`` along with them."""
    rules = get_preset(base) + [_rule(each) for each in rule_dicts(additions)]
    highest = max(rule.priority for rule in rules)
    for each in rule_dicts(overrides):
        rule = _rule(each)
        rule.priority = max(rule.priority, highest + 1)
        rules.append(rule)
    return rules


def _rule(each: Dict[str, Any]) -> PermissionRule:
    return PermissionRule(
        each["pattern"], Permission(each["permission"]), PatternType(each["type"]), each["priority"]
    )
