"""Ports that something in a session listens on."""

from __future__ import annotations

from typing import Any, Mapping, Optional, Union

from .._core.requests import MARGIN, Repeat, Request
from .connection import Answer, AsyncConnection


class AsyncPort:
    """One port, reached through the server, also out of a sandbox and from another machine.

    ``url`` is where a browser or another client finds it, when the server is not local.
    """

    def __init__(self, connection: AsyncConnection, path: str, session_id: str, number: int) -> None:
        self._connection = connection
        self._path = path
        self._session_id = session_id
        self.number = number

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.number} of {self._session_id}>"

    @property
    def url(self) -> str:
        base = getattr(self._connection.endpoint, "url", "http://localhost")
        return f"{base}{self._path}/"

    async def request(
        self,
        method: str,
        path: str = "/",
        *,
        content: Optional[Union[str, bytes]] = None,
        headers: Optional[Mapping[str, str]] = None,
        timeout: float = 60.0,
    ) -> Answer:
        """One HTTP request to what listens there: status, headers and content of its answer."""
        body = content.encode() if isinstance(content, str) else content
        made = Request(
            method.upper(),
            f"{self._path}/{path.lstrip('/')}",
            body,
            tuple((headers or {}).items()),
            Repeat.SAFE if method.upper() in ("GET", "HEAD") else Repeat.UNSENT,
            timeout + MARGIN,
            self._session_id,
        )
        return await self._connection.send(made)

    async def get(self, path: str = "/", **options: Any) -> Answer:
        return await self.request("GET", path, **options)
