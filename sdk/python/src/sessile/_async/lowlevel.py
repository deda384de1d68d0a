"""AgentFense's client: sandboxes and their sessions, by their ids."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, AsyncIterator, Callable, Dict, List, Mapping, Optional, Union

from .._core.endpoint import url_of
from .._core.spans import Span
from ..codebases import NOTE, SandboxInfo, SandboxStatus
from ..errors import SessionNotFoundError
from ..permissions import ResourceLimits, Rules
from ..results import Result
from .client import AsyncClient
from .sandbox import AsyncSandbox, AsyncSandboxSession
from .session import AsyncSession

Timeout = Union[Span, timedelta, None]


class AsyncSandboxClient(AsyncClient):
    """A client that names sandboxes by their ids, as AgentFense's does. :class:`AsyncSandbox` does the
    same with less to write.

    >>> client = AsyncSandboxClient()
    >>> codebase = await client.create_codebase(name="example", owner_id="me")
    >>> upload = await client.upload_file(codebase.id, "hello.py", b"print('hello')")
    >>> sandbox = await client.create_sandbox(codebase_id=codebase.id)
    >>> sandbox = await client.start_sandbox(sandbox.id)
    >>> (await client.exec(sandbox.id, command="python3 hello.py")).stdout
    'hello\\n'
    >>> await client.destroy_sandbox(sandbox.id)
    >>> await client.delete_codebase(codebase.id)

    Args:
        endpoint: where the server is: ``host:port``, or a URL. That of this machine, or of
            SESSILE_URL, if not given.
        secure: whether it speaks TLS, where ``endpoint`` does not say.
        token, verify, debug: as :class:`AsyncClient` takes them.
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
        self._sandboxes: Dict[str, AsyncSandbox] = {}
        self._shells: Dict[str, AsyncSandboxSession] = {}

    # Sandboxes

    async def create_sandbox(
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
        made = AsyncSandbox.from_codebase(
            codebase_id, preset, permissions, resources=resources, labels=labels, auto_start=False, client=self
        )
        if expires_in is not None:
            made._order["idle_timeout"] = expires_in.total_seconds()
        await made.start()
        made._status = SandboxStatus.PENDING
        self._sandboxes[made.id] = made
        return made.info

    async def _sandbox(self, sandbox_id: str) -> AsyncSandbox:
        known = self._sandboxes.get(sandbox_id)
        if known is None:
            known = await AsyncSandbox.connect(sandbox_id, client=self)
            self._sandboxes[sandbox_id] = known
        return known

    async def get_sandbox(self, sandbox_id: str) -> SandboxInfo:
        return (await (await self._sandbox(sandbox_id)).refresh()).info

    async def list_sandboxes(self, codebase_id: Optional[str] = None) -> List[SandboxInfo]:
        found: List[SandboxInfo] = []
        async for session in self.sessions(status="active"):
            # What runs in a sandbox runs in forks of it.
            if NOTE in session.env and not session.raw.get("forked_from"):
                info = (await self._sandbox(session.id)).info
                if codebase_id is None or info.codebase_id == codebase_id:
                    found.append(info)
        return found

    async def start_sandbox(self, sandbox_id: str) -> SandboxInfo:
        return (await (await self._sandbox(sandbox_id)).start()).info

    async def stop_sandbox(self, sandbox_id: str) -> SandboxInfo:
        return (await (await self._sandbox(sandbox_id)).stop()).info

    async def destroy_sandbox(self, sandbox_id: str) -> None:
        sandbox = await self._sandbox(sandbox_id)
        del self._sandboxes[sandbox_id]
        await sandbox.destroy()

    # Commands

    async def exec(
        self,
        sandbox_id: str,
        command: str,
        stdin: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        workdir: Optional[str] = None,
        timeout: Timeout = None,
    ) -> Result:
        """Runs a command in a fresh shell of a sandbox."""
        return await (await self._sandbox(sandbox_id)).exec(command, stdin, env, workdir, timeout)

    async def exec_stream(
        self,
        sandbox_id: str,
        command: str,
        stdin: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        workdir: Optional[str] = None,
        timeout: Timeout = None,
    ) -> AsyncIterator[bytes]:
        """The same, with what it writes as it comes."""
        sandbox = await self._sandbox(sandbox_id)
        async for piece in sandbox.exec_stream(command, stdin, env, workdir, timeout):
            yield piece

    # Sessions

    def session(self, language: Optional[str] = None, **options: Any) -> AsyncSession:
        """A session in a sandbox, by the sandbox's id, with ``shell`` and ``env``. A new one of its own,
        as :class:`AsyncSession` takes it, with anything else."""
        if language is None or not language.startswith("sess_"):
            return super().session(language, **options)
        sandbox = self._sandboxes.get(language) or AsyncSandbox._at(self, language)
        return self._kept(sandbox.session(**options))

    async def create_session(
        self, sandbox_id: str, shell: str = "/bin/sh", env: Optional[Mapping[str, str]] = None
    ) -> AsyncSandboxSession:
        session = (await self._sandbox(sandbox_id)).session(shell, env)
        # [async only]
        await session
        # [end]
        return self._kept(session)

    def _kept(self, session: AsyncSandboxSession) -> AsyncSandboxSession:
        if session.id:
            self._shells[session.id] = session
        return session

    async def session_exec(self, session_id: str, command: str, timeout: Timeout = None) -> Result:
        return await (await self.get_session(session_id)).exec(command, timeout)

    async def get_session(self, session_id: str) -> AsyncSandboxSession:
        """A session that this client has created."""
        found = self._shells.get(session_id)
        if found is None:
            raise SessionNotFoundError(session_id)
        return found

    async def list_sessions(self, sandbox_id: Optional[str] = None) -> List[AsyncSandboxSession]:
        """Those that this client has created and not destroyed."""
        return [s for s in self._shells.values() if sandbox_id is None or s.sandbox_id == sandbox_id]

    async def destroy_session(self, session_id: str) -> None:
        session = await self.get_session(session_id)
        del self._shells[session_id]
        await session.close()
