"""What can go wrong, as types.

Every error is a :class:`SandboxError` (also named :class:`SessileError`). It has the
server's stable ``code``, a ``message`` that says what happened and a ``hint`` that says
what to do.

>>> import sessile
>>> try:
...     sessile.Session.attach("sess_0000").exec("ls")
... except sessile.SessionNotFoundError as error:
...     error.code
'session_not_found'
"""

from __future__ import annotations

import builtins
import re
from typing import TYPE_CHECKING, Any, Dict, Optional, Tuple, Type

if TYPE_CHECKING:
    from .results import Output, Result

__all__ = [
    "AuthenticationError",
    "BinaryNotFoundError",
    "CheckpointError",
    "CodebaseError",
    "CodebaseNotFoundError",
    "CommandExecutionError",
    "CommandLimitError",
    "CommandTimeoutError",
    "ConflictError",
    "ConnectionError",
    "FileNotFoundError",
    "InvalidConfigurationError",
    "PermissionDeniedError",
    "ResourceLimitExceededError",
    "RunLostError",
    "RunNotFoundError",
    "SandboxError",
    "SandboxNotFoundError",
    "SandboxNotRunningError",
    "SessileError",
    "SessionBusyError",
    "SessionClosedError",
    "SessionError",
    "SessionNotFoundError",
    "StillRunningError",
    "UnavailableError",
    "UploadError",
]


class SandboxError(Exception):
    """The base of all errors of this package.

    Attributes:
        message: what happened.
        details: more about it, where there is more.
        code: a stable word for it; ``session_not_found``, for example.
        hint: what to do.
        status: the HTTP status, if it came from the server.
        grpc_code: the number that gRPC has for such an error, for programs that look at it.
    """

    code: str = "error"
    grpc_code: Optional[int] = None

    def __init__(
        self,
        message: str,
        details: Optional[str] = None,
        *,
        code: Optional[str] = None,
        hint: Optional[str] = None,
        status: Optional[int] = None,
    ) -> None:
        self.message = message
        self.details = details
        self.hint = hint
        self.status = status
        if code is not None:
            self.code = code
        super().__init__(self._text())

    def _text(self) -> str:
        text = self.message
        if self.details:
            text += f" Details: {self.details}"
        if self.hint and not _says(text, self.hint):
            text += f" ({self.hint})"
        return text

    def __reduce__(self) -> Tuple[Any, ...]:
        # Errors cross processes (multiprocessing, executors), whatever their
        # constructors take.
        return _rebuilt, (type(self), self.args, dict(self.__dict__))


def _says(text: str, hint: str) -> bool:
    """Whether a text has all the words of a hint that matter.

    >>> _says("a task is not over; wait for it, or cancel it", "wait for the task, or cancel it")
    True
    >>> _says("the session is busy", "pass wait=True")
    False
    """
    wanted = set(re.findall(r"[\w=-]+", hint.lower())) - _LITTLE
    return wanted <= set(re.findall(r"[\w=-]+", text.lower()))


_LITTLE = {"a", "an", "and", "for", "it", "of", "or", "that", "the", "this", "to", "with"}


def _rebuilt(kind: Type[SandboxError], args: Tuple[Any, ...], fields: Dict[str, Any]) -> SandboxError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(fields)
    return error


SessileError = SandboxError


class ConnectionError(SandboxError, builtins.ConnectionError):
    """The server cannot be reached (``connection_failed``), went away and did not come back
    (``connection_lost``), or is the local one and does not start (``local_server_failed``)."""

    code = "connection_failed"
    grpc_code = 14

    def __init__(
        self,
        endpoint: str,
        details: Optional[str] = None,
        *,
        code: Optional[str] = None,
        hint: Optional[str] = None,
        message: Optional[str] = None,
    ) -> None:
        self.endpoint = endpoint
        super().__init__(message or f"Cannot reach Sessile at '{endpoint}'.", details, code=code, hint=hint)


class BinaryNotFoundError(ConnectionError):
    """There is no ``sessile`` program to start the local server with."""

    code = "binary_not_found"


