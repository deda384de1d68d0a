# Made from ../_async by scripts/make_sync.py. Do not edit.
"""Sandboxes: a directory that can be worked in without being changed.

A sandbox is a session that is confined, and in which nothing is run. What is run in it runs in forks
of that session, which share its files and its walls: a fork that lasts for ``session()``, and one
for each ``run()``.
"""

from __future__ import annotations

import os
import shlex
from datetime import timedelta
from typing import Any, Iterator, Dict, List, Mapping, Optional, Sequence, Union

from .._core import requests
from .._core.endpoint import url_of
from .._core.spans import Span, seconds
from ..codebases import (
    NOTE,
    WORKSPACE,
    Codebase,
    SandboxInfo,
    SandboxStatus,
    SessionStatus,
    inner_path,
    note,
    policy,
    read_note,
    rules_of,
)
from ..errors import (
    CommandTimeoutError,
    InvalidConfigurationError,
    SandboxNotFoundError,
    SandboxNotRunningError,
    SessionClosedError,
    SessionNotFoundError,
)
from ..events import Stderr, Stdout
from ..layers import LayerApplied, LayerDiff, LayerDiscarded
from ..permissions import ResourceLimits, Rules
from ..results import Result
from .client import Client, default_client
from .connection import Answer, Body, Connection
from .session import Session

RUN_TIMEOUT = 60

IDLE = "8h"
"""How long a sandbox lasts in which nothing happens: a working day, and not for ever, because its
program may be one that cannot be seen to end."""


