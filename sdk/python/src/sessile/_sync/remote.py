# Made from ../_async by scripts/make_sync.py. Do not edit.
"""A connection to a server elsewhere, and the one place that knows httpx: TLS, proxies, and what else the
environment says. Imported when the first request is sent there, because httpx takes longer to import
than all the rest.
"""

from __future__ import annotations

import functools
from typing import Any, List, Mapping, Tuple

import httpx

from .._core import wires
from .._core.endpoint import Remote
from .._core.requests import Request
from .._core.retry import Failure
from .._core.wires import Broken

ONE = httpx.Limits(max_connections=1, max_keepalive_connections=1, keepalive_expiry=wires.KEEP_ALIVE)


class RemoteWire:
    """One connection. httpx's own pool compares all connections with each other for each request: with
    256 of them that takes 25 ms."""

    def __init__(self, endpoint: Remote, headers: List[Tuple[str, str]]) -> None:
        self._client = httpx.Client(verify=_certificates(endpoint), limits=ONE)
        self._base = endpoint.url
        self._headers = headers
        self._response: Any = None
        self.is_whole = False

    def begin(self, request: Request) -> None:
        self.is_whole = False
        self._response = None
        content: Any = request.content() if callable(request.content) else request.content
        timeout = {
            "connect": wires.CONNECT_TIMEOUT,
            "read": request.read_timeout,
            "write": wires.WRITE_TIMEOUT,
            "pool": wires.CONNECT_TIMEOUT,
        }
        made = httpx.Request(
            request.method,
            _url(self._base + request.path),
            headers=[*self._headers, *request.headers],
            content=content,
            extensions={"timeout": timeout},
        )
        try:
            self._response = self._client.send(made, stream=True)
        except httpx.TransportError as error:
            raise _broken(error) from error

    @property
    def status(self) -> int:
        status: int = self._response.status_code
        return status

    @property
    def headers(self) -> Mapping[str, str]:
        headers: Mapping[str, str] = self._response.headers
        return headers

    def read(self) -> bytes:
        try:
            content: bytes = self._response.read()
        except httpx.TransportError as error:
            raise _broken(error) from error
        self.is_whole = True
        return content

    def pieces(self) -> Any:
        try:
            for piece in self._response.iter_bytes():
                yield piece
        except httpx.TransportError as error:
            raise _broken(error) from error
        self.is_whole = True

    def finish(self) -> None:
        """Nobody reads on."""
        if self._response is not None:
            self._response.close()

    def close(self) -> None:
        self._client.close()


def _broken(error: Exception) -> Broken:
    """Whether the server can have got a request that failed like this."""
    unsent = isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout))
    failure = Failure.UNSENT if unsent else Failure.LOST
    said = str(error) or type(error).__name__
    is_foreign = isinstance(error, httpx.RemoteProtocolError) and "disconnected" not in said
    return Broken(failure, said, is_foreign)


@functools.lru_cache(maxsize=4096)
def _url(text: str) -> httpx.URL:
    return httpx.URL(text)


def _certificates(endpoint: Remote) -> Any:
    """Read once for all connections, and not at all without TLS: it takes 20 ms each time."""
    if not endpoint.url.startswith("https:") and endpoint.verify is True:
        return False
    return _usual_certificates() if endpoint.verify is True else endpoint.verify


@functools.lru_cache(maxsize=1)
def _usual_certificates() -> Any:
    return httpx.create_ssl_context()
