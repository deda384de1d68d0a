"""What to do, in the words of this package.

The server speaks to those who write requests: of headers, paths and fields. Whoever calls methods is
told of methods and arguments instead.
"""

from __future__ import annotations

import re
from typing import Optional

_HINTS = {
    "bad_request": "see the docstring of what was called for what it takes",
    "untrusted": "pass trust=True if you trust whoever made the file",
    "not_found": "check that the server is as new as this package",
    "method_not_allowed": "check that the server is as new as this package",
    "unsupported_media_type": "check that the server is as new as this package",
    "input_closed": "begin the run with interactive=True to give it input",
    "no_terminal": "begin the run with terminal=True",
    "busy": "pass wait=True, or interrupt the run",
    "run_lost": "look at what it has done, then run what is missing",
    "keeper_unavailable": "try again in a moment",
    "directory_not_empty": "pass recursive=True",
    "agent_not_found": "Agent() with a task makes one; resume_session takes the id of a session that has one",
    "layer_conflict": "compare both, then apply with force=True, or other paths",
}

_OF_AGENTS = {"busy": "wait for the task, or cancel it", "not_found": None}
"""The same for agents, whose methods take other arguments. Most of the messages say it themselves."""

_NOWHERE = "there is nothing at "
"""So begins the message of a server that does not know the call."""

_OF_REQUESTS = re.compile(
    r"""/v1/|/openapi\.json|/docs\b|Authorization:|Content-Type:|Idempotency-Key|"\w+": |\w=true|new key"""
)
"""Signs that a hint is for those who write requests."""


def hint_for(code: str, hint: Optional[str], message: str = "", is_agent: bool = False) -> Optional[str]:
    """The hint for an error of the server.

    >>> hint_for("busy", 'ask with "wait": true, or interrupt the run')
    'pass wait=True, or interrupt the run'
    >>> hint_for("bad_directory", "name a directory that exists")
    'name a directory that exists'
    >>> hint_for("bad_directory", "name a directory that exists", "it is not empty; name an empty one")
    'name an empty one'
    >>> hint_for("busy", 'ask with "wait": true', "a task is not over; wait for it, or cancel it", is_agent=True)
    'wait for it, or cancel it'
    """
    if code == "bad_directory" or (is_agent and code in _OF_AGENTS and not message.startswith(_NOWHERE)):
        advice = message.rpartition("; ")[2] if "; " in message else ""
        if advice and not _OF_REQUESTS.search(advice):
            return advice
        if code in _OF_AGENTS:
            return _OF_AGENTS[code]
    return _HINTS.get(code, hint) if hint and _OF_REQUESTS.search(hint) else hint