class Sandbox:
    """A directory to work in without changing it.

    >>> import pathlib
    >>> written = pathlib.Path("hello.py").write_text("print('hello')")
    >>> with Sandbox.from_local(".") as sandbox:
    ...     result = sandbox.run("python3 hello.py; rm hello.py; ls")
    >>> result.stdout, pathlib.Path("hello.py").exists()
    ('hello\\n', True)

    What is changed goes to a layer on top of the directory: ``diff()`` shows it, ``apply()`` brings it
    into the directory, and leaving the ``with`` block forgets it. Inside, the directory is
    ``/workspace``. Rules say what is there and what may be done with it.
    """

    def __init__(
        self,
        client: Client,
        order: Mapping[str, Any],
        *,
        labels: Optional[Mapping[str, str]] = None,
        codebase: Optional[Codebase] = None,
        source: Optional[str] = None,
        ignored: Sequence[str] = (),
        auto_start: bool = True,
    ) -> None:
        """Use ``from_local``, ``from_codebase`` or ``connect``."""
        self._client = client
        self._order = dict(order)
        self._labels = dict(labels or {})
        self._codebase = codebase
        self._codebase_id: Optional[str] = codebase.id if codebase else None
        self._source = source
        self._ignored = ignored
        self._auto_start = auto_start
        self._owns_codebase = False
        self._is_destroyed = False
        self._is_owner = True
        self._host: Optional[Session] = None
        self._status = SandboxStatus.PENDING
        self._sessions: List[Session] = []

    # How one is made

    @classmethod
    def from_local(
        cls,
        path: "Union[str, os.PathLike[str]]",
        preset: Optional[str] = "development",
        permissions: Optional[Rules] = None,
        runtime: Any = None,
        image: Optional[str] = None,
        resources: Optional[ResourceLimits] = None,
        endpoint: Optional[str] = None,
        secure: bool = False,
        owner_id: Optional[str] = None,
        codebase_name: Optional[str] = None,
        ignore_patterns: Optional[Sequence[str]] = None,
        labels: Optional[Mapping[str, str]] = None,
        auto_start: bool = True,
        *,
        network: Any = None,
        keep: bool = False,
        client: Optional[Client] = None,
    ) -> Sandbox:
        """A sandbox of a directory of this machine. With a server on this machine nothing is copied;
        another one gets the files.

        Args:
            path: the directory.
            preset: development (the default), agent-safe, read-only, view-only or full-access.
            permissions: further rules.
            runtime, image: of AgentFense; of no effect here.
            resources: how much it may use.
            endpoint: a server other than that of this machine, or of SESSILE_URL.
            secure: whether that one speaks TLS.
            ignore_patterns: what is not to be there: ``node_modules``, ``*.log``.
            labels: words of your own to go with it.
            auto_start: whether to start it at once; if not, ``start()`` does.
            network: ``"none"``, ``"full"``, or a list of hosts.
            keep: whether it lasts when this program has ended, for another to ``connect`` to.
            client: the server, as a client.
        """
        directory = os.path.abspath(os.fspath(path))
        if not os.path.isdir(directory):
            raise InvalidConfigurationError(
                f"Path is not a directory: {os.fspath(path)}",
                hint="make it first, or pass one that is there; relative paths begin at " + os.getcwd(),
            )
        client = client or _client_of(endpoint, secure)
        ignored = list(ignore_patterns or ())
        hidden = ignored if client.is_local else []
        confined = policy(preset, permissions, resources, hidden, network)
        order: Dict[str, Any] = {"sandbox": confined, "keep": keep}
        if client.is_local:
            order["workspace"] = directory
        sandbox = cls(client, order, labels=labels, source=directory, ignored=ignored, auto_start=auto_start)
        sandbox._codebase = None if client.is_local else _named(codebase_name, owner_id, directory)
        sandbox._begin()
        return sandbox

    @classmethod
    def from_codebase(
        cls,
        codebase_id: str,
        preset: Optional[str] = "development",
        permissions: Optional[Rules] = None,
        runtime: Any = None,
        image: Optional[str] = None,
        resources: Optional[ResourceLimits] = None,
        endpoint: Optional[str] = None,
        secure: bool = False,
        labels: Optional[Mapping[str, str]] = None,
        auto_start: bool = True,
        *,
        network: Any = None,
        keep: bool = False,
        client: Optional[Client] = None,
    ) -> Sandbox:
        """A sandbox of files that the server keeps; see ``Client.create_codebase``. Several may be made
        of the same: each has a layer of its own."""
        client = client or _client_of(endpoint, secure)
        order = {"sandbox": policy(preset, permissions, resources, (), network), "keep": keep}
        sandbox = cls(client, order, labels=labels, auto_start=auto_start)
        sandbox._codebase_id = codebase_id
        sandbox._begin()
        return sandbox

    @classmethod
    def connect(
        cls,
        sandbox_id: str,
        endpoint: Optional[str] = None,
        secure: bool = False,
        *,
        client: Optional[Client] = None,
    ) -> Sandbox:
        """One that was made before, by its id. Leaving its ``with`` block does not destroy it."""
        client = client or _client_of(endpoint, secure)
        try:
            info = client.session_info(sandbox_id)
        except SessionNotFoundError:
            raise SandboxNotFoundError(sandbox_id) from None
        if info.status == "terminated":
            raise SandboxNotFoundError(sandbox_id, "it was destroyed")
        about = read_note(info.env)
        sandbox = cls._at(client, info.id)
        sandbox._labels = dict(about["labels"])
        sandbox._codebase_id = about["codebase_id"]
        confined = dict(info.raw.get("sandbox") or {})
        # The rules of its preset are among the others there.
        confined.pop("preset", None)
        sandbox._order["sandbox"] = confined
        return sandbox

    @classmethod
    def _at(cls, client: Client, sandbox_id: str) -> Sandbox:
        """One that is there, made by somebody else."""
        sandbox = cls(client, {})
        sandbox._host = _host(Session._of(client, sandbox_id, WORKSPACE))
        sandbox._status = SandboxStatus.RUNNING
        sandbox._is_owner = False
        return sandbox

    def _begin(self) -> Sandbox:
        """Does what ``from_local`` and ``from_codebase`` have been asked for, once."""
        if self._auto_start and self._status is SandboxStatus.PENDING:
            self.start()
        return self

    def __enter__(self) -> Sandbox:
        return self._begin()

    def __exit__(self, *_: object) -> None:
        if self._is_owner:
            self.destroy()
        else:
            self._end_sessions()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id or 'not started'} {self._status.value}>"

    # Its life

    @property
    def id(self) -> str:
        """Empty before it was started."""
        return self._host.id if self._host else ""

    @property
    def status(self) -> SandboxStatus:
        return self._status

    @property
    def labels(self) -> Dict[str, str]:
        return dict(self._labels)

    @property
    def codebase_id(self) -> Optional[str]:
        return self._codebase_id

    @property
    def codebase(self) -> Optional[Codebase]:
        return self._codebase

    @property
    def client(self) -> Client:
        return self._client

    @property
    def info(self) -> SandboxInfo:
        """What it is, with the rules that hold in it."""
        confined = self._order.get("sandbox") or {}
        return SandboxInfo(
            self.id,
            self._status,
            self._codebase_id,
            self.labels,
            policy=confined,
            permissions=rules_of(confined),
        )

    def _live(self) -> Session:
        """The session that it is."""
        if self._host is None or self._status is not SandboxStatus.RUNNING:
            status = "destroyed" if self._is_destroyed else self._status.value
            raise SandboxNotRunningError(self.id, status)
        return self._host

    def start(self) -> Sandbox:
        """Starts it, or lets it go on after ``stop``."""
        if self._is_destroyed:
            raise SandboxNotRunningError(self.id, "destroyed")
        if self._host is None:
            self._host = self._made()
        self._status = SandboxStatus.RUNNING
        return self

    def _made(self) -> Session:
        if self._codebase is not None and self._codebase_id is None:
            self._upload(self._codebase)
        if self._codebase_id is not None:
            self._order["workspace"] = self._client._codebase_directory(self._codebase_id)
        env = {NOTE: note(self._labels, self._codebase_id)}
        order: Dict[str, Any] = {"idle_timeout": IDLE, "env": env, **self._order}
        session = Session(client=self._client, **order)
        return _host(session)

    def _upload(self, wanted: Codebase) -> None:
        """Brings the files to a server that is not on this machine."""
        made = self._client.create_codebase(wanted.name, wanted.owner_id)
        self._codebase, self._codebase_id, self._owns_codebase = made, made.id, True
        library = self._client._library()
        assert self._source is not None
        library.upload(self._source, self._client._place(made.id), ignore=self._ignored)

    def stop(self) -> Sandbox:
        """Ends what runs in it. Its files stay as they are, for ``start``."""
        self._end_sessions()
        if self._host is not None:
            self._host.reset()
        self._status = SandboxStatus.STOPPED
        return self

    def refresh(self) -> Sandbox:
        """Looks what has become of it."""
        if self._host is not None:
            info = self._client.session_info(self._host.id)
            if info.status == "terminated":
                self._status = SandboxStatus.STOPPED
        return self

    def destroy(self, delete_codebase: Optional[bool] = None) -> None:
        """Ends it, and forgets what was changed in it. A codebase is deleted if it was made for this
        sandbox, or as ``delete_codebase`` says."""
        if self._is_destroyed:
            return
        self._is_destroyed = True
        self._end_sessions()
        if self._host is not None:
            self._host.close()
        self._status = SandboxStatus.STOPPED
        is_to_go = self._owns_codebase if delete_codebase is None else delete_codebase
        if is_to_go and self._codebase_id is not None:
            self._client.delete_codebase(self._codebase_id)

    def _end_sessions(self) -> None:
        while self._sessions:
            self._sessions.pop().close()

    # What runs in it

    def session(self, shell: str = "/bin/sh", env: Optional[Mapping[str, str]] = None) -> SandboxSession:
        """A session that keeps its state, in this sandbox. Closing it kills what it started.

        ``/bin/sh`` is bash, so that ``source`` works, whatever the system's own is.
        """
        session = SandboxSession(self, shell, env)
        self._sessions.append(session)
        return session

    def run(
        self,
        command: str,
        timeout: Span = RUN_TIMEOUT,
        env: Optional[Mapping[str, str]] = None,
        workdir: Optional[str] = None,
        raise_on_error: bool = False,
    ) -> Result:
        """Runs a command in a fresh shell.

        Raises:
            CommandTimeoutError: when it takes longer than ``timeout``.
            CommandExecutionError: when it fails, with ``raise_on_error``.
        """
        result = self.exec(command, env=env, workdir=workdir, timeout=timeout)
        return result.check() if raise_on_error else result

    def exec(
        self,
        command: str,
        stdin: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        workdir: Optional[str] = None,
        timeout: Optional[Span] = None,
    ) -> Result:
        """The same with a stdin; without a ``timeout`` it takes as long as it needs."""
        with self._fresh() as shell:
            away = _enter(shell, workdir)
            if away is not None:
                return away
            limit = 0 if timeout is None else timeout
            result = shell.exec(command, limit, env=env, stdin=stdin)
        return _in_time(result, limit)

    def exec_stream(
        self,
        command: str,
        stdin: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        workdir: Optional[str] = None,
        timeout: Optional[Span] = None,
    ) -> Iterator[bytes]:
        """What it writes, stdout and stderr, as it comes."""
        with self._fresh() as shell:
            away = _enter(shell, workdir)
            if away is not None:
                yield away.stderr_bytes
                return
            limit = 0 if timeout is None else timeout
            stream = shell.stream(command, limit, env=env, stdin=stdin)
            for event in stream:
                if isinstance(event, (Stdout, Stderr)):
                    yield event.data
        _in_time(stream.result, limit)

    def _fresh(self) -> Session:
        return self._live().fork(wait=True)

    # Its files

    def read_file(self, path: str) -> str:
        return self._live().read_file(inner_path(path))

    def read_file_bytes(self, path: str) -> bytes:
        return self._live().read_file_bytes(inner_path(path))

    def write_file(self, path: str, content: Union[str, bytes]) -> None:
        self._live().write_file(inner_path(path), content)

    def list_files(self, path: str = "", recursive: bool = False) -> List[str]:
        """Paths, relative to ``/workspace``."""
        files = self._live().list_files(inner_path(path), recursive=recursive)
        return [file.path for file in files]

    def diff(self, paths: Union[str, Sequence[str]] = (), *, stat: bool = False) -> str:
        """What was changed, as a unified diff; see ``Session.diff``."""
        return self._live().diff(_inner_paths(paths), stat=stat)

    def changes(self, paths: Union[str, Sequence[str]] = ()) -> LayerDiff:
        """The same with each path that differs."""
        return self._live().changes(_inner_paths(paths))

    def apply(self, paths: Union[str, Sequence[str]] = (), *, force: bool = False) -> LayerApplied:
        """Brings what was changed into the directory."""
        return self._live().apply(_inner_paths(paths), force=force)

    def discard(self, paths: Union[str, Sequence[str]] = ()) -> LayerDiscarded:
        """Forgets what was changed."""
        return self._live().discard(_inner_paths(paths))


