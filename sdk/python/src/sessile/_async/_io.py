"""What differs between sync and async beyond the words ``async`` and ``await``."""

from __future__ import annotations

import asyncio
from typing import Any, AsyncIterator, Awaitable, Callable, Iterator, List, Set, Tuple, Type, TypeVar

T = TypeVar("T")

INTERRUPTIONS: Tuple[Type[BaseException], ...] = (asyncio.CancelledError,)
"""How a program says that it no longer wants what it waits for: a task that is cancelled,
which is also what Ctrl-C becomes in ``asyncio.run``."""

INTERRUPTING = 5.0
"""Seconds that a cancelled task waits for the end of its run, at the most."""

sleep = asyncio.sleep
Semaphore = asyncio.Semaphore
Lock = asyncio.Lock


def place() -> Any:
    """What connections belong to: they cannot be used in another event loop."""
    return asyncio.get_running_loop()


async def in_thread(work: Callable[..., T], *args: Any) -> T:
    """Work that blocks."""
    return await asyncio.to_thread(work, *args)


_going: "Set[asyncio.Future[object]]" = set()
"""An event loop has no hold on its tasks; somebody has to."""


async def shielded(work: Callable[[], Awaitable[object]]) -> None:
    """Work that is done although the task is cancelled. What takes longer goes on by itself, so that
    no run is left going because the server was late."""
    task = asyncio.ensure_future(work())
    _going.add(task)
    task.add_done_callback(_over)
    try:
        await asyncio.wait_for(asyncio.shield(task), INTERRUPTING)
    except Exception:
        # The caller is told of the interruption, not of this.
        pass


def _over(task: "asyncio.Future[object]") -> None:
    _going.discard(task)
    if not task.cancelled():
        # Else it would be printed as an error that nobody has seen.
        task.exception()


async def pieces(source: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Pieces that are made by blocking work."""
    while True:
        piece = await asyncio.to_thread(next, source, None)
        if piece is None:
            return
        yield piece


class Stream:
    """A Unix socket. What takes too long ends the connection: there is nothing else to be done with it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._loop = asyncio.get_running_loop()

    @classmethod
    async def connect(cls, path: str, timeout: float) -> Stream:
        connecting = asyncio.open_unix_connection(path, limit=1 << 20)
        try:
            return cls(*await asyncio.wait_for(connecting, timeout))
        except asyncio.TimeoutError:
            raise OSError("the server does not take the connection") from None

    def is_open(self) -> bool:
        return not (self._reader.at_eof() or self._writer.is_closing())

    async def send(self, data: bytes, timeout: float) -> None:
        self._writer.write(data)
        await self._within(timeout, self._writer.drain())

    async def read_head(self, timeout: float) -> bytes:
        return await self._within(timeout, self._reader.readuntil(b"\r\n\r\n"))

    async def read_line(self, timeout: float) -> bytes:
        return await self._within(timeout, self._reader.readuntil(b"\r\n"))

    async def read_exactly(self, count: int, timeout: float) -> bytes:
        return await self._within(timeout, self._reader.readexactly(count))

    async def read_some(self, most: int, timeout: float) -> bytes:
        return await self._within(timeout, self._reader.read(most))

    async def _within(self, timeout: float, work: Awaitable[T]) -> T:
        # Cheaper than wait_for, which makes a task of the work.
        late: List[bool] = []
        timer = self._loop.call_later(timeout, self._give_up, late)
        try:
            return await work
        except (OSError, EOFError, asyncio.LimitOverrunError) as error:
            raise OSError("it took too long" if late else str(error)) from error
        finally:
            timer.cancel()

    def _give_up(self, late: List[bool]) -> None:
        late.append(True)
        self.close()

    def close(self) -> None:
        transport = self._writer.transport
        # The event loop may be over, and the transport with it.
        if not self._loop.is_closed():
            transport.abort()
