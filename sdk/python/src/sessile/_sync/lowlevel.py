# Made from ../_async by scripts/make_sync.py. Do not edit.
"""AgentFense's client: sandboxes and their sessions, by their ids."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Iterator, Callable, Dict, List, Mapping, Optional, Union

from .._core.endpoint import url_of
from .._core.spans import Span
from ..codebases import NOTE, SandboxInfo, SandboxStatus
from ..errors import SessionNotFoundError
from ..permissions import ResourceLimits, Rules
from ..results import Result
from .client import Client
from .sandbox import Sandbox, SandboxSession
from .session import Session

Timeout = Union[Span, timedelta, None]


class SandboxClient(Client):
    """A client that names sandboxes by their ids, as AgentFense's does. :class:`Sandbox` does the
    same with less to write.

    >>> client = SandboxClient()
    >>> codebase = client.create_codebase(name="example", owner_id="me")
    >>> upload = client.upload_file(codebase.id, "hello.py", b"print('hello')")
    >>> sandbox = client.create_sandbox(codebase_id=codebase.id)
    >>> sandbox = client.start_sandbox(sandbox.id)
    >>> client.exec(sandbox.id, command="python3 hello.py").stdout
    'hello\\n'
    >>> client.destroy_sandbox(sandbox.id)
    >>> client.delete_codebase(codebase.id)

    Args:
        endpoint: where the server is: ``host:port``, or a URL. That of this machine, or of
            SESSILE_URL, if not given.
        secure: whether it speaks TLS, where ``endpoint`` does not say.
        token, verify, debug: as :class:`Client` takes them.
    """

    def __init__(
        self,
        endpoint: Optional[str] = None,
        secure: bool = False,
        *,
        token: Optional[str] = None,
        verify: Any = True,
        debug: Optional[Callable[[str], object]] = None,
    ) -> None:
        super().__init__(url_of(endpoint, secure), token, verify=verify, debug=debug)
        self._sandboxes: Dict[str, Sandbox] = {}
        self._shells: Dict[str, SandboxSession] = {}

    # Sandboxes

    def create_sandbox(
        self,
        codebase_id: str,
        permissions: Optional[Rules] = None,
        runtime: Any = None,
        image: Optional[str] = None,
        resources: Optional[ResourceLimits] = None,
        labels: Optional[Mapping[str, str]] = None,
        expires_in: Optional[timedelta] = None,
        *,
        preset: Optional[str] = "development",
    ) -> SandboxInfo:
        """A sandbox of a codebase, which ``start_sandbox`` lets run. ``runtime`` and ``image`` are of no
        effect here; with ``expires_in`` it ends when nothing has happened in it for so long."""
        made = Sandbox.from_codebase(
            codebase_id, preset, permissions, resources=resources, labels=labels, auto_start=False, client=self
        )
        if expires_in is not None:
            made._order["idle_timeout"] = expires_in.total_seconds()
        made.start()
        made._status = SandboxStatus.PENDING
        self._sandboxes[made.id] = made
        return made.info

    def _sandbox(self, sandbox_id: str) -> Sandbox:
        known = self._sandboxes.get(sandbox_id)
        if known is None:
            known = Sandbox.connect(sandbox_id, client=self)
            self._sandboxes[sandbox_id] = known
        return known

    def get_sandbox(self, sandbox_id: str) -> SandboxInfo:
        return (self._sandbox(sandbox_id).refresh()).info

    def list_sandboxes(self, codebase_id: Optional[str] = None) -> List[SandboxInfo]:
        found: List[SandboxInfo] = []
        for session in self.sessions(status="active"):
            # What runs in a sandbox runs in forks of it.
            if NOTE in session.env and not session.raw.get("forked_from"):
                info = self._sandbox(session.id).info
                if codebase_id is None or info.codebase_id == codebase_id:
                    found.append(info)
        return found

    def start_sandbox(self, sandbox_id: str) -> SandboxInfo:
        return (self._sandbox(sandbox_id).start()).info

    def stop_sandbox(self, sandbox_id: str) -> SandboxInfo:
        return (self._sandbox(sandbox_id).stop()).info

    def destroy_sandbox(self, sandbox_id: str) -> None:
        sandbox = self._sandbox(sandbox_id)
        del self._sandboxes[sandbox_id]
        sandbox.destroy()

    # Commands

    def exec(
        self,
        sandbox_id: str,
        command: str,
        stdin: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        workdir: Optional[str] = None,
        timeout: Timeout = None,
    ) -> Result:
        """Runs a command in a fresh shell of a sandbox."""
        return self._sandbox(sandbox_id).exec(command, stdin, env, workdir, timeout)

    def exec_stream(
        self,
        sandbox_id: str,
        command: str,
        stdin: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        workdir: Optional[str] = None,
        timeout: Timeout = None,
    ) -> Iterator[bytes]:
        """The same, with what it writes as it comes."""
        sandbox = self._sandbox(sandbox_id)
        for piece in sandbox.exec_stream(command, stdin, env, workdir, timeout):
            yield piece

    # Sessions

    def session(self, language: Optional[str] = None, **options: Any) -> Session:
        """A session in a sandbox, by the sandbox's id, with ``shell`` and ``env``. A new one of its own,
        as :class:`Session` takes it, with anything else."""
        if language is None or not language.startswith("sess_"):
            return super().session(language, **options)
        sandbox = self._sandboxes.get(language) or Sandbox._at(self, language)
        return self._kept(sandbox.session(**options))

    def create_session(
        self, sandbox_id: str, shell: str = "/bin/sh", env: Optional[Mapping[str, str]] = None
    ) -> SandboxSession:
        session = self._sandbox(sandbox_id).session(shell, env)
        return self._kept(session)

    def _kept(self, session: SandboxSession) -> SandboxSession:
        if session.id:
            self._shells[session.id] = session
        return session

    def session_exec(self, session_id: str, command: str, timeout: Timeout = None) -> Result:
        return self.get_session(session_id).exec(command, timeout)

    def get_session(self, session_id: str) -> SandboxSession:
        """A session that this client has created."""
        found = self._shells.get(session_id)
        if found is None:
            raise SessionNotFoundError(session_id)
        return found

    def list_sessions(self, sandbox_id: Optional[str] = None) -> List[SandboxSession]:
        """Those that this client has created and not destroyed."""
        return [s for s in self._shells.values() if sandbox_id is None or s.sandbox_id == sandbox_id]

    def destroy_session(self, session_id: str) -> None:
        session = self.get_session(session_id)
        del self._shells[session_id]
        session.close()
