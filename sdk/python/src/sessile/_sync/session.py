# Made from ../_async by scripts/make_sync.py. Do not edit.
"""Sessions: live interpreters that keep what they are told."""

from __future__ import annotations

from typing import Any, List, Mapping, Optional, Union


from .. import events
from .._core import requests
from .._core.languages import program_of
from .._core.requests import WAIT, Repeat
from .._core.spans import Span, wire
from .._core.sse import Message
from ..errors import SandboxNotFoundError, SandboxNotRunningError, SessionClosedError, SessionNotFoundError
from ..permissions import SandboxSetting, sandbox_setting
from ..records import HistoryEntry, Job, RunInfo, SessionInfo, State, rows
from ..results import Result
from . import _io
from .client import Client, default_client
from .files import Files
from .following import Feed, Stream, named
from .ports import Port
from .run import Run
from .timeline import Timeline


class Session(Timeline, Files):
    """A live shell, Python and Node, which keep their state from one run to the next.

    >>> with Session() as session:
    ...     result = session.exec("cd /tmp; x=41")
    ...     result = session.exec("pwd; echo $((x+1))")
    >>> print(result.stdout, end="")
    /tmp
    42

    Leaving the ``with`` block ends the session and everything that it started. Without one, a
    session of this machine's own server ends with the program, however that ends, unless it has a
    name, is durable, or is to be kept. Every session ends when it has been idle for ``idle_timeout``.

    Args:
        language: what ``exec`` speaks: bash (the default), sh, zsh, python or node.
        shell: the same, by the name of a program: ``/bin/sh``, ``python3``.
        workspace: the directory to work in. On this machine it is the current one.
        cwd: a directory to begin in, if not the workspace itself.
        env: environment variables, besides the usual ones.
        sandbox: True, a preset's name, or a policy: what it may see, change and use.
        name: a name to find it by.
        keep: whether it lasts when this program has ended.
        idle_timeout: how long it lasts when nothing happens in it (30 minutes); 0 for ever.
        command_timeout: how long a run may take that has no timeout of its own (30 s); 0 for ever.
        durable: whether it is saved in idle time, and outlives the machine's restart.
        source: a session to begin with the state of, or the name of a server's pool.
        auto: how many checkpoints to keep, one taken before each run, for ``undo``.
        max_history: how many runs are remembered.
        client: where to start it; the one for this machine, or for SESSILE_URL, if not given.
    """

    def __init__(
        self,
        language: Optional[str] = None,
        *,
        shell: Optional[str] = None,
        workspace: Optional[str] = None,
        cwd: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        sandbox: SandboxSetting = None,
        name: Optional[str] = None,
        keep: Optional[bool] = None,
        idle_timeout: Optional[Span] = None,
        command_timeout: Optional[Span] = None,
        durable: Optional[bool] = None,
        source: Optional[str] = None,
        auto: Optional[int] = None,
        max_history: Optional[int] = None,
        client: Optional[Client] = None,
    ) -> None:
        self._client = client or default_client()
        self._connection = self._client._connection
        is_kept = bool(name or durable) if keep is None else keep
        self._order: Optional[Mapping[str, Any]] = {
            "shell": program_of(language, shell),
            "workspace": self._client._directory(workspace),
            "cwd": cwd,
            "env": dict(env) if env else None,
            "sandbox": sandbox_setting(sandbox),
            "name": name,
            "ends_with_caller": True if self._client.is_local and not is_kept else None,
            "idle_timeout": wire(idle_timeout),
            "command_timeout": wire(command_timeout),
            "durable": durable,
            "from": source,
            "auto": auto,
            "max_history": max_history,
        }
        self._id = ""
        self._path = ""
        self._is_closed = False
        self._is_owner = True
        self.work_dir = ""
        self._start()

    @classmethod
    def _of(cls, client: Client, id: str, work_dir: str = "", is_owner: bool = True) -> Session:
        """One that is there."""
        session = cls.__new__(cls)
        session._client = client
        session._connection = client._connection
        session._order = None
        session._id = id
        session._path = requests.path_of(id)
        session._is_closed = False
        session._is_owner = is_owner
        session.work_dir = work_dir
        return session

    @classmethod
    def attach(cls, id: str, *, client: Optional[Client] = None) -> Session:
        """One that was started before, by this program or another: by its id or its name.

        >>> again = Session.attach(session.id)
        >>> again.id == session.id
        True

        Leaving its ``with`` block does not end it.
        """
        client = client or default_client()
        info = client.session_info(id)
        if info.status == "terminated":
            raise SessionClosedError(info.id)
        return cls._of(client, info.id, info.work_dir, is_owner=False)

    def _start(self) -> Session:
        if self._order is not None:
            order, self._order = self._order, None
            answer = self._client._start_session(order)
            self._id, self.work_dir = answer["session_id"], answer["work_dir"]
            self._path = requests.path_of(self._id)
        return self

    def __enter__(self) -> Session:
        return self._start()

    def __exit__(self, *_: object) -> None:
        if self._is_owner:
            self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._id or 'not started'}>"

    @property
    def id(self) -> str:
        return self._id

    @property
    def client(self) -> Client:
        return self._client

    @property
    def closed(self) -> bool:
        """Whether it was closed here."""
        return self._is_closed

    def _check(self) -> None:
        if self._is_closed:
            raise SessionClosedError(self._id, code="session_closed")

    def _get(self, call: str, **query: Any) -> Any:
        self._check()
        return self._connection.ask(requests.get(self._path + call, subject=self._id, **query))

    def _post(
        self, call: str, body: Mapping[str, Any], *, repeat: Repeat = Repeat.UNSENT, patience: float = 0.0
    ) -> Any:
        self._check()
        request = requests.post(self._path + call, body, subject=self._id, repeat=repeat, patience=patience)
        return self._connection.ask(request)

    # Runs

    def exec(
        self,
        command: str,
        timeout: Optional[Span] = None,
        *,
        language: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        stdin: Optional[str] = None,
        no_output_timeout: Optional[Span] = None,
        max_output: Optional[int] = None,
        check: bool = False,
    ) -> Result:
        """Runs a command and waits for its end.

        >>> session.exec("echo $GREETING", env={"GREETING": "hello"}).stdout
        'hello\\n'
        >>> session.exec("sort", stdin="b\\na\\n").stdout
        'a\\nb\\n'

        A command that takes longer than ``timeout`` is interrupted, and the session is kept; so it
        is after Ctrl-C, or when the task is cancelled.

        Args:
            timeout: how long it may take, in seconds, or as "500ms", "2h"; 0 for ever.
            language: another one than the session's own.
            env: variables for this run only.
            stdin: what it reads.
            no_output_timeout: how long it may be silent.
            max_output: bytes of each stream in the result; the middle is left out of more.
            check: whether to raise when it fails.
        """
        body = _order(command, language, timeout, env, stdin, no_output_timeout, max_output)
        result = self._run("exec", body)
        return result.check() if check else result

    def python(self, code: str, timeout: Optional[Span] = None, *, check: bool = False) -> Result:
        """Runs Python in the session's own interpreter.

        >>> result = session.python("x = 6")
        >>> session.python("x * 7").result
        '42'
        """
        return self.exec(code, timeout, language="python", check=check)

    def node(self, code: str, timeout: Optional[Span] = None, *, check: bool = False) -> Result:
        """Runs JavaScript in the session's own Node.

        >>> (session.node("[1, 2, 3].map(n => n * 2)")).result
        '[ 2, 4, 6 ]'
        """
        return self.exec(code, timeout, language="node", check=check)

    def eval(
        self,
        expression: str,
        language: Optional[str] = None,
        timeout: Optional[Span] = None,
        *,
        check: bool = False,
    ) -> Result:
        """The value of an expression, of Python unless ``language`` says otherwise, in ``result``.

        >>> (session.eval("sum(range(5))")).result
        '10'

        In a shell it is what was printed.

        >>> (session.eval("echo $((6 * 7))", "bash")).result
        '42'
        """
        result = (self._run("eval", _order(expression, language, timeout))).of_eval()
        return result.check() if check else result

    def _run(self, call: str, body: Mapping[str, Any]) -> Result:
        self._check()
        key = requests.new_key()
        number: Optional[int] = None
        try:
            request = requests.execute(self._path, call, body, key, subject=self._id)
            answer = self._connection.ask(request)
            while answer.get("running"):
                number = answer["run"]
                path = f"{self._path}/runs/{number}"
                answer = self._connection.ask(requests.get(path, subject=self._id, patience=WAIT, wait=_WAIT))
        except _io.INTERRUPTIONS:
            _io.shielded(lambda: self._abandon(call, body, key, number))
            raise
        return Result.of(answer, body["command"], self._id)

    def _abandon(self, call: str, body: Mapping[str, Any], key: str, number: Optional[int]) -> None:
        """Interrupts a run that nobody waits for any more, and sees it end."""
        if number is None:
            # The key tells which run it is. But only if it was begun: to ask for one that
            # was not would begin it.
            going = [run for run in self.runs() if run.phase in ("queued", "running")]
            if not any(body["command"].startswith(run.command[:200]) for run in going):
                return
            request = requests.execute(self._path, call, body, key, wait=0.0, subject=self._id)
            answer = self._connection.ask(request)
            if not answer.get("running"):
                return
            number = answer["run"]
        self.interrupt(number)
        path = f"{self._path}/runs/{number}"
        self._connection.ask(requests.get(path, subject=self._id, wait="10s"))

    def stream(
        self,
        command: str,
        timeout: Optional[Span] = None,
        *,
        language: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        stdin: Optional[str] = None,
        no_output_timeout: Optional[Span] = None,
    ) -> Stream:
        """Runs a command and gives what happens as it happens; see :class:`Stream`.

        >>> for event in session.stream("echo hi"):
        ...     print(type(event).__name__)
        Started
        Stdout
        Exited
        Closed
        """
        self._check()
        body = _order(command, language, timeout, env, stdin, no_output_timeout)
        key = requests.new_key()
        return Stream(
            self._connection,
            self._path,
            self._id,
            begin=requests.execute_events(self._path, "exec", body, key, self._id),
            abandon=lambda number: self._abandon("exec", body, key, number),
            command=command,
        )

    def background(
        self,
        command: str,
        timeout: Optional[Span] = 0,
        *,
        language: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        stdin: Optional[str] = None,
        interactive: bool = False,
        terminal: Union[bool, Mapping[str, int]] = False,
        no_output_timeout: Optional[Span] = None,
    ) -> Run:
        """Begins a run and does not wait for it. Without a ``timeout`` it takes as long as it needs.

        Args:
            interactive: whether its stdin stays open, for ``Run.input``.
            terminal: whether it has a terminal, for ``Run.screen`` and ``Run.keys``;
                ``{"rows": 40, "cols": 120}`` sets its size.
        """
        self._check()
        body = {
            **_order(command, language, timeout, env, stdin, no_output_timeout),
            "interactive": interactive or None,
            "terminal": terminal or None,
        }
        request = requests.execute(self._path, "exec", body, requests.new_key(), wait=0.0, subject=self._id)
        answer = self._connection.ask(request)
        return Run(self, answer["run"], command)

    def get_run(self, number: int) -> Run:
        """A run of this session, by its number."""
        return Run(self, number)

    def runs(self, limit: Optional[int] = None) -> List[RunInfo]:
        """Runs that are queued or going, and the newest finished ones."""
        return [RunInfo.of(row) for row in rows(self._get("/runs", limit=limit))]

    def interrupt(self, run: Optional[int] = None) -> bool:
        """Interrupts a run, or whatever runs. Whether there was something to interrupt."""
        self._check()
        request = requests.post(
            self._path + "/interrupt", {"run": run}, subject=self._id, repeat=Repeat.SAFE
        )
        return bool(self._connection.ask(request)["interrupted"])

    # What it is and has

    def info(self) -> SessionInfo:
        return SessionInfo.of(self._get(""))

    def state(self) -> State:
        """Directory, environment, variables, functions: what its interpreters have in them.

        >>> result = session.exec("cd /usr; export STAGE=test")
        >>> state = session.state()
        >>> state.working_dir, state.env_vars["STAGE"]
        ('/usr', 'test')
        """
        return State.of(self._get("/state"))

    def history(self, limit: Optional[int] = None) -> List[HistoryEntry]:
        """Its finished runs, oldest first; the newest ``limit``."""
        return [HistoryEntry.of(row) for row in rows(self._get("/history", limit=limit))]

    def jobs(self) -> List[Job]:
        """What runs have left in the background."""
        return [Job.of(row) for row in rows(self._get("/jobs"))]

    def signal_job(self, pid: int, signal: str = "TERM") -> int:
        """Signals a job. The number of processes that got it."""
        return int(self._post(f"/jobs/{pid}/signal", {"signal": signal})["processes"])

    def events(self, *, tail: Optional[int] = None) -> Feed[events.Event]:
        """What all its runs do, whoever began them, until the session ends; see :class:`Feed`.

        Args:
            tail: how many finished runs to begin with.
        """
        self._check()

        def after(position: str) -> requests.Request:
            first = None if position else tail
            return requests.events(
                self._path + "/events", position, subject=self._id, output=True, tail=first
            )

        def read(message: Message) -> events.Event:
            return events.parse(message.event, message.data, None, self._id)

        return Feed(self._connection, after, named("ended"), read)

    def port(self, number: int) -> Port:
        """A port that something in the session listens on, reached through the server."""
        self._check()
        return Port(self._connection, f"{self._path}/ports/{number}", self._id, number)

    # Its life

    def rename(self, name: Optional[str]) -> None:
        # None is meant here, so this is not left out of the body.
        self._check()
        self._connection.ask(requests.rename(self._path, name, self._id))

    def reset(self) -> None:
        """Fresh interpreters. What they had in them is gone, and what they had started is ended."""
        self._post("/reset", {}, repeat=Repeat.SAFE)

    def close(self) -> None:
        """Ends it and everything that it started. Its records stay."""
        if self._is_closed or not self._id:
            self._is_closed = True
            return
        try:
            self._connection.ask(requests.delete(self._path, subject=self._id))
        except (SessionClosedError, SessionNotFoundError, SandboxNotRunningError, SandboxNotFoundError):
            pass
        self._is_closed = True


_WAIT = f"{WAIT:g}s"


def _order(
    command: str,
    language: Optional[str] = None,
    timeout: Optional[Span] = None,
    env: Optional[Mapping[str, str]] = None,
    stdin: Optional[str] = None,
    no_output_timeout: Optional[Span] = None,
    max_output: Optional[int] = None,
) -> Mapping[str, Any]:
    return {
        "command": command,
        "language": language,
        "timeout": wire(timeout),
        "env": dict(env) if env else None,
        "stdin": stdin,
        "no_output_timeout": wire(no_output_timeout),
        "max_output": max_output,
    }
