"""The server's errors as this package's."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Mapping, Optional
from urllib.parse import parse_qs

from .. import errors
from .hints import hint_for
from .requests import Request


@dataclass(frozen=True)
class Asked:
    """What an error is about: the session, what was to be done, and the file that it was to be done with."""

    subject: str = ""
    operation: str = "this"
    path: Optional[str] = None
    is_agent: bool = False


def asked(request: Request) -> Asked:
    """
    >>> asked(Request("PUT", "/v1/sessions/sess_1/files/content?path=src%2Fa", subject="sess_1"))
    Asked(subject='sess_1', operation='write', path='src/a', is_agent=False)
    >>> asked(Request("POST", "/v1/sessions")).operation
    'start'
    """
    call, _, query = request.path.partition("?")
    last = call.rsplit("/", 1)[-1]
    path = _path_of(request, query) if "/files" in call else None
    if (request.method, call) == ("POST", "/v1/sessions"):
        return Asked(request.subject, "start")
    if call.startswith("/v1/agents"):
        return Asked(request.subject, last if last.isalpha() else "this", is_agent=True)
    if last in ("content", "archive"):
        return Asked(request.subject, "read" if request.method == "GET" else "write", path)
    if last == "files":
        return Asked(request.subject, "list" if request.method == "GET" else "remove", path)
    return Asked(request.subject, _WORDS.get(last, last if last.isalpha() else "this"), path)


_WORDS = {"directory": "make", "stat": "look at"}


def _path_of(request: Request, query: str) -> Optional[str]:
    """In the query, or in a body of JSON."""
    found = parse_qs(query).get("path")
    if found or not isinstance(request.content, bytes) or request.method != "POST":
        return found[0] if found else None
    try:
        body: Any = json.loads(request.content)
    except ValueError:
        return None
    return body.get("path") or body.get("from") if isinstance(body, dict) else None


def refusal(status: int, content: bytes, about: Asked) -> errors.SandboxError:
    """The error that an answer stands for."""
    code, message, hint = _detail(status, content)
    return make(code, message, hint, status, about)


def _detail(status: int, content: bytes) -> "tuple[str, str, Optional[str]]":
    try:
        detail: Any = json.loads(content)["error"]
        return str(detail["code"]), str(detail["message"]), detail.get("hint")
    except (ValueError, KeyError, TypeError, AttributeError):
        text = content[:200].decode("utf-8", "replace").strip()
        return "http_error", f"The server answered with status {status}: {text}", None


def from_event(data: Mapping[str, Any], subject: str = "") -> errors.SandboxError:
    """The error that a stream ends with."""
    detail = data.get("error", data)
    code, message = str(detail.get("code", "error")), str(detail.get("message", "the stream failed"))
    return make(code, message, detail.get("hint"), None, Asked(subject))


_PLAIN = {
    "busy": errors.SessionBusyError,
    "run_not_found": errors.RunNotFoundError,
    "run_lost": errors.RunLostError,
    "run_cancelled": errors.RunLostError,
    "checkpoint_not_found": errors.CheckpointError,
    "checkpoint_lost": errors.CheckpointError,
    "checkpoint_exists": errors.CheckpointError,
    "job_not_found": errors.SessionError,
    "input_closed": errors.SessionError,
    "no_terminal": errors.SessionError,
    "key_reused": errors.ConflictError,
    "name_taken": errors.ConflictError,
    "ambiguous": errors.ConflictError,
    "version_mismatch": errors.ConflictError,
}

_FILES_MISSING = {"file_not_found", "path_not_found", "no_such_file"}
_FORBIDDEN = {"forbidden", "untrusted", "host_not_allowed", "origin_not_allowed", "permission_denied"}


def make(
    code: str, message: str, hint: Optional[str], status: Optional[int], about: Asked
) -> errors.SandboxError:
    rest: "dict[str, Any]" = {"code": code, "hint": hint_for(code, hint, message, about.is_agent), "status": status}
    if code in _PLAIN:
        return _PLAIN[code](message, **rest)
    if code == "unauthorized":
        rest["hint"] = "pass token= or set SESSILE_TOKEN; `sessile token show --raw` prints the owner's"
        return errors.AuthenticationError(message, **rest)
    if code == "session_not_found":
        # The server's hint is for those who call it without this package.
        rest["hint"] = None
        return errors.SessionNotFoundError(about.subject, message=message, **rest)
    if code == "session_ended":
        rest["hint"] = "reset_session() lets the next task begin a new one" if about.is_agent else None
        return errors.SessionClosedError(about.subject, message=message, **rest)
    if code in _FILES_MISSING:
        return errors.FileNotFoundError(about.subject, about.path or "", message=message, **rest)
    if code in _FORBIDDEN or status == 403:
        return errors.PermissionDeniedError(about.operation, about.path, message=message, **rest)
    if status in (413, 429):
        return errors.ResourceLimitExceededError(code, limit_in(message), message=message, **rest)
    if status is not None and 400 <= status < 500:
        kind = errors.ConflictError if status == 409 else errors.InvalidConfigurationError
        return kind(message, **rest)
    return errors.UnavailableError(message, **rest)


def limit_in(message: str) -> str:
    """The limit that a refusal names.

    >>> limit_in("there are 5 live sessions, the most that this server allows")
    '5'
    >>> limit_in("3 more would be over the 5 live sessions that this server allows; there are 4")
    '5'
    >>> limit_in("the file holds more than the 1024 bytes that this server restores")
    '1024'
    """
    found = re.search(r"\b(?:over|than) (?:the )?(\d+)", message) or re.search(r"\d+", message)
    return found[found.lastindex or 0] if found else ""
