"""What the parts of a session need from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping

from .._core.requests import Repeat
from .connection import AsyncConnection

if TYPE_CHECKING:
    from .client import AsyncClient


class AsyncSessionPart:
    _client: AsyncClient
    _connection: AsyncConnection
    _id: str
    _path: str

    def _check(self) -> None:
        raise NotImplementedError

    async def _get(self, call: str, **query: Any) -> Any:
        raise NotImplementedError

    async def _post(
        self, call: str, body: Mapping[str, Any], *, repeat: Repeat = Repeat.UNSENT, patience: float = 0.0
    ) -> Any:
        raise NotImplementedError
