"""What happens in a run, as it happens."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Any, Mapping, Optional, Union

from .results import Result

__all__ = ["Closed", "Event", "Exited", "FileChanged", "Other", "Started", "Stderr", "Stdout"]


@dataclass(frozen=True)
class Started:
    """The run has begun."""

    run: int


@dataclass(frozen=True)
class Stdout:
    """A piece of its output. No character is split between two."""

    run: int
    text: str
    data: bytes


@dataclass(frozen=True)
class Stderr:
    """A piece of its stderr."""

    run: int
    text: str
    data: bytes


@dataclass(frozen=True)
class Exited:
    """The command has answered. What it has left in the background may still write."""

    run: int
    exit_code: int
    result: Optional[Result] = None
    """All of it; only in the stream of one run."""


@dataclass(frozen=True)
class Closed:
    """Nothing can write any more."""

    run: int


@dataclass(frozen=True)
class FileChanged:
    """Something has changed below a directory that is watched."""

    path: str
    change: str


@dataclass(frozen=True)
class Other:
    """An event without a type of its own here: ``cancelled``, ``left``, ``ended``, …"""

    name: str
    data: Mapping[str, Any]


Event = Union[Started, Stdout, Stderr, Exited, Closed, Other]


def parse(name: str, text: str, command: Optional[str] = None, session_id: str = "") -> Event:
    """
    >>> parse("stdout", '{"run": 6, "data": "out"}')
    Stdout(run=6, text='out', data=b'out')
    """
    data = json.loads(text)
    run = data.get("run", 0)
    if name == "stdout" or name == "stderr":
        content = _bytes(data)
        kind = Stdout if name == "stdout" else Stderr
        return kind(run, content.decode("utf-8", "replace"), content)
    if name == "started":
        return Started(run)
    if name == "exited":
        found = data.get("result")
        result = Result.of(found, command, session_id) if found else None
        code = result.exit_code if result else data.get("exit_code", 0)
        return Exited(run, code, result)
    if name == "closed":
        return Closed(run)
    return Other(name, data)


def _bytes(data: Mapping[str, Any]) -> bytes:
    text: str = data.get("data", "")
    return base64.b64decode(text) if data.get("encoding") == "base64" else text.encode()
