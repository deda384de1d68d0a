"""Agents: a session with a model that works in it, and remembers what was said."""

from __future__ import annotations

from typing import Any, AsyncIterator, Callable, Dict, List, Mapping, Optional, Sequence, Union

# [async only]
import inspect  # isort: skip
from typing import Awaitable  # isort: skip

# [end]

from .._core import requests
from .._core.requests import Repeat, Request
from .._core.sse import Message
from ..errors import InvalidConfigurationError, SessionBusyError, SessionClosedError
from ..permissions import SandboxSetting, sandbox_setting
from ..runtimes import LocalRuntime, Runtime
from ..threads import (
    AgentEvent,
    AgentInfo,
    AgentResult,
    ApprovalWanted,
    Ended,
    Reader,
    RewoundAgent,
    TaskBegun,
    TaskInfo,
    ToolCall,
)
from . import _io
from .client import AsyncClient, carried
from .connection import AsyncConnection
from .following import follow
from .session import AsyncSession

Verdict = Union[bool, str]
"""True: carry it out. False, or a text that the model is told: do not."""

# [async only]
Approver = Callable[[ToolCall], Union[Verdict, Awaitable[Verdict]]]
# [end]
# [sync] Approver = Callable[[ToolCall], Verdict]

_MOVING = 600.0
"""Seconds for a session with many files."""

_CANCELLING = "15s"
"""How long a cancelled task is waited for: what it runs is interrupted first."""


class AsyncTask:
    """A task of an agent. The server carries it out, whatever becomes of this program.

    Iterating over it gives its events from the beginning to the end, across broken connections.
    Leaving the loop leaves the task going. Ctrl-C, or the end of the asyncio task, cancels it.
    """

    def __init__(
        self, agent: AsyncAgent, session_id: str, number: int, after: int = 0, on_approval: Optional[Approver] = None
    ) -> None:
        self.agent = agent
        self.session_id = session_id
        self.number = number
        self.on_approval = on_approval
        self._after = after
        self._path = _path_of(session_id)
        self._connection: AsyncConnection = agent.client._connection
        self._reader = Reader()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.number} of {self.session_id}>"

    def __aiter__(self) -> AsyncIterator[AgentEvent]:
        return self.events()

    async def events(self) -> AsyncIterator[AgentEvent]:
        """What happens."""
        self._reader = Reader()
        is_ours = False
        asked = set()
        try:
            async for message in follow(
                self._connection, self._request_after, self._is_last, going_on=self._going_on
            ):
                event = self._reader.read(message.event, message.data)
                if isinstance(event, TaskBegun):
                    is_ours = event.task == self.number
                    if is_ours:
                        # Steps of earlier tasks are theirs.
                        self._reader = Reader()
                if not is_ours:
                    continue
                yield event
                if isinstance(event, ApprovalWanted) and self.on_approval and event.call.id not in asked:
                    asked.add(event.call.id)
                    await self._approve(event.call, self.on_approval)
        except _io.INTERRUPTIONS:
            await _io.shielded(self._end)
            raise

    async def result(self) -> AgentResult:
        """Waits for the end.

        Raises:
            TaskFailedError: when the model could not be had.
        """
        async for _ in self.events():
            pass
        return await self._over()

    async def cancel(self) -> None:
        """Stops it. What it has done stays; what it runs is interrupted."""
        await self._connection.ask(self._post("/cancel", {}))

    async def decide(self, call: str, verdict: Verdict) -> bool:
        """Says whether a call may be carried out. False if it does not wait (any more)."""
        body: Dict[str, Any] = {"call": call, "allow": verdict is True}
        if isinstance(verdict, str):
            body["reason"] = verdict
        try:
            await self._connection.ask(self._post("/approvals", body))
        except InvalidConfigurationError as error:
            if error.status != 404:
                raise
            return False
        return True

    async def _approve(self, call: ToolCall, approver: Approver) -> None:
        try:
            verdict = approver(call)
            # [async only]
            if inspect.isawaitable(verdict):
                verdict = await verdict
            # [end]
        except Exception:
            # The caller's own trouble: nobody would answer the call any more.
            await _io.shielded(self._end)
            raise
        await self.decide(call.id, verdict)

    def _request_after(self, position: str) -> Request:
        last = position or (str(self._after) if self._after else "")
        return requests.events(self._path + "/events", last, subject=self.session_id)

    def _going_on(self) -> str:
        return (
            "the task goes on as soon as the server is back; then an agent's "
            f"resume_session({self.session_id!r}) and last_task() return to it"
        )

    def _is_last(self, message: Message) -> bool:
        if message.event != "ended":
            return False
        ended = Reader().read(message.event, message.data)
        return isinstance(ended, Ended) and ended.task == self.number

    async def _end(self) -> None:
        await self.cancel()
        await self._show(wait=_CANCELLING)

    async def _over(self) -> AgentResult:
        return AgentResult.of(await self._show(), self._reader.steps()).check()

    async def _show(self, wait: Optional[str] = None) -> Mapping[str, Any]:
        path = f"{self._path}/tasks/{self.number}"
        answer: Mapping[str, Any] = await self._connection.ask(
            requests.get(path, subject=self.session_id, patience=20.0 if wait else 0.0, wait=wait)
        )
        return answer

    def _post(self, call: str, body: Mapping[str, Any]) -> Request:
        return requests.post(self._path + call, body, subject=self.session_id, repeat=Repeat.SAFE)


