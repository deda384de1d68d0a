"""``%load_ext sessile``, then ``%%sessile`` before a cell: it runs in a session of the notebook's own.

``%%sessile`` runs bash; ``%%sessile python`` and ``%%sessile node`` the session's Python and Node.
``%sessile ls`` runs one line. ``%%sessile --session NAME`` uses a session by its name, and makes it
when there is none; without it the notebook has one. The value is the result, which shows as itself.
"""

from __future__ import annotations

import atexit
import shlex
import sys
from typing import Any, Dict, List, Optional, Tuple

from ._core.languages import PROGRAMS
from ._sync.session import Session
from .errors import InvalidConfigurationError, SessionClosedError, SessionNotFoundError
from .events import Stderr, Stdout
from .results import Result

_sessions: Dict[Optional[str], Session] = {}


def options(line: str) -> Tuple[Optional[str], Optional[str], Optional[str]]:
    """Language, session's name and timeout of a cell's first line.

    >>> options("python --session work --timeout 5m")
    ('python', 'work', '5m')
    """
    language: Optional[str] = None
    found: Dict[str, Optional[str]] = {"--session": None, "--timeout": None}
    words: List[str] = shlex.split(line)
    while words:
        word = words.pop(0)
        if word in found and words:
            found[word] = words.pop(0)
        elif word in PROGRAMS and language is None:
            language = word
        else:
            raise InvalidConfigurationError(
                f"%%sessile does not know {word!r}",
                hint=f"it takes {', '.join(PROGRAMS)}, --session NAME and --timeout TIME",
            )
    return language, found["--session"], found["--timeout"]


def session(name: Optional[str] = None) -> Session:
    """The session that cells run in."""
    there = _sessions.get(name)
    if there is not None and not there.closed:
        return there
    if name is None:
        _sessions[name] = Session()
    else:
        try:
            _sessions[name] = Session.attach(name)
        except (SessionNotFoundError, SessionClosedError):
            _sessions[name] = Session(name=name)
            # One with a name was meant to be found again.
            _sessions[name]._is_owner = False
    return _sessions[name]


def run(line: str, cell: Optional[str] = None) -> Optional[Result]:
    """The magic itself. Output appears as it comes."""
    language, name, timeout = (None, None, None) if cell is None else options(line)
    stream = session(name).stream(line if cell is None else cell, timeout, language=language)
    for event in stream:
        if isinstance(event, Stdout):
            print(event.text, end="", flush=True)
        elif isinstance(event, Stderr):
            print(event.text, end="", file=sys.stderr, flush=True)
    return _shown(stream.result)


def _shown(result: Result) -> Optional[Result]:
    """What is left to show when the output has been seen: a value, or nothing."""
    if result.result is None and not result.data:
        return None
    fields: Dict[str, Any] = {**result.__dict__, "stdout": "", "stderr": ""}
    return _Value(**fields)


class _Value(Result):
    """A result of which only the value shows."""

    def __repr__(self) -> str:
        return self.result or ""


def close() -> None:
    """Ends the notebook's own session."""
    for each in _sessions.values():
        if each._is_owner:
            each.close()
    _sessions.clear()


def load(shell: Any) -> None:
    shell.register_magic_function(run, "line_cell", "sessile")
    atexit.register(close)


def unload(shell: Any) -> None:
    del shell.magics_manager.magics["line"]["sessile"]
    del shell.magics_manager.magics["cell"]["sessile"]
    close()
