"""Sends requests until they are answered, or it is clear that they will not be."""

from __future__ import annotations

import json
import os
import threading
import time
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, AsyncIterator, Callable, Mapping, MutableMapping, Optional

from .. import errors
from .._core import local, retry
from .._core.endpoint import Endpoint, Local
from .._core.refusals import asked, refusal
from .._core.requests import Request
from .._core.wires import Broken
from . import _io

if TYPE_CHECKING:
    from .pool import AsyncExchange, AsyncPool


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    content: bytes


class AsyncBody:
    """An answer that is read piece by piece."""

    def __init__(self, exchange: AsyncExchange) -> None:
        self._exchange = exchange
        self.headers: Mapping[str, str] = exchange.headers

    def __aiter__(self) -> AsyncIterator[bytes]:
        iterator: AsyncIterator[bytes] = self._exchange.pieces()
        return iterator

    async def aclose(self) -> None:
        await self._exchange.aclose()


class AsyncConnection:
    """To one server. Threads share it, and a forked process has connections of its own."""

    def __init__(self, endpoint: Endpoint, debug: Optional[Callable[[str], object]] = None) -> None:
        self.endpoint = endpoint
        self._debug = debug
        self._is_known = False
        self._is_closed = False
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._making = threading.Lock()
        self._pools: MutableMapping[Any, AsyncPool] = weakref.WeakKeyDictionary()

    def _pool(self) -> AsyncPool:
        if self._is_closed:
            raise errors.ConnectionError(self.endpoint.shown, "this client was closed", hint="make a new one")
        if self._pid != os.getpid():
            # The connections are the parent's: two processes on one would get
            # each other's answers.
            self._begin()
        place = _io.place()
        pool = self._pools.get(place)
        if pool is None:
            from .pool import AsyncPool

            with self._making:
                pool = self._pools.get(place) or AsyncPool(self.endpoint)
                self._pools[place] = pool
        return pool

    async def ask(self, request: Request) -> Any:
        """The JSON that the server answers with."""
        content = (await self.send(request)).content
        return json.loads(content) if content else None

    async def send(self, request: Request) -> Answer:
        answer = await self._exchange(request, is_stream=False)
        assert isinstance(answer, Answer)
        return answer

    async def open(self, request: Request) -> AsyncBody:
        """An answer to be read piece by piece. It has to be closed."""
        body = await self._exchange(request, is_stream=True)
        assert isinstance(body, AsyncBody)
        return body

    async def _exchange(self, request: Request, is_stream: bool) -> "Answer | AsyncBody":
        patience = Patience(self)
        while True:
            try:
                return await self._once(request, is_stream)
            except Trouble as trouble:
                if self._debug:
                    self._debug(f"{_shown(request)}: {trouble.failure.value} ({trouble})")
                await patience.after(trouble, request)

    async def _once(self, request: Request, is_stream: bool) -> "Answer | AsyncBody":
        pool = self._pool()
        exchange: Optional[AsyncExchange] = None
        try:
            exchange = await pool.send(request)
            status, headers = exchange.status, exchange.headers
            if self._debug:
                self._debug(f"{_shown(request)}: {status}")
            if status < 400:
                self._is_known = True
                if is_stream:
                    body, exchange = AsyncBody(exchange), None
                    return body
            content = await exchange.read()
        except Broken as error:
            raise Trouble(error.failure, error) from error
        finally:
            if exchange is not None:
                await exchange.aclose()
        # With this header it is the answer of a server in the session, whatever it says.
        if status < 400 or "sessile-port" in headers:
            return Answer(status, headers, content)
        refused = refusal(status, content, asked(request))
        if refused.code in retry.LATER:
            raise Trouble(retry.Failure.REFUSED, refused, _seconds(headers.get("retry-after")))
        raise refused

    async def aclose(self) -> None:
        self._is_closed = True
        if self._pid == os.getpid():
            pool = self._pools.pop(_io.place(), None)
            if pool is not None:
                await pool.aclose()


def _what_to_do(said: str) -> str:
    if "CERTIFICATE_VERIFY_FAILED" in said:
        return (
            "the server's certificate is not of an authority that is known here; pass verify= to "
            "Client: the file of its certificate"
        )
    return "is it running? `sessile serve` starts one"


def _shown(request: Request) -> str:
    return f"{request.method} {request.path.partition('?')[0]}"


def _seconds(text: Optional[str]) -> Optional[float]:
    try:
        return float(text) if text else None
    except ValueError:
        return None


class Trouble(Exception):
    """One attempt has failed in a way that another may not."""

    def __init__(self, failure: retry.Failure, cause: Exception, retry_after: Optional[float] = None) -> None:
        super().__init__(str(cause))
        self.failure = failure
        self.cause = cause
        self.retry_after = retry_after


class Patience:
    """Those of one request, or of one stream since it last had something to say."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection
        self.reset()

    def reset(self) -> None:
        self._count = 0
        self._since = 0.0
        self._was_sent = False

    async def after(self, trouble: Trouble, request: Request) -> None:
        """Returns when it is time for the next. Raises when there is none."""
        endpoint = self._connection.endpoint
        now = time.monotonic()
        self._since = self._since or now
        self._count += 1
        self._was_sent = self._was_sent or trouble.failure is retry.Failure.LOST
        so_far = retry.Attempts(self._count, now - self._since, self._connection._is_known)
        pause = retry.pause(trouble.failure, request.repeat, so_far, trouble.retry_after)
        if pause is None:
            raise self._final(trouble, endpoint) from trouble.cause
        if isinstance(endpoint, Local) and trouble.failure is retry.Failure.UNSENT:
            await _io.in_thread(local.ensure, endpoint.socket)
            if self._count == 1:
                return
        await _io.sleep(pause)

    def _final(self, trouble: Trouble, endpoint: Endpoint) -> errors.SandboxError:
        if isinstance(trouble.cause, errors.SandboxError):
            return trouble.cause
        said = str(trouble.cause) or type(trouble.cause).__name__
        if self._is_tls(trouble, endpoint):
            return errors.ConnectionError(
                endpoint.shown,
                said,
                message=f"What is at '{endpoint.shown}' does not speak HTTP.",
                hint="if it speaks TLS, use https:// in its address",
            )
        if self._was_sent:
            return errors.ConnectionError(
                endpoint.shown,
                said,
                code="connection_lost",
                message=f"Sessile at '{endpoint.shown}' went away before it answered.",
                hint="it is not known whether the request was carried out; look before you repeat it",
            )
        hint = None if isinstance(endpoint, Local) else _what_to_do(said)
        return errors.ConnectionError(endpoint.shown, said, hint=hint)

    def _is_tls(self, trouble: Trouble, endpoint: Endpoint) -> bool:
        """Whether a server that never answered seems to have been waiting for TLS."""
        if self._connection._is_known or isinstance(endpoint, Local) or not endpoint.url.startswith("http:"):
            return False
        return isinstance(trouble.cause, Broken) and trouble.cause.is_foreign
