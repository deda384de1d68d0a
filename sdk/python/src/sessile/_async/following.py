"""Streams of events that go on after a broken connection, where they were."""

from __future__ import annotations

import json
from typing import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generic, Optional, TypeVar

from .. import errors, events
from .._core import requests, retry
from .._core.refusals import from_event
from .._core.requests import Request
from .._core.sse import Message, Parser
from .._core.wires import Broken
from ..results import Result
from . import _io
from .connection import AsyncBody, AsyncConnection, Patience, Trouble


T = TypeVar("T")


async def follow(
    connection: AsyncConnection,
    request_after: Callable[[str], Request],
    is_last: Callable[[Message], bool],
    begun: Optional[AsyncBody] = None,
    going_on: Callable[[], str] = lambda: "ask for it again when the server is back",
) -> AsyncGenerator[Message, None]:
    """All events, each once, up to the first that is the last.

    ``request_after`` gives the request for what comes after an event's id; "" is the beginning,
    of which ``begun`` is the answer if that was asked for already. ``going_on`` says how to read
    on later, for a server that went away for good.
    """
    position = ""
    was_open = False
    patience = Patience(connection)
    while True:
        request = request_after(position)
        try:
            body, begun = begun or await connection.open(request), None
        except errors.ConnectionError as error:
            if not was_open:
                raise
            raise _gone(error, going_on()) from error
        was_open = True
        try:
            async for message in _messages(body):
                patience.reset()
                if message.event == "error":
                    raise from_event(json.loads(message.data), request.subject)
                position = message.id or position
                yield message
                if is_last(message):
                    return
            # A server that stops ends its streams in good order.
            trouble = Trouble(retry.Failure.LOST, OSError("the stream ended early"))
        except Trouble as broken:
            trouble = broken
        finally:
            await body.aclose()
        try:
            await patience.after(trouble, request)
        except errors.ConnectionError as error:
            raise _gone(error, going_on()) from error


def _gone(error: errors.ConnectionError, hint: str) -> errors.ConnectionError:
    message = f"Sessile at '{error.endpoint}' went away during the stream, and did not come back."
    return errors.ConnectionError(error.endpoint, error.details, code="connection_lost", hint=hint, message=message)


def named(event: str) -> Callable[[Message], bool]:
    """Whether a message is of this kind."""
    return lambda message: message.event == event


async def _messages(body: AsyncBody) -> AsyncIterator[Message]:
    parser = Parser()
    try:
        async for piece in body:
            for message in parser.feed(piece):
                yield message
    except Broken as error:
        raise Trouble(error.failure, error) from error


class AsyncFeed(Generic[T]):
    """What happens, as it happens: an iterator that goes on after a broken connection.

    A ``Feed`` begins at once, an ``AsyncFeed`` with its first event, or where ``async with`` is
    entered. From then on everything is told, however late it is asked for. Leaving the ``with``
    block ends it, as ``aclose()`` does.
    """

    def __init__(
        self,
        connection: AsyncConnection,
        request_after: Callable[[str], Request],
        is_last: Callable[[Message], bool],
        read: Callable[[Message], Optional[T]],
    ) -> None:
        self._connection = connection
        self._request_after = request_after
        self._is_last = is_last
        self._read = read
        self._begun: Optional[AsyncBody] = None
        self._messages: Optional[AsyncGenerator[Message, None]] = None
        # [sync] self._begin()

    async def _begin(self) -> AsyncGenerator[Message, None]:
        if self._messages is None:
            self._begun = await self._connection.open(self._request_after(""))
            self._messages = follow(self._connection, self._request_after, self._is_last, self._begun)
        return self._messages

    async def __aenter__(self) -> AsyncFeed[T]:
        await self._begin()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __aiter__(self) -> AsyncFeed[T]:
        return self

    async def __anext__(self) -> T:
        async for message in await self._begin():
            found = self._read(message)
            if found is not None:
                return found
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Ends it here; what it tells of goes on."""
        if self._messages is not None:
            await self._messages.aclose()
        if self._begun is not None:
            await self._begun.aclose()

    # [sync] __del__ = close


class AsyncStream:
    """The events of one run, as they happen.

    >>> stream = session.stream("echo one; exit 3")
    >>> async for event in stream:
    ...     if isinstance(event, (Stdout, Stderr)):
    ...         print(type(event).__name__, event.text.strip())
    Stdout one
    >>> stream.result.exit_code
    3

    What is written to one stream comes in its order; stdout and stderr are two, and may overtake each
    other. A broken connection is made good: no event is missed, none comes twice. Leaving the loop
    early leaves the run going; ``interrupt()`` ends it. Ctrl-C while it waits for the next event
    interrupts the run.
    """

    def __init__(
        self,
        connection: AsyncConnection,
        path: str,
        session_id: str,
        *,
        begin: Optional[Request] = None,
        abandon: Optional[Callable[[Optional[int]], Awaitable[object]]] = None,
        run: Optional[int] = None,
        command: Optional[str] = None,
    ) -> None:
        self._connection = connection
        self._path = path
        self._session_id = session_id
        self._begin = begin
        self._abandon = abandon
        self._command = command
        self.run: Optional[int] = run
        """The run's number, from its first event on."""
        self._result: Optional[Result] = None
        messages = follow(connection, self._after, named("closed"), going_on=self._going_on)
        self._messages: AsyncIterator[Message] = messages

    def _after(self, position: str) -> Request:
        if self.run is None and self._begin is not None:
            return self._begin
        return requests.events(f"{self._path}/runs/{self.run}/events", position, subject=self._session_id)

    def _going_on(self) -> str:
        if self.run is None:
            return "it is not known whether the run has begun; see the session's runs when the server is back"
        # [async only]
        attach = f"(await AsyncSession.attach({self._session_id!r}))"
        # [end]
        # [sync] attach = f"Session.attach({self._session_id!r})"
        return f"the run goes on; when the server is back, {attach}.get_run({self.run}) has it"

    def __aiter__(self) -> AsyncIterator[events.Event]:
        return self

    async def __anext__(self) -> events.Event:
        try:
            message = await self._messages.__anext__()
            event = events.parse(message.event, message.data, self._command, self._session_id)
            if isinstance(event, events.Started):
                self.run = event.run
            if isinstance(event, events.Exited):
                self._result = event.result
            return event
        except _io.INTERRUPTIONS:
            abandon = self._abandon
            if abandon is not None and self._result is None:
                await _io.shielded(lambda: abandon(self.run))
            raise

    @property
    def result(self) -> Result:
        """What came of the run, from its ``Exited`` event on."""
        if self._result is None:
            raise ValueError("the run is not over; read on until its Exited event")
        return self._result

    async def text(self) -> str:
        """All that it writes to stdout from here on."""
        found = [event.text async for event in self if isinstance(event, events.Stdout)]
        return "".join(found)

    async def interrupt(self) -> None:
        """Interrupts the run, if it has begun."""
        if self.run is not None and self._result is None:
            path = f"{self._path}/interrupt"
            await self._connection.ask(
                requests.post(path, {"run": self.run}, subject=self._session_id)
            )