class AsyncAgent:
    """A model that works in a session, and remembers what was said.

    Args:
        runtime: where it works: this machine, if not given.
        workspace: the directory that it works in, on the runtime's machine; the current one, if
            not given.
        model: which of the server's models; not needed where there is one only.
        instructions: what the model is told before everything else.
        approve: tools whose calls wait for approval; ``["*"]`` for all. All, if there is an
            ``on_approval``.
        on_approval: asked about each such call: True, False, or a text that says why not.
        limits: for tasks that do not say: ``max_steps``, ``max_tokens``, ``max_time_ms``,
            ``max_cost``, ``compact_above_tokens``, ``price``.
        env: environment variables of its session.
        sandbox: True, a preset's name, or a policy: what its session may see, change and use.
        name: a name for its session.
        checkpoints: how many steps can be taken back, files included (10); 0 for none.
        durable: whether its session is saved in idle time; as the server was told, if not given.
        agent_type: ``computer``, the only kind.
    """

    def __init__(
        self,
        *,
        runtime: Optional[Runtime] = None,
        workspace: Optional[str] = None,
        model: Optional[str] = None,
        instructions: Optional[str] = None,
        approve: Optional[Sequence[str]] = None,
        on_approval: Optional[Approver] = None,
        limits: Optional[Mapping[str, Any]] = None,
        env: Optional[Mapping[str, str]] = None,
        sandbox: SandboxSetting = None,
        name: Optional[str] = None,
        checkpoints: Optional[int] = None,
        durable: Optional[bool] = None,
        agent_type: str = "computer",
    ) -> None:
        if agent_type != "computer":
            raise InvalidConfigurationError(
                f"there is no agent_type {agent_type!r}", hint='leave it out, or give "computer"'
            )
        self._options: Dict[str, Any] = {
            "workspace": workspace,
            "model": model,
            "instructions": instructions,
            "approve": approve,
            "on_approval": on_approval,
            "limits": limits,
            "env": env,
            "sandbox": sandbox,
            "name": name,
            "checkpoints": checkpoints,
            "durable": durable,
        }
        self._runtime = runtime or LocalRuntime()
        self._info: Optional[AgentInfo] = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.current_session_id or 'without a session'}>"

    @property
    def runtime(self) -> Runtime:
        """Where it works."""
        return self._runtime

    @property
    def client(self) -> AsyncClient:
        return self._runtime._client(AsyncClient)

    @property
    def current_session_id(self) -> Optional[str]:
        """Its session, from its first task on."""
        return self._info.session_id if self._info else None

    @property
    def current_thread_id(self) -> Optional[str]:
        """Its thread, from its first task on."""
        return self._info.thread_id if self._info else None

    async def begin(
        self, task: str, *, limits: Optional[Mapping[str, Any]] = None, on_approval: Optional[Approver] = None
    ) -> AsyncTask:
        """Begins a task, and does not wait for it. The first one makes the session."""
        info = await self._sit()
        limits = limits or self._options["limits"]
        body = {"text": task, "limits": dict(limits) if limits else None}
        request = requests.once(
            _path_of(info.session_id) + "/tasks", body, requests.new_key(), subject=info.session_id
        )
        begun = await self.client._connection.ask(request)
        approver = on_approval or self._options["on_approval"]
        return AsyncTask(self, info.session_id, begun["task"], info.entries, approver)

    async def run(
        self, task: str, *, limits: Optional[Mapping[str, Any]] = None, on_approval: Optional[Approver] = None
    ) -> AgentResult:
        """Carries a task out, in the agent's session and thread; the first task makes them."""
        return await (await self.begin(task, limits=limits, on_approval=on_approval)).result()

    async def last_task(self) -> Optional[AsyncTask]:
        """The last task, whoever began it: to follow one that goes on since before this program began."""
        tasks = await self.tasks(limit=1)
        if not tasks:
            return None
        return AsyncTask(self, self._sat().session_id, tasks[0].task, 0, self._options["on_approval"])

    async def info(self) -> AgentInfo:
        """What it is doing."""
        return await self._look(self._sat().session_id)

    async def session(self) -> AsyncSession:
        """Its session: what it has there can be used by hand, too."""
        return await AsyncSession.attach(self._sat().session_id, client=self.client)

    def reset_session(self) -> None:
        """The next task begins a new session and a new thread. The old ones stay: see
        ``resume_session``."""
        self._info = None

    async def resume_session(self, id: str) -> AgentInfo:
        """Goes on in a session of before, by its id or name, whichever program it was of."""
        self._info = await self._look(id)
        return self._info

    async def fork(self, count: int = 1, *, files: str = "share") -> List[AsyncAgent]:
        """Agents with the same past, each with a session and a thread of its own.

        Args:
            files: ``share`` the workspace, or ``copy`` it.
        """
        id = self._sat().session_id
        body = {"count": count, "files": files}
        request = requests.post(_path_of(id) + "/fork", body, subject=id, patience=60.0)
        forked = await self.client._connection.ask(request)
        return [self._another(AgentInfo.of(row)) for row in forked["agents"]]

    async def rewind(self, step: int) -> RewoundAgent:
        """Takes back everything after a step: conversation, interpreters and files. 0 is before the
        first one."""
        return await self._back("/rewind", {"step": step})

    async def undo(self) -> RewoundAgent:
        """Takes back the last task."""
        return await self._back("/undo", {})

    async def tasks(self, limit: Optional[int] = None) -> List[TaskInfo]:
        """Its tasks, newest first."""
        id = self._sat().session_id
        answer = await self.client._connection.ask(requests.get(_path_of(id) + "/tasks", subject=id, limit=limit))
        return [TaskInfo.of(row) for row in answer["tasks"]]

    async def move_to(
        self, runtime: Runtime, *, workspace: Optional[str] = None, model: Optional[str] = None
    ) -> Mapping[str, Any]:
        """Moves it, with its session, its files and its thread. It goes on there; here its session
        ends, and says where it is. What could not be moved is in the answer.

        Args:
            workspace: a directory to go on in, which is empty or not there yet; where it was, if not given.
            model: which of the models there; the one of the same name, if not given.
        """
        id = self._sat().session_id
        source, target = self.client._connection, runtime._client(AsyncClient)
        head: Dict[str, str] = {}

        # Asked for anew with each attempt at the other side, and not written to a disk on the way.
        async def exported() -> AsyncIterator[bytes]:
            body = await source.open(requests.get(_path_of(id) + "/export", subject=id, patience=_MOVING))
            try:
                head.update(body.headers)
                async for piece in body:
                    yield piece
            finally:
                await body.aclose()

        request = requests.send(
            "/v1/agents/import",
            exported,
            method="POST",
            repeat=Repeat.UNSENT,
            # It is the caller's own agent, wherever it was exported.
            trust=True,
            cwd=target._directory(workspace) if workspace else None,
            model=model,
        )
        moved: Mapping[str, Any] = await target._connection.ask(request)
        info = AgentInfo.of(moved["agent"])
        told = {
            "url": target.endpoint,
            "session_id": info.session_id,
            "entries": int(head["sessile-entries"]),
            "as_of_run": int(head["sessile-as-of-run"]),
        }
        try:
            await source.ask(requests.post(_path_of(id) + "/moved", told, subject=id, repeat=Repeat.SAFE))
        except SessionBusyError:
            # It has gone on meanwhile, and is not to be there twice.
            await target._connection.ask(requests.delete(requests.path_of(info.session_id)))
            raise
        self._runtime, self._info = runtime, info
        restored: Mapping[str, Any] = moved["session"]
        return restored

    async def end(self) -> None:
        """Ends its session and everything that it started. The thread and its record stay.

        It takes no more tasks then, unless ``reset_session`` lets the next one begin a new session.
        """
        if self._info is None:
            return
        try:
            await (await self.session()).close()
        except SessionClosedError:
            pass

    async def _back(self, call: str, body: Mapping[str, Any]) -> RewoundAgent:
        id = self._sat().session_id
        request = requests.post(_path_of(id) + call, body, subject=id, patience=60.0)
        return RewoundAgent.of(await self.client._connection.ask(request))

    def _another(self, info: AgentInfo) -> AsyncAgent:
        agent = type(self)(runtime=self._runtime, **self._options)
        agent._info = info
        return agent

    def _sat(self) -> AgentInfo:
        if self._info is None:
            raise InvalidConfigurationError(
                "this agent has no session yet", hint="give it a task, or have it resume a session"
            )
        return self._info

    async def _sit(self) -> AgentInfo:
        # However many tasks are the first, there is one session.
        # In Python 3.9 a lock belongs to the event loop that it is made in.
        async with self.__dict__.setdefault("_sitting", _io.Lock()):
            if self._info is None:
                self._info = await self._make()
            return self._info

    async def _make(self) -> AgentInfo:
        options, client = self._options, self.client
        approve = options["approve"]
        if approve is None and options["on_approval"]:
            approve = ["*"]
        sandbox = sandbox_setting(options["sandbox"])
        # What a sandbox is not told, it cannot tell.
        env = {**(carried() if client.is_local and sandbox is None else {}), **(options["env"] or {})}
        body = {
            "workspace": client._directory(options["workspace"]),
            "name": options["name"],
            "model": options["model"],
            "instructions": options["instructions"],
            "env": env or None,
            "sandbox": sandbox,
            "approve": list(approve) if approve else None,
            "checkpoints": options["checkpoints"],
            "durable": options["durable"],
        }
        request = requests.once("/v1/agents", body, requests.new_key(), patience=60.0)
        return AgentInfo.of(await client._connection.ask(request))

    async def _look(self, id: str) -> AgentInfo:
        return AgentInfo.of(await self.client._connection.ask(requests.get(_path_of(id), subject=id)))


async def run(
    agent: AsyncAgent,
    task: str,
    *,
    limits: Optional[Mapping[str, Any]] = None,
    on_approval: Optional[Approver] = None,
) -> AgentResult:
    """Carries a task out, in the agent's session and thread; the first task makes them."""
    return await agent.run(task, limits=limits, on_approval=on_approval)


async def stream(
    agent: AsyncAgent,
    task: str,
    *,
    limits: Optional[Mapping[str, Any]] = None,
    on_approval: Optional[Approver] = None,
) -> AsyncIterator[AgentEvent]:
    """The same, as it happens."""
    begun = await agent.begin(task, limits=limits, on_approval=on_approval)
    async for event in begun.events():
        yield event


def _path_of(id: str) -> str:
    return "/v1/agents/" + requests.word(id)
