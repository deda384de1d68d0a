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
    "layer_conflict": "compare both, then apply with force=True, or other paths",
}

_OF_REQUESTS = re.compile(
    r"""/v1/|/openapi\.json|/docs\b|Authorization:|Content-Type:|Idempotency-Key|"\w+": |\w=true|new key"""
)
"""Signs that a hint is for those who write requests."""


def hint_for(code: str, hint: Optional[str]) -> Optional[str]:
    """The hint for an error of the server.

    >>> hint_for("busy", 'ask with "wait": true, or interrupt the run')
    'pass wait=True, or interrupt the run'
    >>> hint_for("bad_directory", "name a directory that exists")
    'name a directory that exists'
    """
    return _HINTS.get(code, hint) if hint and _OF_REQUESTS.search(hint) else hint
