"""What is asked of the server, as data. Nothing here sends anything."""

from __future__ import annotations

import dataclasses
import enum
import json
import os
from dataclasses import dataclass
from typing import Any, Dict, Mapping, Optional, Tuple
from urllib.parse import quote, urlencode

WAIT = 20.0
"""Seconds for which one request waits for a run. Then the next one waits, so that a
connection that died silently is noticed, and no proxy on the way gives up."""

MARGIN = 25.0
"""Seconds beyond that after which a silent server is taken for gone. It says something
each 15 seconds on a stream."""


class Repeat(enum.Enum):
    """Whether a request may be sent again when its answer was lost."""

    SAFE = "safe"
    UNSENT = "unsent"
    """Only when it was certainly not received."""


@dataclass(frozen=True)
class Request:
    """One request. ``subject`` is the session that errors are about. ``content`` is bytes, or a
    function that gives an iterator over pieces, anew for each time that it is sent.
    ``is_long`` says that it may wait for a run: those have connections of their own, so that
    what interrupts runs, or gives them input, never waits behind them."""

    method: str
    path: str
    content: Any = None
    headers: Tuple[Tuple[str, str], ...] = ()
    repeat: Repeat = Repeat.SAFE
    read_timeout: float = WAIT + MARGIN
    subject: str = ""
    is_long: bool = False


_JSON = (("Content-Type", "application/json"),)


def _query(values: Mapping[str, Any]) -> str:
    shown: Dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, bool):
            value = "true" if value else None
        if value is not None:
            shown[name] = value
    return "?" + urlencode(shown, quote_via=quote) if shown else ""


def word(text: str) -> str:
    """A part of a path."""
    return quote(text, safe="")


def path_of(session: str) -> str:
    return "/v1/sessions/" + word(session)


def get(path: str, /, *, subject: str = "", patience: float = 0.0, **query: Any) -> Request:
    """``patience`` is how long the server may take beyond the usual."""
    made = Request("GET", path + _query(query), subject=subject, read_timeout=patience + WAIT + MARGIN)
    return dataclasses.replace(made, is_long=True) if patience else made


def delete(path: str, /, *, subject: str = "", **query: Any) -> Request:
    return Request("DELETE", path + _query(query), subject=subject, read_timeout=60.0)


def post(
    path: str,
    body: Mapping[str, Any],
    *,
    subject: str = "",
    repeat: Repeat = Repeat.UNSENT,
    patience: float = 0.0,
    method: str = "POST",
) -> Request:
    """With a JSON body, without what is None in it."""
    return Request(method, path, _content(body), _JSON, repeat, patience + WAIT + MARGIN, subject)


def _content(body: Mapping[str, Any]) -> bytes:
    return json.dumps({name: value for name, value in body.items() if value is not None}).encode()


def new_key() -> str:
    return os.urandom(16).hex()


def once(
    path: str, body: Mapping[str, Any], key: str, *, subject: str = "", patience: float = 0.0
) -> Request:
    """An order. The key makes it safe to give twice: the server carries it out once."""
    headers = (*_JSON, ("Idempotency-Key", key))
    return Request("POST", path, _content(body), headers, Repeat.SAFE, patience + WAIT + MARGIN, subject)


def execute(
    path: str, call: str, body: Mapping[str, Any], key: str, *, wait: Optional[float] = WAIT, subject: str = ""
) -> Request:
    """A run. The key makes it safe to ask twice: the server runs it once."""
    headers = (*_JSON, ("Idempotency-Key", key))
    content = _content({**body, "wait": wait})
    return Request("POST", f"{path}/{call}", content, headers, Repeat.SAFE, (wait or 0.0) + MARGIN, subject, bool(wait))


def execute_events(path: str, call: str, body: Mapping[str, Any], key: str, subject: str = "") -> Request:
    headers = (*_JSON, ("Idempotency-Key", key), _EVENTS)
    return Request("POST", f"{path}/{call}", _content(body), headers, Repeat.SAFE, _SILENCE, subject, True)


_EVENTS = ("Accept", "text/event-stream")
_SILENCE = 15.0 + MARGIN


def events(path: str, last: str = "", /, *, subject: str = "", **query: Any) -> Request:
    headers = (_EVENTS, ("Last-Event-ID", last)) if last else (_EVENTS,)
    return Request("GET", path + _query(query), None, headers, Repeat.SAFE, _SILENCE, subject, True)


def send(
    path: str, content: Any, /, *, subject: str = "", method: str = "PUT", repeat: Repeat = Repeat.SAFE, **query: Any
) -> Request:
    """With bytes, or something that gives them, as its body."""
    headers = (("Content-Type", "application/octet-stream"),)
    return Request(method, path + _query(query), content, headers, repeat, 120.0, subject)


def rename(path: str, name: Optional[str], subject: str) -> Request:
    content = json.dumps({"name": name}).encode()
    return Request("PATCH", path, content, _JSON, Repeat.SAFE, WAIT + MARGIN, subject)


def ranged(request: Request, bytes_range: str) -> Request:
    return dataclasses.replace(request, headers=(*request.headers, ("Range", bytes_range)))


def as_tar(request: Request) -> Request:
    return dataclasses.replace(request, headers=(("Content-Type", "application/x-tar"),))
