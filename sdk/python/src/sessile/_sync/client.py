# Made from ../_async by scripts/make_sync.py. Do not edit.
"""One server, and what it has."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any, Iterator, Callable, Dict, List, Mapping, Optional, Tuple, Union

from .._core import local, requests, trees
from .._core.endpoint import Local, choose
from .._core.requests import Repeat
from .._core.spans import Span, seconds, wire
from ..records import SessionInfo
from ..results import Result
from . import _io
from .codebases import Codebases
from .connection import Connection

if TYPE_CHECKING:
    from .session import Session

CARRIED = ("PATH", "VIRTUAL_ENV", "LANG", "LC_ALL", "TZ")
"""What sessions on this machine have of the environment of the program that starts them. The rest
is that of the local server, which some other program may have started."""


def carried() -> Dict[str, str]:
    return {name: os.environ[name] for name in CARRIED if name in os.environ}


class Client(Codebases):
    """A connection to the server of this machine, or to another one.

    >>> client = Client()
    >>> with client.session() as session:
    ...     result = session.exec("echo hi")
    >>> result.stdout
    'hi\\n'

    Without arguments, and without SESSILE_URL in the environment, it is the user's own server on
    this machine, which is started when it is not there. Threads may share a client. A process that
    was forked may go on using it.

    Args:
        url: where the server is: ``https://host:7377``. SESSILE_URL, if not given.
        token: what it lets this program do. SESSILE_TOKEN, if not given.
        verify: as httpx takes it: False, a file of certificates, or an ``ssl.SSLContext``.
        is_local: this machine's server, whatever SESSILE_URL says.
        debug: given a line about each request: what was asked, and what came of it. Never a token.
    """

    def __init__(
        self,
        url: Optional[str] = None,
        token: Optional[str] = None,
        *,
        verify: Any = True,
        is_local: bool = False,
        debug: Optional[Callable[[str], object]] = None,
    ) -> None:
        socket = local.socket_path(os.environ)
        endpoint = Local(socket) if is_local else choose(url, token, verify, os.environ, socket)
        self._connection = Connection(endpoint, debug)
        self._library_session = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.endpoint}>"

    @property
    def endpoint(self) -> str:
        """Where the server is: a URL, or the path of a socket."""
        return self._connection.endpoint.shown

    @property
    def is_local(self) -> bool:
        """Whether it is the user's own server on this machine."""
        return isinstance(self._connection.endpoint, Local)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes its connections. Sessions go on."""
        library, self._library_session = self._library_session, None
        if library is not None:
            library.close()
        self._connection.close()

    def _directory(self, given: Optional[str]) -> Optional[str]:
        """A workspace as the server knows it."""
        if not self.is_local:
            return given
        return os.path.abspath(given or os.getcwd())

    # Sessions

    def session(self, language: Optional[str] = None, **options: Any) -> Session:
        """A new session here; takes what :class:`Session` takes."""
        from .session import Session

        return Session(language, client=self, **options)

    def attach(self, id: str) -> Session:
        """A session that was started before, by its id or name."""
        from .session import Session

        return Session.attach(id, client=self)

    def sessions(
        self, *, status: Optional[str] = None, workspace: Optional[str] = None
    ) -> Iterator[SessionInfo]:
        """All sessions, newest first; ``status`` is active, lost or terminated.

        >>> ids = [info.id for info in client.sessions(status="active")]
        >>> session.id in ids
        True
        """
        after: Optional[str] = None
        while True:
            request = requests.get("/v1/sessions", status=status, workspace=workspace, after=after)
            page = self._connection.ask(request)
            for row in page["sessions"]:
                yield SessionInfo.of(row)
            after = page.get("next")
            if not after:
                return

    def session_info(self, id: str) -> SessionInfo:
        return SessionInfo.of(self._connection.ask(requests.get(requests.path_of(id), subject=id)))

    def _start_session(self, order: Mapping[str, Any]) -> Mapping[str, Any]:
        if self.is_local:
            order = {**order, "env": {**carried(), **(order.get("env") or {})}}
        request = requests.once("/v1/sessions", order, requests.new_key(), patience=60.0)
        answer: Mapping[str, Any] = self._connection.ask(request)
        return answer

    def run(
        self,
        command: str,
        timeout: Optional[Span] = None,
        *,
        language: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        stdin: Optional[str] = None,
        cwd: Optional[str] = None,
        check: bool = False,
    ) -> Result:
        """One command without a session.

        >>> client.run("echo hi").stdout
        'hi\\n'
        """
        body = {
            "command": command,
            "timeout": wire(timeout),
            "language": language,
            "env": dict(env) if env else None,
            "stdin": stdin,
            "cwd": self._directory(cwd),
        }
        patience = 86400.0 if timeout is None or seconds(timeout) == 0 else seconds(timeout)
        request = requests.once("/v1/exec", body, requests.new_key(), patience=patience)
        result = Result.of(self._connection.ask(request), command)
        return result.check() if check else result

    def restore(
        self,
        path: "Union[str, os.PathLike[str]]",
        *,
        cwd: Optional[str] = None,
        name: Optional[str] = None,
        trust: bool = False,
        keep: Optional[bool] = None,
    ) -> Session:
        """A new session from a saved file of this machine."""
        from .session import Session

        place = os.fspath(path)
        is_kept = bool(name) if keep is None else keep
        request = requests.send(
            "/v1/restore",
            lambda: _io.pieces(trees.read(place)),
            method="POST",
            repeat=Repeat.UNSENT,
            cwd=cwd,
            name=name,
            trust=trust,
            ends_with_caller=self.is_local and not is_kept,
        )
        answer = self._connection.ask(request)
        return Session._of(self, answer["session_id"], answer["work_dir"])

    def top(self) -> List[Mapping[str, Any]]:
        """What all sessions are doing: runs, CPU and memory."""
        answer = self._connection.ask(requests.get("/v1/top"))
        return list(answer["sessions"])

    def tool(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """The runtime tool's JSON, as ``sessile tool`` takes and answers it. Its workspace is the
        current directory, unless the server is elsewhere.

        >>> answer = client.tool({"action": "exec", "command": "x=41"})
        >>> (client.tool({"action": "exec", "command": "echo $((x+1))"}))["stdout"]
        '42\\n'
        """
        order = {**request, "workspace": self._directory(request.get("workspace"))}
        limit = request.get("timeout_ms")
        patience = 30.0 if limit is None else float(limit) / 1000 or 86400.0
        call = requests.post("/v1/tools/runtime", order, patience=patience)
        answer: Mapping[str, Any] = self._connection.ask(call)
        return answer

    def end_all(self) -> List[str]:
        """Ends all sessions of this server. Their ids."""
        return list((self._connection.ask(requests.delete("/v1/sessions")))["session_ids"])


_defaults: Dict[Tuple[Optional[str], Optional[str], str], Client] = {}
_making = threading.Lock()


def default_client() -> Client:
    """The one that is used where none is given: of SESSILE_URL, or of this machine."""
    key = (os.environ.get("SESSILE_URL"), os.environ.get("SESSILE_TOKEN"), local.socket_path(os.environ))
    client = _defaults.get(key)
    if client is None:
        with _making:
            client = _defaults.setdefault(key, Client())
    return client


def _renew_lock() -> None:
    global _making
    _making = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)
