"""The tool that all frameworks are given: its name, description, schema, and what it answers."""

from __future__ import annotations

import json
from typing import Any, Dict, Mapping, Optional, Tuple, Union

from .._async.client import AsyncClient
from .._async.connection import AsyncConnection
from .._async.session import AsyncSession
from .._sync.client import Client
from .._sync.connection import Connection
from .._sync.session import Session
from ..errors import SandboxError
from ..results import Result

AnySession = Union[Session, AsyncSession]

NAME = "shell"

DESCRIPTION = (
    "Runs a command in a live session and returns what it printed. The session keeps its state: "
    "directory, variables, functions and background processes are still there in the next call. "
    "language chooses bash (the default), or the session's own Python or Node, which keep their "
    "variables and imports, too, and answer with the value of the last expression."
)

SCHEMA: Dict[str, Any] = {
    "type": "object",
    "properties": {
        "command": {"type": "string", "description": "The command, or code, to run. Several lines are fine."},
        "language": {
            "type": ["string", "null"],
            "enum": ["bash", "python", "node", None],
            "description": "What the command is written in; bash when null.",
        },
        "timeout": {
            "type": ["number", "null"],
            "description": "Seconds after which it is interrupted; the session is kept. 30 when null.",
        },
    },
    "required": ["command", "language", "timeout"],
    "additionalProperties": False,
}
"""Strict, as OpenAI wants it: all is required, and what may be left out may be null."""

OUTPUT = 16_000
"""Bytes of each stream that a model is shown; the middle of more is left out."""


def sync_of(session: AnySession) -> Session:
    """The same session for code that blocks."""
    if isinstance(session, Session):
        return session
    client = Client.__new__(Client)
    client._connection = Connection(session._connection.endpoint)
    return Session._of(client, session.id, session.work_dir, is_owner=False)


def async_of(session: AnySession) -> AsyncSession:
    """The same session for asyncio, where a call that is cancelled interrupts its run."""
    if isinstance(session, AsyncSession):
        return session
    client = AsyncClient.__new__(AsyncClient)
    client._connection = AsyncConnection(session._connection.endpoint)
    return AsyncSession._of(client, session.id, session.work_dir, is_owner=False)


def text_of(result: Result) -> str:
    """A result as a model reads it.

    >>> print(text_of(session.exec("echo out; echo err >&2; exit 3", max_output=OUTPUT)))
    out
    [stderr]
    err
    [exit code 3]
    """
    parts = [result.stdout.rstrip("\n")]
    if result.result is not None:
        parts.append(result.result)
    if result.stderr.strip():
        parts.append("[stderr]\n" + result.stderr.rstrip("\n"))
    if result.timed_out:
        parts.append("[interrupted: it took too long]")
    elif result.exit_code != 0:
        parts.append(f"[exit code {result.exit_code}]")
    for job in result.jobs_ended:
        if job.failed:
            parts.append(f"[background job ended: {job.command or f'pid {job.pid}'}, exit code {job.exit_code}]")
    parts.extend(f"[{note}]" for note in result.notes)
    return "\n".join(part for part in parts if part) or "[no output]"


def arguments(given: Union[str, Mapping[str, Any], None]) -> Tuple[str, Optional[str], Optional[float]]:
    """What a model has sent, as JSON or already read."""
    read: Any = json.loads(given) if isinstance(given, str) else given
    if not isinstance(read, Mapping) or not isinstance(read.get("command"), str):
        raise ValueError("command is required, and it is a string")
    language = read.get("language") or None
    timeout = read.get("timeout")
    return read["command"], language, None if timeout is None else float(timeout)


class ShellTool:
    """A session as a tool: ``call`` and ``acall`` take what a model sends and give the text for it.
    A wrong call, or a refusal of the server, is text for the model, too."""

    def __init__(self, session: AnySession, *, name: str = NAME, description: str = DESCRIPTION) -> None:
        self.name = name
        self.description = description
        self.schema = SCHEMA
        self._sync = sync_of(session)
        self._async = async_of(session)

    def call(self, given: Union[str, Mapping[str, Any], None]) -> str:
        try:
            command, language, timeout = arguments(given)
            return self.run(command, language, timeout)
        except (SandboxError, ValueError) as error:
            return f"Error: {error}"

    async def acall(self, given: Union[str, Mapping[str, Any], None]) -> str:
        try:
            command, language, timeout = arguments(given)
            return await self.arun(command, language, timeout)
        except (SandboxError, ValueError) as error:
            return f"Error: {error}"

    def run(self, command: str, language: Optional[str] = None, timeout: Optional[float] = None) -> str:
        return text_of(self._sync.exec(command, timeout, language=language, max_output=OUTPUT))

    async def arun(self, command: str, language: Optional[str] = None, timeout: Optional[float] = None) -> str:
        return text_of(await self._async.exec(command, timeout, language=language, max_output=OUTPUT))