class AuthenticationError(SandboxError):
    """The server does not accept the token, or wants one."""

    code = "unauthorized"
    grpc_code = 16


class PermissionDeniedError(SandboxError, builtins.PermissionError):
    """The caller, or the sandbox's rules, do not permit it."""

    code = "forbidden"
    grpc_code = 7

    def __init__(
        self, operation: str, path: Optional[str] = None, details: Optional[str] = None, **rest: Any
    ) -> None:
        self.operation = operation
        self.path = path
        on = f" on '{path}'" if path else ""
        super().__init__(rest.pop("message", None) or f"Permission denied for {operation}{on}", details, **rest)


class InvalidConfigurationError(SandboxError, ValueError):
    """A request that cannot be carried out as it is."""

    code = "invalid_argument"
    grpc_code = 3


class ResourceLimitExceededError(SandboxError):
    """A limit of the server or of a sandbox is reached."""

    code = "limit"
    grpc_code = 8

    def __init__(
        self, resource_type: str, limit: str, details: Optional[str] = None, **rest: Any
    ) -> None:
        self.resource_type = resource_type
        self.limit = limit
        message = rest.pop("message", None)
        super().__init__(
            message or f"Resource limit exceeded: {resource_type} limit is {limit}", details, **rest
        )


class UnavailableError(SandboxError):
    """The server is there and cannot do it now."""

    code = "unavailable"
    grpc_code = 14


class ConflictError(SandboxError):
    """Something that is there already, or in another state, stands against it."""

    code = "conflict"
    grpc_code = 6


# Commands


class CommandTimeoutError(SandboxError, builtins.TimeoutError):
    """A command took longer than its ``timeout`` and was interrupted. ``result`` has what it wrote."""

    code = "command_timeout"
    grpc_code = 4

    def __init__(
        self,
        command: str,
        timeout_seconds: float,
        details: Optional[str] = None,
        result: Optional[Result] = None,
    ) -> None:
        self.command = command
        self.timeout_seconds = timeout_seconds
        self.result = result
        super().__init__(
            f"Command timed out after {timeout_seconds:g}s: {command[:100]}",
            details,
            hint="give it a longer timeout, 0 for none; result has what it wrote",
        )


class CommandExecutionError(SandboxError):
    """A command failed, and was asked not to."""

    code = "command_failed"
    grpc_code = 2

    def __init__(
        self,
        command: str,
        exit_code: int,
        stdout: str = "",
        stderr: str = "",
        result: Optional[Result] = None,
    ) -> None:
        self.command = command
        self.exit_code = exit_code
        self.stdout = stdout
        self.stderr = stderr
        self.result = result
        details = (stderr or stdout)[-500:].strip() or None
        super().__init__(
            f"Command failed with exit code {exit_code}: {command[:100]}",
            details,
            hint="stdout and stderr have all that it wrote",
        )


class CommandLimitError(CommandExecutionError, ResourceLimitExceededError):
    """A command failed and has met a limit of its sandbox: ``resource_type`` and ``limit`` say which."""

    code = "limit"
    grpc_code = 8

    def __init__(self, result: Result) -> None:
        met = result.limits_met[0]
        self.command = result.command or ""
        self.exit_code = result.exit_code
        self.stdout = result.stdout
        self.stderr = result.stderr
        self.result = result
        self.resource_type = met.resource
        self.limit = str(met.limit)
        SandboxError.__init__(
            self,
            f"Command failed with exit code {self.exit_code}: {self.command[:100]}",
            "; ".join(result.notes) or None,
            hint=f"give the sandbox a larger limit for {met.resource}, or have the command use less",
        )


# Sessions


class SessionError(SandboxError):
    """Something about a session."""


class SessionNotFoundError(SessionError):
    """There is no such session."""

    code = "session_not_found"
    grpc_code = 5

    def __init__(self, session_id: str, details: Optional[str] = None, **rest: Any) -> None:
        self.session_id = session_id
        rest["hint"] = rest.get("hint") or "Client().sessions() lists those that there are; Session() starts one"
        super().__init__(rest.pop("message", None) or f"Session '{session_id}' not found", details, **rest)


