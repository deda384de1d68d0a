"""Connections: each is used by one request at a time, and who needs one takes the one that was used last."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Deque, Mapping, Optional, Union

from .._core import local
from .._core.endpoint import Endpoint, Local
from .._core.requests import Request
from .._core.retry import Failure
from .._core.wires import Broken
from .._version import __version__
from . import _io
from .wire import AsyncLocalWire

if TYPE_CHECKING:
    from .remote import AsyncRemoteWire

LONG = 256
"""Requests at once that may wait for runs; further ones take turns. A server takes a thousand
connections in all."""

SHORT = 64
"""The same for those that do not, which interrupt runs, for example."""

KEPT = 64
"""Connections that are kept when nobody needs them."""

AsyncWire = Union["AsyncLocalWire", "AsyncRemoteWire"]


class AsyncPool:
    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._headers = [("User-Agent", f"sessile-python/{__version__}")]
        self._address: Optional[local.Address] = None
        if not isinstance(endpoint, Local) and endpoint.token:
            self._headers.append(("Authorization", f"Bearer {endpoint.token}"))
        self._idle: Deque[AsyncWire] = deque()
        self._turns = {True: _io.Semaphore(LONG), False: _io.Semaphore(SHORT)}

    def _connect(self) -> AsyncWire:
        endpoint = self._endpoint
        if isinstance(endpoint, Local):
            try:
                self._address = self._address or local.Address(endpoint.socket)
            except OSError as error:
                raise Broken(Failure.UNSENT, str(error)) from error
            return AsyncLocalWire(self._address, self._headers)
        from .remote import AsyncRemoteWire

        return AsyncRemoteWire(endpoint, self._headers)

    async def send(self, request: Request) -> AsyncExchange:
        """The head of the answer. Its body is still to be read; then it has to be closed."""
        turn = self._turns[request.is_long]
        await turn.acquire()
        try:
            try:
                wire = self._idle.pop()
            except IndexError:
                wire = self._connect()
            exchange = AsyncExchange(self, wire, turn)
        except BaseException:
            turn.release()
            raise
        try:
            await wire.begin(request)
        except BaseException:
            await exchange.aclose()
            raise
        return exchange

    async def give_back(self, wire: AsyncWire) -> None:
        if wire.is_whole and len(self._idle) < KEPT:
            self._idle.append(wire)
        else:
            await wire.aclose()

    async def aclose(self) -> None:
        while self._idle:
            await self._idle.pop().aclose()


class AsyncExchange:
    """One request and its answer, on a connection that is nobody else's meanwhile."""

    def __init__(self, pool: AsyncPool, wire: AsyncWire, turn: _io.Semaphore) -> None:
        self._pool = pool
        self._wire = wire
        self._turn = turn
        self._is_over = False

    @property
    def status(self) -> int:
        return self._wire.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._wire.headers

    async def read(self) -> bytes:
        return await self._wire.read()

    def pieces(self) -> Any:
        return self._wire.pieces()

    async def aclose(self) -> None:
        """A connection with something left to read on it is not used again."""
        if self._is_over:
            return
        self._is_over = True
        try:
            await self._wire.finish()
            await self._pool.give_back(self._wire)
        finally:
            self._turn.release()
