# Made from ../_async by scripts/make_sync.py. Do not edit.
"""What the parts of a session need from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping

from .._core.requests import Repeat
from .connection import Connection

if TYPE_CHECKING:
    from .client import Client


class SessionPart:
    _client: Client
    _connection: Connection
    _id: str
    _path: str

    def _check(self) -> None:
        raise NotImplementedError

    def _get(self, call: str, **query: Any) -> Any:
        raise NotImplementedError

    def _post(
        self, call: str, body: Mapping[str, Any], *, repeat: Repeat = Repeat.UNSENT, patience: float = 0.0
    ) -> Any:
        raise NotImplementedError