class SessionClosedError(SessionError):
    """The session has ended."""

    code = "session_ended"
    grpc_code = 9

    def __init__(self, session_id: str, details: Optional[str] = None, **rest: Any) -> None:
        self.session_id = session_id
        rest["hint"] = rest.get("hint") or "start another with Session(); one with keep=True outlives its program"
        super().__init__(rest.pop("message", None) or f"Session '{session_id}' is closed", details, **rest)


class SessionBusyError(SessionError):
    """A run is going, and what was asked for has to be done between runs. ``wait=True`` waits."""

    code = "busy"
    grpc_code = 9


class RunNotFoundError(SessionError):
    """The session has no such run."""

    code = "run_not_found"
    grpc_code = 5


class RunLostError(SessionError):
    """The run's end is not known: its session's processes were killed, or it was taken back."""

    code = "run_lost"


class StillRunningError(SessionError, builtins.TimeoutError):
    """A run that was waited for goes on. ``output`` is what it has written so far.

    ``waiting_for_input`` says that it will not go on without input.
    """

    code = "running"

    def __init__(self, run: int, output: Output) -> None:
        self.run = run
        self.output = output
        self.waiting_for_input = output.waiting_for_input
        state = "waits for input" if output.waiting_for_input else "is still going"
        hint = "give it some with Run.input or Run.keys" if output.waiting_for_input else "wait longer, or interrupt it"
        super().__init__(f"Run {run} {state}", hint=hint)


class CheckpointError(SessionError):
    """There is no such checkpoint, or it is lost, or there is one with this name."""

    code = "checkpoint_not_found"


# Sandboxes and codebases


class SandboxNotFoundError(SandboxError):
    """There is no such sandbox."""

    code = "session_not_found"
    grpc_code = 5

    def __init__(self, sandbox_id: str, details: Optional[str] = None) -> None:
        self.sandbox_id = sandbox_id
        super().__init__(
            f"Sandbox '{sandbox_id}' not found",
            details,
            hint="make one with Sandbox.from_local; with keep=True it can be connected to after its program's end",
        )


class SandboxNotRunningError(SandboxError):
    """The sandbox was not started, or has been stopped."""

    code = "not_running"
    grpc_code = 9

    def __init__(self, sandbox_id: str, current_status: str, details: Optional[str] = None) -> None:
        self.sandbox_id = sandbox_id
        self.current_status = current_status
        super().__init__(
            f"Sandbox '{sandbox_id}' is not running (current status: {current_status})",
            details,
            hint="make another one" if current_status == "destroyed" else "call start() first",
        )


class CodebaseError(SandboxError):
    """Something about a codebase or a file."""


class CodebaseNotFoundError(CodebaseError):
    """There is no such codebase."""

    code = "codebase_not_found"
    grpc_code = 5

    def __init__(self, codebase_id: str, details: Optional[str] = None) -> None:
        self.codebase_id = codebase_id
        super().__init__(
            f"Codebase '{codebase_id}' not found",
            details,
            hint="list_codebases() has those that there are; create_codebase() makes one",
        )


class FileNotFoundError(CodebaseError, builtins.FileNotFoundError):
    """There is no such file."""

    code = "file_not_found"
    grpc_code = 5

    def __init__(
        self, codebase_id: str, file_path: str, details: Optional[str] = None, **rest: Any
    ) -> None:
        self.codebase_id = codebase_id
        self.file_path = file_path
        super().__init__(
            rest.pop("message", None) or f"File '{file_path}' not found in '{codebase_id}'", details, **rest
        )


class UploadError(CodebaseError):
    """A file could not be stored."""

    code = "upload_failed"
    grpc_code = 13

    def __init__(self, file_path: str, codebase_id: str, details: Optional[str] = None) -> None:
        self.file_path = file_path
        self.codebase_id = codebase_id
        super().__init__(f"Failed to upload '{file_path}' to '{codebase_id}'", details)