class HostConnection(Connection):
    """What the session of a sandbox is asked through: that it has ended is told of the sandbox."""

    def __init__(self, inner: Connection) -> None:
        super().__init__(inner.endpoint)
        self._inner = inner

    def _exchange(self, request: requests.Request, is_stream: bool) -> "Answer | Body":
        try:
            return self._inner._exchange(request, is_stream)
        except SessionClosedError as error:
            raise SandboxNotRunningError(error.session_id, "destroyed") from None
        except SessionNotFoundError as error:
            raise SandboxNotFoundError(error.session_id) from None


def _host(session: Session) -> Session:
    session._connection = HostConnection(session._connection)
    return session


class SandboxSession(Session):
    """A session in a sandbox."""

    def __init__(self, sandbox: Sandbox, shell: str, env: Optional[Mapping[str, str]]) -> None:
        self._sandbox = sandbox
        self._client = sandbox.client
        self._connection = self._client._connection
        self._order = {"env": dict(env or {})}
        self._language = _LANGUAGES.get(os.path.basename(shell))
        if self._language is None:
            raise InvalidConfigurationError(f"there is no shell {shell!r}", hint="take /bin/bash, /bin/sh or zsh")
        self.shell = shell
        self._id = ""
        self._path = ""
        self._is_closed = False
        self._is_owner = True
        self.work_dir = WORKSPACE
        self._start()

    @property
    def sandbox_id(self) -> str:
        return self._sandbox.id

    @property
    def status(self) -> SessionStatus:
        """As far as it is known here."""
        if self._is_closed:
            return SessionStatus.CLOSED
        return SessionStatus.ACTIVE if self._id else SessionStatus.UNKNOWN

    def _start(self) -> Session:
        if self._order is None:
            return self
        order, self._order = self._order, None
        fork = self._sandbox._live().fork(wait=True)
        self._id, self._path = fork.id, requests.path_of(fork.id)
        if order["env"]:
            words = [f"{name}={shlex.quote(value)}" for name, value in order["env"].items()]
            self.exec("export " + " ".join(words), check=True)
        return self

    def exec(
        self,
        command: str,
        timeout: Union[Span, timedelta, None] = None,
        *,
        language: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        stdin: Optional[str] = None,
        no_output_timeout: Optional[Span] = None,
        max_output: Optional[int] = None,
        check: bool = False,
    ) -> Result:
        """As in every session; one that takes longer than ``timeout`` is a CommandTimeoutError."""
        result = super().exec(
            command,
            0 if timeout is None else timeout,
            language=language or self._language,
            env=env,
            stdin=stdin,
            no_output_timeout=no_output_timeout,
            max_output=max_output,
            check=check,
        )
        return result if timeout is None else _in_time(result, timeout)


_LANGUAGES = {"sh": "bash", "bash": "bash", "dash": "sh", "zsh": "zsh", "python3": "python", "node": "node"}


def _client_of(endpoint: Optional[str], secure: bool) -> Client:
    if endpoint is None:
        return default_client()
    return Client(url_of(endpoint, secure))


def _named(name: Optional[str], owner_id: Optional[str], directory: str) -> Codebase:
    return Codebase("", name or os.path.basename(directory), owner_id or "")


def _enter(shell: Session, workdir: Optional[str]) -> Optional[Result]:
    """Goes to a directory; the failure to."""
    if workdir is None:
        return None
    result = shell.exec(f"cd -- {shlex.quote(workdir)}")
    return None if result.success else result


def _in_time(result: Result, limit: Span) -> Result:
    if result.timed_out:
        raise CommandTimeoutError(result.command or "", seconds(limit), result=result)
    return result


def _inner_paths(paths: Union[str, Sequence[str]]) -> List[str]:
    return [inner_path(path) for path in ([paths] if isinstance(paths, str) else paths)]
